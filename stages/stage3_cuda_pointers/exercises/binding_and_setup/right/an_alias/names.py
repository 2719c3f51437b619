from torch.utils.cpp_extension import BuildExtension
from torch.utils.cpp_extension import CUDAExtension as Extension

PACKAGE = "lltm_stage" + str(3)
