"""The memory of a training step: what autograd saves for backward, and the peak of memory in use."""

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

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # hides the profiler's messages about itself
Result = TypeVar("Result")


def saved_bytes(forward: Callable[[], object], without: Iterable[Tensor] = ()) -> int:
    """The bytes that `forward()` saves for backward through autograd, each storage counted once.

    `without` are tensors that exist anyway, such as parameters. This does not count a tensor that a Function keeps as
    an attribute of `ctx`: only `peak_bytes` includes it.
    """
    _, kept = saved_storages(forward)
    for tensor in without:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storage.nbytes() for storage in kept.values())


def saved_storages(forward: Callable[[], Result]) -> tuple[Result, dict[int, UntypedStorage]]:
    """The result of `forward()`, and the storages that autograd saves for backward, by address."""
    kept: dict[int, UntypedStorage] = {}  # holds them, so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return forward(), kept


def peak_bytes(step: Callable[[], object], device: str = "cpu") -> int:
    """The peak memory of `step()`: the most bytes of tensors in use at one time, beyond those in use before it.

    On the CPU, the count uses every allocation in the profiler's trace, including those inside operations; freeing
    memory from before the step does not lower it. On a GPU, PyTorch's allocator records the peak itself. Memory that
    is allocated only once, such as the gradients of parameters, counts in the first step.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event["ts"], event["args"]["Bytes"]) for event in events if event["name"] == "[memory]")
    in_use = peak = 0
    for _, change in changes:  # bytes, negative when memory is freed
        in_use += change
        peak = max(peak, in_use)
    return peak
