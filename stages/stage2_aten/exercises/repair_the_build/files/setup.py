"""Builds the module `_C`; `make check` does it for you. There is nothing to repair here."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="mix",
    packages=[],
    ext_modules=[CppExtension("mix._C", ["csrc/mix.cpp", "csrc/blend.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
