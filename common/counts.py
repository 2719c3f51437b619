"""What kernels ask of memory, counted on the emulator: a warp's requests, their sectors, lanes and bank conflicts.

stage = load(3, "emulator")
with counts.of(stage) as counted:
    stage.lltm(*arguments)
print(counted)

Counts are of the source's accesses, not of machine instructions, and before any cache: a request moves the sectors
of 32 bytes that its lanes touch. They are the same on every machine.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from . import console
from .errors import UserError

if TYPE_CHECKING:
    from . import kernels

WARP = 32  # lanes
SECTOR = 32  # bytes
EVERY_THREAD = 2**32 - 1


@dataclass(frozen=True)
class Row:
    """One line of a kernel's source and one way of using memory. All numbers are sums over the launches.

    `space` is "global load", "global store", "global atomic", "shared load", "shared store" or "shared atomic";
    sectors are of global memory, wavefronts and conflicts of shared memory.
    """

    kernel: str
    file: str
    line: int
    text: str  # of the line, without spaces around it
    space: str
    requests: int  # of warps
    lanes: int  # that took part, over all requests
    bytes: int  # that they asked for
    sectors: int
    ideal_sectors: int  # for the same bytes without gaps between them
    wavefronts: int  # how often shared memory had to answer
    conflicts: int  # how often more than without bank conflicts

    @property
    def is_global(self) -> bool:
        """Whether it is a row of global memory; else of shared memory."""
        return self.space.startswith("global")


@dataclass(frozen=True)
class Launch:
    """A kernel, how often it was launched, and the sizes (x, y, z) of its last launch."""

    kernel: str
    launches: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]


@dataclass(frozen=True)
class Array:
    """A tensor or an array that a traced thread touched, under the kernel's name for it.

    `element` is in bytes, `strides` in elements; both lists are empty where the host gave a bare pointer. It begins
    `past_sector` bytes behind the beginning of a sector.
    """

    name: str
    element: int
    past_sector: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def index(self, element: int) -> tuple[int, ...]:
        """The index of an element, given as its distance from the first; one number where no shape is known."""
        index = [0] * len(self.sizes)
        for axis in sorted(range(len(self.sizes)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] > 0 and self.sizes[axis] > 1:
                index[axis], element = divmod(element, self.strides[axis])
        return tuple(index) or (element,)

    def sector(self, element: int) -> int:
        """The sector that an element begins in; 0 is that of the first one."""
        return (self.past_sector + element * self.element) // SECTOR


@dataclass(frozen=True)
class Touch:
    """One access of one thread: the elements from `element` on, `count` of them.

    Touches of one warp with the same `instruction` and `request` are one request.
    """

    kernel: str
    file: str
    line: int
    space: str
    instruction: int
    request: int
    thread: int  # number in its block
    array: Array
    element: int
    count: int

    @property
    def warp(self) -> int:
        """The number of the thread's warp in its block."""
        return self.thread // WARP


@dataclass
class Counted:
    """What was counted; filled in when the `with` block ends. Rows are in the order of kernels and lines."""

    launches: list[Launch] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    root: Path = Path()  # what the files of its rows are relative to

    def of(self, kernel: str = "", space: str = "", line: int | None = None) -> list[Row]:
        """The rows of a kernel, of a space ("shared", "global load") and of a line; each may be left out."""
        return [
            row
            for row in self.rows
            if is_kernel(row.kernel, kernel) and row.space.startswith(space) and line in (None, row.line)
        ]

    def total(self, what: str, kernel: str = "", space: str = "") -> int:
        """A sum over rows: `counted.total("sectors", "forward_kernel", "global load")`."""
        return sum(getattr(row, what) for row in self.of(kernel, space))

    def __str__(self) -> str:
        return as_table(self)


def is_kernel(full: str, name: str) -> bool:
    """Whether a kernel, such as `scale<float>`, is the one of that name; each is, of no name."""
    return name in ("", full, full.partition("<")[0])


@contextmanager
def of(module: ModuleType, block: int | None = None, threads: range | None = None) -> Iterator[Counted]:
    """Counts what the kernels of a stage, or of a module made by `inline`, do inside of the `with` block.

    With the number of a block (x fastest) also each access of its threads, or of those in `threads`, as `touches`.
    Raises `UserError` for a module that was not built for the emulator.
    """
    extension = getattr(module, "_C", module)
    library = ctypes.CDLL(extension.__file__)
    if not hasattr(library, "emulator_counts_begin"):
        raise UserError(f"{module.__name__} runs on the GPU; counts are the emulator's: load(number, 'emulator')")
    folder = Path(module.__file__).parent
    library.emulator_counts_begin.argtypes = [ctypes.c_longlong, ctypes.c_uint, ctypes.c_uint]
    library.emulator_counts_end.restype = ctypes.c_char_p
    first, last = (threads.start, threads.stop - 1) if threads else (0, EVERY_THREAD)
    counted = Counted()
    library.emulator_counts_begin(-1 if block is None else block, first, last)
    try:
        yield counted
    finally:
        text = library.emulator_counts_end()
    fill(counted, json.loads(text), folder)


