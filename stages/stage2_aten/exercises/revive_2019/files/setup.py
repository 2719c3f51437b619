"""Builds the module `_C`; `make check` does it for you."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="softsign",
    packages=["softsign"],
    package_dir={"softsign": "."},
    # BEGIN SOLUTION setup
    ext_modules=[CppExtension("softsign._C", ["csrc/softsign.cpp"])],
    # BEGIN STARTER
    # ext_modules=[CppExtension("softsign._C", ["csrc/softsign.cpp"], extra_compile_args=["-std=c++11"])],
    # END STARTER
    # END SOLUTION
    cmdclass={"build_ext": BuildExtension},
)
