"""Builds the package: `pip install --no-build-isolation .` in this folder, or `python setup.py bdist_wheel`."""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

PACKAGE = "lltm_stage5"
# Operators are called torch.ops.NAMESPACE.name, and a process can load only one library of each namespace.
NAMESPACE = os.environ.get("LLTM_NAMESPACE", PACKAGE)
# USE_CUDA=0 or 1 decides. Without it, CUDA is used if there is an nvcc, and a GPU or TORCH_CUDA_ARCH_LIST.
HAS_CUDA = CUDA_HOME and torch.version.cuda and (torch.cuda.is_available() or "TORCH_CUDA_ARCH_LIST" in os.environ)
WITH_CUDA = os.environ.get("USE_CUDA", "1" if HAS_CUDA else "0") == "1"

Extension = CUDAExtension if WITH_CUDA else CppExtension
sources = ["csrc/lltm.cpp", "csrc/lltm_cpu.cpp", "csrc/lltm_avx2.cpp", "csrc/lltm_avx512.cpp"]
sources += WITH_CUDA * ["csrc/lltm_cuda.cpp", "csrc/lltm_kernel.cu"]
# No pybind11, and only the part of Python's C API that is in every version from 3.10 on: one wheel works with all.
macros = [("LLTM_NAMESPACE", NAMESPACE), ("Py_LIMITED_API", "0x030A0000")]
# at::parallel_for needs -fopenmp to run in parallel. The linker does not get this flag: torch has already loaded an
# OpenMP runtime, and a second one would start a second set of threads. The other flags hide warnings about torch's
# own headers for vectors.
flags = {"cxx": ["-fopenmp", "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized", "-Wno-psabi"], "nvcc": []}

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    package_dir={PACKAGE: "."},
    ext_modules=[
        Extension(f"{PACKAGE}._C", sources, define_macros=macros, extra_compile_args=flags, py_limited_api=True)
    ],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
