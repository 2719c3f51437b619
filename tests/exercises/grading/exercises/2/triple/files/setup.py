from setuptools import Extension, setup

setup(name="triple", ext_modules=[Extension("triple._C", ["csrc/triple.cpp"])])
