"""Builds the package: `python setup.py build_ext --inplace`; `python setup.py bdist_wheel` makes a wheel in dist/."""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

# USE_CUDA=0 or 1 decides; by default, CUDA code is built if there are nvcc and a GPU, or a list of architectures.
HAS_CUDA = CUDA_HOME and torch.version.cuda and (torch.cuda.is_available() or "TORCH_CUDA_ARCH_LIST" in os.environ)
WITH_CUDA = os.environ.get("USE_CUDA", "1" if HAS_CUDA else "0") == "1"

Extension = CUDAExtension if WITH_CUDA else CppExtension
sources, headers = ["csrc/softsign.cpp"] + WITH_CUDA * ["csrc/softsign_kernel.cu"], ["csrc/softsign.h"]
flags = {"cxx": ["-fopenmp"], "nvcc": []}  # without it, at::parallel_for uses one thread

setup(
    name="softsign",
    version="1.0",
    packages=["softsign"],
    # The library does not use Python's API, so one wheel works with every Python from 3.10 on.
    ext_modules=[Extension("softsign._C", sources, extra_compile_args=flags, depends=headers, py_limited_api=True)],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
