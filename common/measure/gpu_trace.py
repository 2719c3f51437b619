"""Reads what a GPU did from torch.profiler (CUPTI), and computes the occupancy of its multiprocessors."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.profiler import profile


def read_events(profiler: profile) -> list[dict]:
    """The events on the GPU, as torch.profiler writes them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return json.loads(path.read_text(errors="replace"))["traceEvents"]


def split_passes(events: Sequence[dict], copied: int) -> tuple[list[float], list[list[dict]]]:
    """The durations in microseconds of copies of that many bytes, and the work after each copy up to the next."""
    copies, work = [], []
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    for event in sorted((e for e in events if e.get("cat") in kinds), key=lambda e: e["ts"]):
        if event["cat"] == "gpu_memcpy" and event["args"].get("bytes") == copied:
            copies.append(event["dur"])
            work.append([])
        elif work:
            work[-1].append(event)
    return copies, work


def launch_occupancy(launch: dict, threads: int) -> float:
    """The occupancy that this GPU allows a kernel, from its launch as torch.profiler reports it."""
    gpu = torch.cuda.get_device_properties(0)
    limits = (
        gpu.max_threads_per_multi_processor,
        gpu.regs_per_multiprocessor,
        gpu.shared_memory_per_multiprocessor,
    )
    return occupancy(threads, launch["registers per thread"], launch.get("shared memory", 0), *limits)


def occupancy(
    threads: int, registers: int, shared: int, most_threads: int, most_registers: int, most_shared: int
) -> float:
    """The share of a multiprocessor's warps that can be resident at once.

    `threads` and `shared` (bytes) are those of a block, `registers` those of a thread; the others are the limits of a
    multiprocessor. Each of its four partitions allocates registers for whole warps, in units of 256.
    """
    warps = -(-threads // 32)
    of_a_warp = -(-registers * 32 // 256) * 256
    by_registers = 4 * (most_registers // 4 // of_a_warp) // warps if registers else most_threads
    by_shared = most_shared // (shared + 1024) if shared else most_threads  # CUDA reserves 1 KiB for each block
    blocks = min(by_registers, by_shared, most_threads // (32 * warps))
    return round(blocks * warps * 32 / most_threads, 3)
