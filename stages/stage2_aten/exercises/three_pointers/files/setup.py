"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="pointers",
    packages=[],
    ext_modules=[CppExtension("pointers._C", ["csrc/pointers.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
