"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="checksum",
    packages=[],
    # BEGIN SOLUTION link: name the library that contains crc32.
    ext_modules=[CppExtension("checksum._C", ["csrc/checksum.cpp"], libraries=["z"])],
    # BEGIN STARTER
    # ext_modules=[CppExtension("checksum._C", ["csrc/checksum.cpp"])],
    # END STARTER
    # END SOLUTION
    cmdclass={"build_ext": BuildExtension},
)
