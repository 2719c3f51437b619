"""The ATen operations of a call, as the profiler records them, whether Python or C++ calls them."""

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
    """The outermost ATen operations in order, without views."""

    def is_outermost(event) -> bool:
        while (event := event.cpu_parent) is not None:
            if event.name.startswith("aten::"):
                return False
        return True

    names = [event.name.removeprefix("aten::") for event in _events(call) if is_outermost(event)]
    return [name for name in names if name not in VIEWS]


def allocations(call: Callable[[], object], least: int) -> int:
    """How many allocations of at least this many bytes the operations of a call make."""
    return sum(event.self_cpu_memory_usage >= least for event in _events(call, profile_memory=True))
