"""Builds the module `cubes._C` from two .cu files and a binding."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="cubes",
    packages=[],
    ext_modules=[
        CUDAExtension(
            "cubes._C",
            ["csrc/binding.cpp", "csrc/cubes.cu", "csrc/square.cu"],
            # BEGIN SOLUTION
            dlink=True,
            extra_compile_args={"cxx": ["-O3"], "nvcc": ["-O3", "-rdc=true"]},
            # BEGIN STARTER
            # extra_compile_args=["-O3"],
            # END STARTER
            # END SOLUTION
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
