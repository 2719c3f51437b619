from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="halves",
    version="1.0",
    ext_modules=[
        CppExtension(
            "halves._C",
            ["csrc/halves.cpp"],
            # BEGIN SOLUTION extension: declare the limited API to the headers and to the extension.
            define_macros=[("Py_LIMITED_API", "0x030A0000")],
            py_limited_api=True,
            # END SOLUTION
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    # BEGIN SOLUTION wheel: declare it to the wheel.
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
    # END SOLUTION
)
