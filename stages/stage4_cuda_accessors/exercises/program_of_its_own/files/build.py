"""Builds total.cpp, and prints the path of the program."""

from pathlib import Path

from torch.utils.cpp_extension import load

folder = Path("built")
folder.mkdir(exist_ok=True)
program = load(
    "total",
    ["total.cpp"],
    build_directory=str(folder),
    # BEGIN SOLUTION
    extra_ldflags=["-Wl,--as-needed", "-Wl,--no-as-needed"],
    is_python_module=False,
    is_standalone=True,
    # BEGIN STARTER
    # extra_ldflags=["-Wl,--as-needed"],
    # END STARTER
    # END SOLUTION
)
print(program)
