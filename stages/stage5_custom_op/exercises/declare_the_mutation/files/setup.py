from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="leak",
    version="1.0",
    ext_modules=[
        CppExtension(
            "leak._C",
            ["csrc/leak.cpp"],
            define_macros=[("Py_LIMITED_API", "0x030A0000")],
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
