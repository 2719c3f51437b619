"""Builds the module `softsign._C`."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="softsign",
    packages=[],
    ext_modules=[
        CppExtension(
            "softsign._C",
            ["csrc/softsign.cpp", "csrc/curve.cpp"],
            # BEGIN SOLUTION: flags for the compiler.
            extra_compile_args=["-O3", "-fno-trapping-math", "-fopenmp"],
            # BEGIN STARTER
            # extra_compile_args=["-O1"],
            # END STARTER
            # END SOLUTION
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
