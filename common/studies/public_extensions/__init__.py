"""Public PyTorch extensions, unchanged, on the emulator: which of them build, and whether their kernels are right.

`python -m common.studies.public_extensions.study` fetches the packages of packages.py from the index that pip uses,
builds each of their extensions for the emulator, calls it as trials.py says, and records the outcomes in
docs/results/emulator/public_extensions.json. Nothing of the packages is kept.
"""
