ext_modules=[CppExtension(f"{PACKAGE}._C", ["csrc/lltm.cpp", "csrc/lltm_kernel.cu"])],
