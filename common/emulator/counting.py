"""Collects counts of memory accesses: of a module's kernels while it runs, or of a program from the file it wrote.

extension = load_extension("my_extension")
with collect_counts(extension) as counted:
    extension.scale(x, 2.0)
print(counted)
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from .counts import Access, Array, Counted, Launch, Row
from .errors import UserError

EVERY_THREAD = 2**32 - 1
ANYWHERE = Path("/")


@contextmanager
def collect_counts(module: ModuleType, block: int | None = None, threads: range | None = None) -> Iterator[Counted]:
    """Counts the memory accesses of a module's kernels inside the `with` block.

    The module is an extension, or a module or package that has one as `_C`. If `block` is the number of a block (x
    varies fastest), the counts also list each access of the threads of that block, or only of those in `threads`, as
    `accesses`. Raises `UserError` for a module that was not built for the emulator.
    """
    extension = getattr(module, "_C", module)
    library = ctypes.CDLL(extension.__file__)
    if not hasattr(library, "emulator_counts_begin"):
        raise UserError(
            f"{module.__name__} runs on the GPU, but only the emulator counts accesses: load it for the emulator"
        )
    folder = Path(getattr(extension, "__source_folder__", None) or Path(module.__file__).parent)
    library.emulator_counts_begin.argtypes = [ctypes.c_longlong, ctypes.c_uint, ctypes.c_uint]
    library.emulator_counts_end.restype = ctypes.c_char_p
    first, last = (threads.start, threads.stop - 1) if threads else (0, EVERY_THREAD)
    counted = Counted()
    library.emulator_counts_begin(-1 if block is None else block, first, last)
    try:
        yield counted
    finally:
        text = library.emulator_counts_end()
    fill_counts(counted, json.loads(text), folder, within=ANYWHERE)


def read_counts(path: Path, root: Path, within: Path | None = None) -> Counted:
    """Reads the counts of a program from the file that EMULATOR_COUNTS named; see `fill_counts`."""
    counted = Counted()
    fill_counts(counted, json.loads(path.read_text()), root, within)
    return counted


def fill_counts(counted: Counted, found: dict, root: Path, within: Path | None = None) -> None:
    """Fills in counts from the runtime's JSON (runtime/src/counts/counts_json.cpp).

    `root` is the folder of the sources. Source lines are shown only for files in `within`, or in `root` if `within`
    is None. Use ANYWHERE only for programs that may read every file that the caller can read.
    """
    counted.root = root
    counted.launches = [
        Launch(**one | {size: tuple(one[size]) for size in ("grid", "block")}) for one in found["launches"]
    ]
    lines = SourceLines(root, within or root)
    rows = (one | {"file": one["file"].removeprefix("./")} for one in found["rows"])
    order = {launch.kernel: k for k, launch in enumerate(counted.launches)}
    counted.rows = sorted(
        (Row(text=lines.read(row["file"], row["line"]), **row) for row in rows),
        key=lambda row: (order[row.kernel], row.file, row.line, row.space),
    )
    arrays = [Array(**one | {axis: tuple(one[axis]) for axis in ("sizes", "strides")}) for one in found["arrays"]]
    for one in found["accesses"]:
        array, offset, size = arrays[one.pop("array")], one.pop("offset"), one.pop("size")
        one["file"] = one["file"].removeprefix("./")
        counted.accesses.append(
            Access(**one, array=array, element=offset // array.element, count=max(1, size // array.element))
        )


class SourceLines:
    """Reads each source file once. File names are relative to `root`; only files in `within` are read.

    The counted program names the files, and it can name any file. So a file that it may not read must not be read
    for it.
    """

    def __init__(self, root: Path, within: Path) -> None:
        self.root, self.within, self.files = root, within.resolve(), {}

    def read(self, file: str, number: int) -> str:
        """Returns a line without the spaces around it, or an empty string if there is no such line."""
        path = (self.root / file).resolve()
        if path not in self.files:
            is_readable = path.is_relative_to(self.within) and path.is_file()
            self.files[path] = path.read_text(errors="replace").splitlines() if is_readable else []
        lines = self.files[path]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""
