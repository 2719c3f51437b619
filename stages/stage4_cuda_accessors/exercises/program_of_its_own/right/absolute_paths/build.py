"""Builds total.cpp as a program, and prints its path."""

import os

from torch.utils.cpp_extension import load

here = os.path.abspath(os.path.dirname(__file__))
built = os.path.join(here, "built")
os.makedirs(built, exist_ok=True)
keep_libtorch = "-Wl,--push-state,--no-as-needed,-ltorch,--pop-state"
options = {"is_standalone": True, "is_python_module": False, "build_directory": built}
print(load("total", os.path.join(here, "total.cpp"), extra_ldflags=["-Wl,--as-needed", keep_libtorch], **options))
