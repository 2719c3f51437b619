from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="gates",
    version="1.0",
    ext_modules=[
        CppExtension(
            "gates._C",
            ["csrc/gates.cpp"],
            # BEGIN SOLUTION macros: a second macro, TORCH_TARGET_VERSION, tells the headers the oldest torch: 2.11.
            define_macros=[("Py_LIMITED_API", "0x030A0000"), ("TORCH_TARGET_VERSION", "0x020B000000000000")],
            # BEGIN STARTER
            # define_macros=[("Py_LIMITED_API", "0x030A0000")],
            # END STARTER
            # END SOLUTION
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
