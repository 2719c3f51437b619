"""Builds program.cpp with `load`, and says where. Usage: build_program.py [FLAG OF THE LINKER ...]."""

import sys
from pathlib import Path

from torch.utils.cpp_extension import load

folder = Path("build")
folder.mkdir(exist_ok=True)
print(
    load(
        "program",
        ["program.cpp"],
        extra_ldflags=sys.argv[1:],
        build_directory=str(folder),
        is_python_module=False,
        is_standalone=True,
    )
)
