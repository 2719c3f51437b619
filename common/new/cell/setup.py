"""Builds the package: `python setup.py build_ext --inplace`; `python setup.py bdist_wheel` makes a wheel in dist/."""

import os
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

PACKAGE = "lltm"  # and the namespace of the operators: torch.ops.lltm
# USE_CUDA=0 or 1 decides; by default, CUDA code is built if there are nvcc and a GPU, or a list of architectures.
HAS_CUDA = CUDA_HOME and torch.version.cuda and (torch.cuda.is_available() or "TORCH_CUDA_ARCH_LIST" in os.environ)
WITH_CUDA = os.environ.get("USE_CUDA", "1" if HAS_CUDA else "0") == "1"

Extension = CUDAExtension if WITH_CUDA else CppExtension
sources = ["csrc/lltm.cpp", "csrc/lltm_cpu.cpp", "csrc/lltm_avx2.cpp", "csrc/lltm_avx512.cpp"]
sources += WITH_CUDA * ["csrc/lltm_cuda.cpp", "csrc/lltm_kernel.cu"]
headers = [str(path) for path in Path("csrc").glob("*.h")]
# Without pybind11 and with Python's limited API, one wheel works with every Python from 3.10 on.
macros = [("LLTM_NAMESPACE", PACKAGE), ("Py_LIMITED_API", "0x030A0000")]
options = {"depends": headers, "define_macros": macros, "py_limited_api": True}
# Without -fopenmp, at::parallel_for uses one thread. The other flags hide warnings about torch's headers for vectors.
flags = ["-fopenmp", "-Wno-unknown-pragmas", "-Wno-maybe-uninitialized", "-Wno-psabi"]
options["extra_compile_args"] = {"cxx": flags, "nvcc": []}

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    ext_modules=[Extension(f"{PACKAGE}._C", sources, **options)],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
