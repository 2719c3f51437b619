"""A made-up measurement in the format of common/results/records.py, for tests of the code that reads it."""

from __future__ import annotations

from common import stages
from common.results import records, schema, sources

SIZES = {"cpu": ((16, 32, 128), (64, 1024, 128)), "cuda": ((16, 32, 128), (4096, 1024, 1024))}
EAGER = 100.0  # microseconds of eager's forward at the first size; the second takes 10 times, forward+backward 4
RATIOS = {"eager": 1.0, "torch.compile": 1.25, "stage 1": 1.0, "stage 2": 0.8}
SAVED = {
    "eager": 64 * 1024,
    "torch.compile": 32 * 1024,
    "stage 1": 64 * 1024,
    "stage 2": 48 * 1024,
    "stage 3": 40 * 1024,
}


def measurement(name: str = records.THIS_MACHINE, gpu: str | None = None, ratios: dict[str, float] = RATIOS) -> dict:
    """A result on CPU tensors and, with a GPU, on CUDA tensors; its sources are the current ones."""
    rows = [
        row(implementation, ratio, device, grads, size, which, k)
        for device in (["cpu", "cuda"] if gpu else ["cpu"])
        for grads in ("all", "parameters")
        for k, size in enumerate(SIZES[device])
        for which in ("forward", "forward+backward")
        for implementation, ratio in ratios.items()
    ]
    return {
        "name": name,
        "schema": schema.SCHEMA,
        "date": "2026-03-14T15:09:26Z",
        "quick": False,
        "machine": {
            "cpu": "Abacus 9000", "cores": 2, "memory_gib": 16.0, "system": "Linux x86_64", "gpu": gpu,
            "gpu_memory_gib": 24.0 if gpu else None, "gpu_clocks_mhz": None, "driver": None,
        },
        "versions": {
            "python": "3.12.3", "torch": "2.15.0+cu132", "cuda": "13.2", "cudnn": None, "g++": "13.3", "nvcc": None
        },
        "sources": {str(number): sources.hash_stage(stages.find_stage(number)) for number in (1, 2)},
        "rows": rows,
        "not_run": [],
    }  # fmt: skip


def row(name: str, ratio: float, device: str, grads: str, size: tuple, which: str, k: int) -> dict:
    """One row: eager's time, longer for the second size and for both passes, times the implementation's ratio."""
    median = EAGER * ratio * 10**k * (4 if which == "forward+backward" else 1)
    stage = int(name[-1]) if name.startswith("stage") else None
    return {
        "name": name,
        "stage": stage,
        "target": "host" if stage else None,
        "device": device,
        "dtype": "float32",
        "maths": "IEEE",
        "threads": 2 if device == "cpu" else None,
        "grads": grads,
        "B": size[0],
        "I": size[1],
        "S": size[2],
        "pass": which,
        "median": median,
        "q1": 0.95 * median,
        "q3": 1.2 * median,
        "samples": 25,
        "ratio": ratio,
        "saved_bytes": SAVED.get(name, SAVED["eager"]),
        "saved_input_bytes": 1024,
        "saved_output_bytes": 0,
        "build_seconds": 12.5 if stage == 2 else None,
    }


def kernel(name: str, which: str, median: float, B: int = 8192, S: int = 4096, **changes: object) -> dict:
    """A row of the kernels alone; a stage's moves 9 tensors forward and 10 backward."""
    stage = int(name[-1]) if name.startswith("stage") else None
    tensors = {"forward": 9, "backward": 10}[which]
    return {
        "name": name,
        "stage": stage,
        "pass": which,
        "dtype": "float32",
        "B": B,
        "S": S,
        "kernels": 1 if stage else 7,
        "median": median,
        "q1": 0.99 * median,
        "q3": 1.01 * median,
        "samples": 30,
        "bytes": tensors * B * S * 4 if stage else None,
        "copy_gb_per_second": 4300.0,
        "sum_gb_per_second": 4400.0,
        "registers": 28 if stage else None,
        "threads_per_block": 256 if stage else None,
        "occupancy": 1.0 if stage else None,
    } | changes


KERNELS = [
    kernel("eager", "forward", 681.0),
    kernel("eager", "backward", 1076.0),
    kernel("stage 3", "forward", 330.0),
    kernel("stage 3", "backward", 400.0),
    kernel("stage 3", "forward", 42.0, 4096, 1024),
]
