"""The C++ compiler of a command that builds: one whose extensions share torch's C++ library."""

from __future__ import annotations

import os
import shutil

from ..emulator import compiler_command
from ..errors import UserError
from .facts import shares_cxx_library

CANDIDATES = {"g++": "gcc", "c++": "cc", "clang++": "clang"}  # the C compiler of each C++ compiler
PROBLEM = "links its own C++ library into each extension, which conflicts with torch's and crashes"


def choose_compiler() -> str:
    """Chooses another compiler for this process and those that it starts if the current one has its own C++ library.

    Returns a note about it, which is empty if the current one can be used. Raises `UserError` if none can.
    """
    current = " ".join(compiler_command())
    if shares_cxx_library(current):
        return ""
    for cxx, cc in CANDIDATES.items():
        if shutil.which(cxx) and shares_cxx_library(cxx):
            os.environ |= {"CC": cc, "CXX": cxx}
            return f"note: {current} {PROBLEM}; this command uses {cxx}. To choose it: export CC={cc} CXX={cxx}"
    raise UserError(f"the compiler {current} {PROBLEM}, and there is no other on PATH: sudo apt install g++")
