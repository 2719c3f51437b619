"""Builds the package: `pip install --no-build-isolation .` in this folder; `python setup.py bdist_wheel`: a wheel."""

import os

import torch
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension

PACKAGE = "lltm_stage5_stable"
# Operators are torch.ops.NAMESPACE.name, and a process can load only one library of each namespace.
NAMESPACE = os.environ.get("LLTM_NAMESPACE", PACKAGE)
# USE_CUDA=0 or 1 decides; without it, what is here: nvcc, and a GPU or the names of those that are meant.
HAS_CUDA = CUDA_HOME and torch.version.cuda and (torch.cuda.is_available() or "TORCH_CUDA_ARCH_LIST" in os.environ)
WITH_CUDA = os.environ.get("USE_CUDA", "1" if HAS_CUDA else "0") == "1"

Extension = CUDAExtension if WITH_CUDA else CppExtension
sources = ["csrc/lltm.cpp", "csrc/lltm_cpu.cpp"] + WITH_CUDA * ["csrc/lltm_cuda.cpp", "csrc/lltm_kernel.cu"]
macros = [
    ("LLTM_NAMESPACE", NAMESPACE),
    # Of Python only what every version from 3.10 on has: one wheel serves them all.
    ("Py_LIMITED_API", "0x030A0000"),
    # Of torch only what every version from 2.11 on has, whichever one compiles this.
    ("TORCH_TARGET_VERSION", "0x020B000000000000"),
    *WITH_CUDA * [("USE_CUDA", "1")],  # declares the shims that are in a CUDA build of torch only
]

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    package_dir={PACKAGE: "."},
    ext_modules=[Extension(f"{PACKAGE}._C", sources, define_macros=macros, py_limited_api=True)],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
