ext_modules=[CUDAExtension(f"{PACKAGE}._C", ["csrc/lltm.cpp"])],
