"""What a call asks of ATen, as the profiler sees it: from Python or from C++ is all the same to it."""

from __future__ import annotations

from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile

VIEWS = {"chunk", "detach", "expand", "narrow", "select", "slice", "split", "t", "transpose", "unbind", "view"}


def _events(call: Callable[[], object], **options: bool) -> list:
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True, **options) as profiler:
        call()
    return [event for event in profiler.events() if event.name.startswith("aten::")]


def operations(call: Callable[[], object]) -> list[str]:
    """The ATen operations that no other one calls, in order, views left out."""

    def is_outermost(event) -> bool:
        while (event := event.cpu_parent) is not None:
            if event.name.startswith("aten::"):
                return False
        return True

    names = [event.name.removeprefix("aten::") for event in _events(call) if is_outermost(event)]
    return [name for name in names if name not in VIEWS]


def allocations(call: Callable[[], object], least: int) -> int:
    """How many pieces of memory of at least so many bytes the operations of a call take."""
    return sum(event.self_cpu_memory_usage >= least for event in _events(call, profile_memory=True))
