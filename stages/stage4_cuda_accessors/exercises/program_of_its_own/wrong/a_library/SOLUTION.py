extra_ldflags=["-Wl,--as-needed", "-Wl,--no-as-needed"],
is_python_module=False,
