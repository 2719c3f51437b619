"""Builds the module `mean._C` from a C++ file and a CUDA file."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="mean",
    packages=[],
    ext_modules=[
        CUDAExtension(
            "mean._C",
            ["csrc/mean.cpp", "csrc/mean_kernel.cu"],
            # BEGIN SOLUTION: flags for g++, for nvcc, and for the linker.
            extra_compile_args={
                "cxx": ["-fopenmp", "-march=native", "-Wall"],
                "nvcc": ["--use_fast_math", "-lineinfo", "-Xcompiler=-Wall"],
            },
            extra_link_args=["-fopenmp"],
            # END SOLUTION
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
