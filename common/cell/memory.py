"""The memory of a training step: what autograd keeps for backward, and the most that was in use at one time."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, UntypedStorage
from torch.profiler import ProfilerActivity, profile

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler's messages about itself stay off the page
Result = TypeVar("Result")


def saved_bytes(forward: Callable[[], object], without: Iterable[Tensor] = ()) -> int:
    """Bytes that `forward()` hands to autograd to keep for backward, each storage once.

    `without` are tensors that are there anyway, such as parameters. A tensor that a Function keeps as an attribute of
    `ctx` never passes here: only `peak_bytes` sees it.
    """
    _, kept = saved_storages(forward)
    for tensor in without:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storage.nbytes() for storage in kept.values())


def saved_storages(forward: Callable[[], Result]) -> tuple[Result, dict[int, UntypedStorage]]:
    """What `forward()` returns, and the storages that autograd keeps of it for backward, by address."""
    kept: dict[int, UntypedStorage] = {}  # holds them, so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return forward(), kept


def peak_bytes(step: Callable[[], object], device: str = "cpu") -> int:
    """The most bytes of tensors that `step()` had in use at one time, beyond what was in use before it.

    On the CPU every allocation is read from the profiler's trace, those inside of operations too; what was there
    before and is given back within does not lower the count. On a GPU PyTorch's allocator keeps the peak itself. What
    a step allocates once only, such as the gradients of parameters, counts in the first.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    in_use = peak = 0
    for _, change in changes:  # bytes, negative where memory is given back
        in_use += change
        peak = max(peak, in_use)
    return peak
