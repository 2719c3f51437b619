"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="statistics",
    packages=[],
    ext_modules=[CppExtension("statistics._C", ["csrc/statistics.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
