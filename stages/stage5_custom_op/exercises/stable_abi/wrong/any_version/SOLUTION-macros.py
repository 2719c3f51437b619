define_macros=[("Py_LIMITED_API", "0x030A0000")],
