ext_modules=[CppExtension("checksum._C", ["csrc/checksum.cpp"])],
