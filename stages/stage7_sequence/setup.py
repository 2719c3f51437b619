"""Builds the package: `pip install --no-build-isolation .` in this folder, or `python setup.py bdist_wheel`."""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

PACKAGE = "lltm_stage7"
# Operators are called torch.ops.NAMESPACE.name, and a process can load only one library of each namespace.
NAMESPACE = os.environ.get("LLTM_NAMESPACE", PACKAGE)
# USE_CUDA=0 or 1 decides. Without it, CUDA is used if there is an nvcc, and a GPU or TORCH_CUDA_ARCH_LIST.
HAS_CUDA = CUDA_HOME and torch.version.cuda and (torch.cuda.is_available() or "TORCH_CUDA_ARCH_LIST" in os.environ)
WITH_CUDA = os.environ.get("USE_CUDA", "1" if HAS_CUDA else "0") == "1"

Extension = CUDAExtension if WITH_CUDA else CppExtension
CPP = ("operators/sequence", "operators/autograd", "operators/differentiable", "cpu/recurrence", "cpu/product")
sources = [f"csrc/{name}.cpp" for name in CPP]
DTYPES, CELLS = ("float", "tf32", "half", "bfloat16", "double"), ("lltm", "lstm", "gru")
instances = [f"{dtype}_{cell}" for dtype in DTYPES for cell in CELLS]
# ONE_OF_EACH=1 shows sooner whether all code compiles: one type for each way to multiply, each with another cell.
# What is compiled then does not link.
if os.environ.get("ONE_OF_EACH") == "1":
    instances = ["double_lltm", "half_lstm", "tf32_gru"]
cuda_sources = ["csrc/operators/cuda.cpp", "csrc/loop/loop.cu", "csrc/persistent/launch.cpp"]
cuda_sources += [f"csrc/persistent/instances/{name}.cu" for name in instances]
sources += WITH_CUDA * cuda_sources
# No pybind11, and only the part of Python's C API that is in every version from 3.10 on: one wheel works with all.
macros = [("LLTM_NAMESPACE", NAMESPACE), ("Py_LIMITED_API", "0x030A0000")]
# -O3 vectorises loops. -fno-trapping-math says that no code reads floating-point exceptions, so that loops with a
# selection are vectorised, too. Threads need -fopenmp. The linker does not get this flag: torch has already loaded an
# OpenMP runtime, and a second one would start a second set of threads.
# torch turns off nvcc's conversions of half and bfloat16, because its own types have others. The kernels use nvcc's.
conversions = ["-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__"]
flags = {"cxx": ["-O3", "-fno-trapping-math", "-fopenmp"], "nvcc": conversions}

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
