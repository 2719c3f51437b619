"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="gated",
    packages=[],
    ext_modules=[CppExtension("gated._C", ["csrc/gated.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
