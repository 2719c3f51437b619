"""Builds the package: `pip install --no-build-isolation .` in this folder."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

PACKAGE = "lltm_stage3"

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    package_dir={PACKAGE: "."},
    ext_modules=[CUDAExtension(f"{PACKAGE}._C", ["csrc/lltm.cpp", "csrc/lltm_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
