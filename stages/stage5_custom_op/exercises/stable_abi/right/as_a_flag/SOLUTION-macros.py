define_macros=[("Py_LIMITED_API", "0x030A0000")],
extra_compile_args=[f"-DTORCH_TARGET_VERSION=0x{2:02x}{11:02x}000000000000ULL"],
