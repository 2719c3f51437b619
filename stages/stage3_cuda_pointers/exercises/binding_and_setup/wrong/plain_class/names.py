from torch.utils.cpp_extension import BuildExtension, CppExtension

PACKAGE = "lltm_stage3"
WANTED = "CUDAExtension("
