"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="bound",
    packages=[],
    ext_modules=[CppExtension("bound._C", ["csrc/bound.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
