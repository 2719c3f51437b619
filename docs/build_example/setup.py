"""Builds the module `_C`: python setup.py build_ext --inplace."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="example",
    packages=[],
    ext_modules=[
        CUDAExtension(
            "_C",
            ["module.cpp", "kernel.cu"],
            extra_compile_args={"cxx": ["-Wall"], "nvcc": ["-lineinfo"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
