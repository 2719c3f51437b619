"""Builds `pack`, which links zlib: pip install --no-build-isolation . in this folder."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="pack",
    version="1.0",
    py_modules=[],
    ext_modules=[CppExtension("pack", ["pack.cpp"], libraries=["z"])],
    cmdclass={"build_ext": BuildExtension},
)
