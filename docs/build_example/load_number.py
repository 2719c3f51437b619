"""Builds number.cpp with `load`, and says where. Usage: load_number.py [FOLDER]."""

import ctypes
import sys

from torch.utils.cpp_extension import load

folder = sys.argv[1] if sys.argv[1:] else None
library = load("number", ["number.cpp"], build_directory=folder, is_python_module=False)
print(library, "says", ctypes.CDLL(library).number())
