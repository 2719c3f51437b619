"""Prints, as JSON, how many files `load` compiles after each edit. Usage: measure.py SOURCES FOLDER.

Each case runs in a fork of a process that has not loaded anything. For `load`, that is a new process.
"""

import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path

from torch.utils.cpp_extension import load

given, folder = Path(sys.argv[1]), Path(sys.argv[2])
built = folder / "built"
sources = [shutil.copy(given / name, folder) for name in ("sum.cpp", "number.cpp")]
header = Path(shutil.copy(given / "number.h", folder))
number = Path(sources[1])


def build():
    load("numbers", sources, build_directory=str(built), is_python_module=False)


def in_a_new_process(call):
    """Runs a call in a child process and returns its number. Exits if the child fails."""
    child = os.fork()
    if child == 0:
        try:
            Path(folder / "count").write_text(str(call()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(1)
    return int((folder / "count").read_text())


def compiled():
    """How many files a build compiles."""
    before = {path: path.stat().st_mtime_ns for path in built.glob("*.o")}
    build()
    return sum(before.get(path) != path.stat().st_mtime_ns for path in built.glob("*.o"))


def edited():
    """The same for a process that builds, edits a file and builds again."""
    build()
    edit(number)
    return compiled()


def edit(path):
    path.write_text(path.read_text() + "// edited\n")
    time.sleep(0.02)


built.mkdir()
counts = {"first": in_a_new_process(compiled), "unchanged": in_a_new_process(compiled)}
edit(number)
counts["one_file"] = in_a_new_process(compiled)
edit(header)
counts["header"] = in_a_new_process(compiled)
number.touch()
time.sleep(0.02)
counts["touched"] = in_a_new_process(compiled)
words = (built / "build.ninja").read_text().split()
counts["optimisation"] = next((word for word in words if word.startswith("-O")), "none")
counts["same_process"] = in_a_new_process(edited)
print("\n" + json.dumps(counts))
