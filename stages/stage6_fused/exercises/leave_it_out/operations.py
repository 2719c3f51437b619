"""The ATen operations of a pass of the cell, also those called from C++. Checks run it in the learner's process."""

import os
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

from .lltm import lltm

COPIES = ("cat", "clone", "_to_copy")
FACTORS = {"mm": (0, 1), "addmm": (1, 2), "addmm_": (1, 2)}  # which arguments are multiplied

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler prints no messages about itself


def passes(needed, asked, gradients, *inputs):
    """The operations of forward and backward, by name: `all`, and `own`, which no other operation calls.

    `multiplications` are those of their matrix products. `copying` has the operations that call one of COPIES, and
    which one; a product may copy its factors.

    `needed` are the indices of the inputs that need a gradient, and `asked` those of the inputs whose gradients
    backward is called for. None in `gradients` is a missing gradient.
    """
    inputs = [tensor.detach().requires_grad_(k in needed) for k, tensor in enumerate(inputs)]
    leaves = [inputs[k] for k in asked]
    results, forward = profiled(lambda: lltm(*inputs))
    pairs = [(result, grad) for result, grad in zip(results, gradients, strict=True) if grad is not None]
    heads, grads = zip(*pairs, strict=True)
    _, backward = profiled(lambda: torch.autograd.grad(heads, leaves, grads, retain_graph=True, allow_unused=True))
    return {"forward": forward, "backward": backward}


def profiled(call):
    """What a call returns and which operations it runs. An earlier call does the work that is done only once."""
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True, record_shapes=True) as profiler:
        value = call()
    events = [event for event in profiler.events() if event.name.startswith("aten::")]
    own = [event for event in events if not callers(event)]
    copying = {short(callers(event)[-1]): short(event) for event in events if copies_within(event)}
    found = {kind: Counter(short(e) for e in found) for kind, found in (("all", events), ("own", own))}
    return value, found | {"multiplications": sum(map(multiplications, events)), "copying": copying}


def multiplications(event):
    """How many numbers a matrix product multiplies; 0 for other operations."""
    if short(event) not in FACTORS:
        return 0
    left, right = (event.input_shapes[k] for k in FACTORS[short(event)])
    return left[0] * left[1] * right[1]


def copies_within(event):
    """Whether an event is a copy that another operation makes, but no product."""
    above = {short(caller) for caller in callers(event)}
    return short(event) in COPIES and bool(above) and not above & FACTORS.keys()


def callers(event):
    """The ATen operations that enclose an event, the outermost last."""
    found = []
    while (event := event.cpu_parent) is not None:
        found += [event] if event.name.startswith("aten::") else []
    return found


def short(event):
    """The name of an event without its namespace."""
    return event.name.removeprefix("aten::")
