"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="step",
    packages=[],
    ext_modules=[CUDAExtension("step._C", ["csrc/step.cpp", "csrc/step_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
