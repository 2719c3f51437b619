"""Counts of a kernel's memory accesses: the requests of its warps, their sectors, lanes and bank conflicts.

The emulator counts the accesses in the source before any cache, not machine instructions. A request moves the sectors
of 32 bytes that its lanes access. The counts are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .text import format_table

WARP = 32  # lanes
SECTOR = 32  # bytes


@dataclass(frozen=True)
class Row:
    """The counts of one line of a kernel and one kind of access. All numbers are sums over the launches.

    `space` is "global load", "global store", "global atomic", "shared load", "shared store" or "shared atomic";
    sectors count for global memory, wavefronts and conflicts for shared memory.
    """

    kernel: str
    file: str
    line: int
    text: str  # the source line, without spaces around it
    space: str
    requests: int  # one per warp and instruction
    lanes: int  # active lanes, over all requests
    bytes: int  # accessed by the lanes
    sectors: int
    ideal_sectors: int  # for the same bytes without gaps between them
    wavefronts: int  # passes over shared memory, one after another, that served the requests
    conflicts: int  # wavefronts that bank conflicts added

    @property
    def is_global(self) -> bool:
        """Whether the row counts accesses to global memory, not to shared memory."""
        return self.space.startswith("global")


@dataclass(frozen=True)
class Launch:
    """A kernel, the number of its launches, the sizes (x, y, z) of the last one, and sums over all of them.

    While the launches of an extension are counted, torch's current stream is not the default stream. So
    `on_other_streams` also counts launches that name no stream.
    """

    kernel: str
    launches: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    on_other_streams: int = 0  # launches that did not use torch's current stream
    unguarded: int = 0  # launches without one of torch's device guards around them
    idle_blocks: int = 0  # blocks that accessed no memory
    idle_warps: int = 0  # warps that accessed no global memory
    stored_bytes: int = 0  # of global memory; an element that is stored twice in a launch counts once
    repeated_stores: int = 0  # to elements that another thread of the launch has stored already
    first_repeated: str = ""  # "element [1, 0] of out, by block (0, 0, 0), thread (0, 0, 0), and by ..."


@dataclass(frozen=True)
class Array:
    """A tensor or an array that a traced thread accessed, by its name in the kernel.

    `element` is in bytes, `strides` in elements; sizes and strides are empty if the host passed a raw pointer. The
    array begins `past_sector` bytes after the beginning of a sector.
    """

    name: str
    element: int
    past_sector: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def index(self, element: int) -> tuple[int, ...]:
        """The index of the element at an offset from the first one; a single number if the shape is unknown."""
        index = [0] * len(self.sizes)
        for axis in sorted(range(len(self.sizes)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis] > 0 and self.sizes[axis] > 1:
                index[axis], element = divmod(element, self.strides[axis])
        return tuple(index) or (element,)

    def sector(self, element: int) -> int:
        """The number of the sector that an element begins in; the first element begins in sector 0."""
        return (self.past_sector + element * self.element) // SECTOR


@dataclass(frozen=True)
class Access:
    """One access of one thread to `count` elements, starting at `element`.

    Accesses of one warp with the same `instruction` and `request` belong to one request.
    """

    kernel: str
    file: str
    line: int
    space: str
    instruction: int
    request: int
    thread: int  # its number in the block
    array: Array
    element: int
    count: int

    @property
    def warp(self) -> int:
        """The number of the thread's warp in its block."""
        return self.thread // WARP


@dataclass
class Counted:
    """The counts of a run, complete when the `with` block has ended. Rows are in the order of kernels and lines."""

    launches: list[Launch] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    root: Path = Path()  # the files of the rows are relative to it

    def of(self, kernel: str = "", space: str = "", line: int | None = None) -> list[Row]:
        """The rows of a kernel, of a space ("shared", "global load") and of a line. Each argument is optional."""
        return [
            row
            for row in self.rows
            if matches_kernel(row.kernel, kernel) and row.space.startswith(space) and line in (None, row.line)
        ]

    def total(self, what: str, kernel: str = "", space: str = "") -> int:
        """A sum over rows: `counted.total("sectors", "forward_kernel", "global load")`."""
        return sum(getattr(row, what) for row in self.of(kernel, space))

    def __str__(self) -> str:
        parts = [_kernel_table(launch, self.of(launch.kernel)) for launch in self.launches]
        return "\n\n".join([*parts, MEANING] if parts else ["no kernel was launched"])


def matches_kernel(full: str, name: str) -> bool:
    """Whether a kernel, such as `scale<float>`, has that name, with or without template arguments. "" matches all."""
    return name in ("", full, full.partition("<")[0])


# As text

COLUMNS = ("line", "uses", "requests", "lanes", "sectors", "ideal", "conflicts", "KiB")
MEANING = (
    "Each request serves one warp. Lanes, sectors (of 32 bytes) and bank conflicts are per request; ideal is the\n"
    "number of sectors that the same bytes would take without gaps."
)
WIDEST = 60  # characters of a source line


def _kernel_table(launch: Launch, rows: Sequence[Row]) -> str:
    """The table of one kernel, without columns that would be empty."""
    times = "" if launch.launches == 1 else f", {launch.launches} times"
    title = f"{launch.kernel}<<<{launch.grid}, {launch.block}>>>{times}"
    if not rows:
        return f"{title}: accesses no memory"
    cells = [
        [f"{_source_place(row, rows[0].file)} {shorten(row.text, WIDEST)}", row.space, *format_counts(row)]
        for row in rows
    ]
    wanted = [k for k in range(len(COLUMNS)) if any(line[k] for line in cells)]
    text = format_table([COLUMNS[k] for k in wanted], [[line[k] for k in wanted] for line in cells])
    return f"{title}\n{text}"


def _source_place(row: Row, usual: str) -> str:
    """The line number of a row, with the file name unless it is the usual file."""
    return f"{row.line:4}" if row.file == usual else f"{Path(row.file).name}:{row.line}"


def format_counts(row: Row) -> list[str]:
    """The cells of a row for the third and later COLUMNS. Cells for the other kind of memory are empty."""
    sectors = [per_request(row.sectors, row), per_request(row.ideal_sectors, row)] if row.is_global else ["", ""]
    conflicts = "" if row.is_global else per_request(row.conflicts, row)
    return [f"{row.requests:,}", per_request(row.lanes, row), *sectors, conflicts, f"{row.bytes / 1024:,.1f}"]


def per_request(number: int, row: Row) -> str:
    """A mean over the requests of a row."""
    return format_mean(number, row.requests)


def format_mean(total: int, count: int) -> str:
    """Formats a mean, without the decimal if it is zero."""
    return f"{total / count:.1f}".removesuffix(".0")


def shorten(text: str, most: int) -> str:
    """Cuts a text to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
