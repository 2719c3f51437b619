"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="peephole",
    packages=[],
    ext_modules=[CUDAExtension("peephole._C", ["csrc/peephole.cpp", "csrc/peephole_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
