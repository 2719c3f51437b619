extra_ldflags=["-Wl,--as-needed"],
is_python_module=False,
is_standalone=True,
