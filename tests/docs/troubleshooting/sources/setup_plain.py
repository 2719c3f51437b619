from setuptools import Extension, setup

setup(
    name="lltm_stage2",
    packages=["lltm_stage2"],
    package_dir={"lltm_stage2": "."},
    ext_modules=[Extension("lltm_stage2._C", ["module.cpp"])],
)
