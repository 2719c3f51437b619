PACKAGE = "lltm_stage2"

setup(
    name=PACKAGE,
    version="1.0",
    packages=[PACKAGE],
    package_dir={PACKAGE: "."},
    ext_modules=[CppExtension("_C", ["csrc/lltm.cpp"])],
    cmdclass={"build_ext": BuildExtension},
