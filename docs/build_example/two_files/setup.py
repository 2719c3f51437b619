"""As in the folder above, with device code in two files: relocatable, and linked before the host code is."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="example",
    packages=[],
    ext_modules=[
        CUDAExtension(
            "_C",
            ["../module.cpp", "kernel.cu", "square.cu"],
            dlink=True,
            extra_compile_args={"nvcc": ["-rdc=true"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
