"""Made-up counts in the form that the emulator returns: a copy of 2 rows of 40 floats through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common.emulator import WARP, Access, Array, Counted, Launch, Row

SOURCE = """\
// A copy.
#include "nothing.h"

constexpr int kThreads = 64;

// One block a row.
template <typename T>
__global__ void copy(T* y,
                     const T* x) {
  __shared__ T kept[kThreads];

  kept[threadIdx.x * 2 % 40] = x[row() + threadIdx.x];
  __syncthreads();
  y[row() + threadIdx.x] = kept[threadIdx.x];
}

__global__ void other() {}
"""
KERNEL = "copy<T>"
X, Y, KEPT = Array("x", 4, 8, (2, 40), (40, 1)), Array("y", 4, 0, (2, 40), (40, 1)), Array("kept", 4, 0, (), ())


def row(line: int, space: str, **numbers: int) -> Row:
    text = SOURCE.splitlines()[line - 1].strip()
    usual = {
        "requests": 4,
        "lanes": 80,
        "bytes": 320,
        "sectors": 0,
        "ideal_sectors": 0,
        "wavefronts": 0,
        "conflicts": 0,
    }
    return Row(KERNEL, "copy.cu", line, text, space, **usual | numbers)


def accesses_of(array: Array, line: int, space: str, instruction: int, step: int = 1) -> list[Access]:
    return [
        Access(KERNEL, "copy.cu", line, space, instruction, 0, thread, array, thread * step % 40, 1)
        for thread in range(40)
    ]


def counted(root: Path, kernels: Sequence[str] = (KERNEL, "other")) -> Counted:
    """Two launches with 4 warps each. Block 0 was traced: the whole of warp 0, and 8 lanes of warp 1."""
    (root / "copy.cu").write_text(SOURCE)
    assert WARP == 32
    return Counted(
        launches=[Launch(kernel, 2, (2, 1, 1), (64, 1, 1)) for kernel in kernels],
        rows=[
            row(12, "global load", sectors=24, ideal_sectors=12),
            row(12, "shared store", wavefronts=8, conflicts=4),
            row(14, "global store", sectors=12, ideal_sectors=12),
            row(14, "shared load", wavefronts=4),
        ],
        accesses=[
            *accesses_of(X, 12, "global load", 0),
            *accesses_of(KEPT, 12, "shared store", 1, step=2),
            *accesses_of(KEPT, 14, "shared load", 2),
            *accesses_of(Y, 14, "global store", 3),
        ],
        root=root,
    )
