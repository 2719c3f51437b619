from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

setup(
    name="lltm_stage2",
    packages=["lltm_stage2"],
    package_dir={"lltm_stage2": "."},
    ext_modules=[CppExtension("lltm_stage2._C", ["module.cpp"])],
    cmdclass={"build_ext": BuildExtension},
)
