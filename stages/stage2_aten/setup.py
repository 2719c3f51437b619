"""Builds the package: `pip install --no-build-isolation .` in this folder."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

PACKAGE = "lltm_stage2"

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    package_dir={PACKAGE: "."},
    ext_modules=[CppExtension(f"{PACKAGE}._C", ["csrc/lltm.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