def read(path: Path, root: Path) -> Counted:
    """What a program has counted, from the file that EMULATOR_COUNTS named; `root` is where its sources lie."""
    counted = Counted()
    fill(counted, json.loads(path.read_text()), root)
    return counted


def fill(counted: Counted, found: dict, root: Path) -> None:
    """Takes over the emulator's own words (common/emulator/src/counts_json.cpp)."""
    counted.root = root
    counted.launches = [
        Launch(one["kernel"], one["launches"], tuple(one["grid"]), tuple(one["block"])) for one in found["launches"]
    ]
    texts = Lines(root)
    rows = (one | {"file": one["file"].removeprefix("./")} for one in found["rows"])
    order = {launch.kernel: k for k, launch in enumerate(counted.launches)}
    counted.rows = sorted(
        (Row(text=texts.of(row["file"], row["line"]), **row) for row in rows),
        key=lambda row: (order[row.kernel], row.file, row.line, row.space),
    )
    arrays = [Array(**one | {axis: tuple(one[axis]) for axis in ("sizes", "strides")}) for one in found["arrays"]]
    for one in found["touches"]:
        array, offset, size = arrays[one.pop("array")], one.pop("offset"), one.pop("size")
        one["file"] = one["file"].removeprefix("./")
        counted.touches.append(
            Touch(**one, array=array, element=offset // array.element, count=max(1, size // array.element))
        )


class Lines:
    """The lines of source files, each file read once."""

    def __init__(self, root: Path) -> None:
        self.root, self.files = root, {}

    def of(self, file: str, number: int) -> str:
        """A line without spaces around it; empty where it cannot be found."""
        path = self.root / file
        if path not in self.files:
            self.files[path] = path.read_text(errors="replace").splitlines() if file and path.is_file() else []
        lines = self.files[path]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def stage(number: int, B: int = 64, S: int = 512, dtype: str = "float32", block: int | None = None) -> Counted:
    """The counts of one forward and one backward pass of a stage's kernels alone, without its matrix products."""
    from . import kernels, stages

    cell, inputs = kernels.pointwise_of(stages.get(number), "emulator"), given(B, S, dtype)
    with of(kernels.load(number, "emulator"), block=block) as counted:
        cell.backward(inputs, cell.forward(inputs))
    return counted


def given(B: int, S: int, dtype: str = "float32", device: str = "cpu") -> kernels.Given:
    """Inputs of that size for the pointwise part: z (B, 3S), old_cell, grad_h and grad_cell (B, S)."""
    import torch

    from . import kernels

    [inputs] = kernels.given_sets(B, S, device, count=1)
    tensors = (inputs.z, inputs.old_cell, inputs.grad_h, inputs.grad_cell)
    return kernels.Given(inputs.case, *(tensor.to(getattr(torch, dtype)) for tensor in tensors))


# In words -----------------------------------------------------------------------------------------------------

HEADER = ("line", "uses", "requests", "lanes", "sectors", "ideal", "conflicts", "KiB")
MEANING = (
    "Each request is one warp's. Lanes, sectors (of 32 bytes) and bank conflicts are per request; ideal is the\n"
    "number of sectors that the same bytes would take without gaps."
)
WIDEST = 60  # characters of a source line


def as_table(counted: Counted) -> str:
    """The rows as text, a table for each kernel."""
    parts = [kernel_table(launch, counted.of(launch.kernel)) for launch in counted.launches]
    return "\n\n".join([*parts, MEANING] if parts else ["no kernel was launched"])


def kernel_table(launch: Launch, rows: Sequence[Row]) -> str:
    """One kernel's, without the columns that it does not need."""
    times = "" if launch.launches == 1 else f", {launch.launches} times"
    title = f"{launch.kernel}<<<{launch.grid}, {launch.block}>>>{times}"
    if not rows:
        return f"{title}: touches no memory"
    cells = [[f"{place(row, rows[0].file)} {shortened(row.text, WIDEST)}", row.space, *numbers(row)] for row in rows]
    wanted = [k for k in range(len(HEADER)) if any(line[k] for line in cells)]
    table = console.table([HEADER[k] for k in wanted], [[line[k] for k in wanted] for line in cells])
    return f"{title}\n{table}"


def place(row: Row, usual: str) -> str:
    """The line of a row, with its file where that is not the usual one."""
    return f"{row.line:4}" if row.file == usual else f"{Path(row.file).name}:{row.line}"


def numbers(row: Row) -> list[str]:
    """The cells of a row; those of the other memory stay empty."""
    sectors = [per(row.sectors, row.requests), per(row.ideal_sectors, row.requests)] if row.is_global else ["", ""]
    conflicts = "" if row.is_global else per(row.conflicts, row.requests)
    return [f"{row.requests:,}", per(row.lanes, row.requests), *sectors, conflicts, f"{row.bytes / 1024:,.1f}"]


def per(number: int, requests: int) -> str:
    """A mean, without a decimal where it has none."""
    return f"{number / requests:.1f}".removesuffix(".0")


def shortened(text: str, most: int) -> str:
    """A text of at most that many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
