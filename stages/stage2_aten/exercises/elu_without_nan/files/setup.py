"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="elu",
    packages=[],
    ext_modules=[CppExtension("elu._C", ["csrc/elu.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
