"""The rungs of stage 7: its implementations of a sequence, by the names that a caller gives them."""

from __future__ import annotations

import torch

RUNGS = {"host": ("cpu",), "emulator": ("loop", "grid", "cluster"), "cuda": ("loop", "graph", "grid", "cluster")}


def rungs_of(target: str, device: str) -> list[str]:
    """The rungs that a target and a device have: clusters need compute capability 9.0."""
    has_clusters = target == "emulator" or (target == "cuda" and torch.cuda.get_device_capability(device) >= (9, 0))
    return [rung for rung in RUNGS[target] if rung != "cluster" or has_clusters]
