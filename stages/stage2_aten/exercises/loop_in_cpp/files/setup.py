"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="sequence",
    packages=[],
    ext_modules=[CppExtension("sequence._C", ["csrc/sequence.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
