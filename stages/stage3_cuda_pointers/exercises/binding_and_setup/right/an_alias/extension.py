ext_modules=[Extension(f"{PACKAGE}._C", ["csrc/lltm.cpp", "csrc/lltm_kernel.cu"])],
