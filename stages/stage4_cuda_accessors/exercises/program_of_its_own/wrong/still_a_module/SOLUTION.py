extra_ldflags=["-Wl,--as-needed", "-Wl,--no-as-needed"],
is_standalone=True,
