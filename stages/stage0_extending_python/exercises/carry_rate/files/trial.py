"""The calls that `make check` makes. Do not change this file; edit signal.py."""

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

from .signal import Signal


def twice(a, b, plain):
    """The second of two calls with the same list."""
    sounds = [a, b]
    torch.cat(sounds)
    return torch.cat(sounds)


def with_out(a, b, plain):
    """A sum that is stored in an existing tensor. An error must come before anything is stored."""
    total = plain.clone()
    try:
        return torch.add(a, b, out=total)
    except ValueError:
        assert torch.equal(total, plain), (
            "the sum was stored before the ValueError: compare the rates before the call"
        )
        raise


CALLS = {
    "F.relu(a)": lambda a, b, plain: F.relu(a),
    "torch.sum(a, dim=0)": lambda a, b, plain: torch.sum(a, dim=0),
    "torch.sum(a)": lambda a, b, plain: torch.sum(a),
    "torch.add(a, b)": lambda a, b, plain: torch.add(a, b),
    "plain + a": lambda a, b, plain: plain + a,
    "torch.cat([a, b])": lambda a, b, plain: torch.cat([a, b]),
    "torch.cat((a, b))": lambda a, b, plain: torch.cat((a, b)),
    "torch.cat([plain, b], dim=1)": lambda a, b, plain: torch.cat([plain, b], dim=1),
    "torch.stack(tensors=[a, b])": lambda a, b, plain: torch.stack(tensors=[a, b]),
    "F.linear(a, weight=b, bias=None)": lambda a, b, plain: F.linear(a, weight=b, bias=None),
    "torch.max(a, dim=0)": lambda a, b, plain: torch.max(a, dim=0),
    "torch.max(a, dim=0).values": lambda a, b, plain: torch.max(a, dim=0).values,
    "torch.cat([a, a, plain, b])": lambda a, b, plain: torch.cat([a, a, plain, b]),
    "torch.cat([a, b, a])": lambda a, b, plain: torch.cat([a, b, a]),
    "torch.cat(sounds), a second time with the list sounds = [a, b]": twice,
    "torch.histogramdd(a, bins=[2, 2, 2, 2])": lambda a, b, plain: torch.histogramdd(a, bins=[2, 2, 2, 2]),
    "torch.histogramdd(a, bins=[2, 2, 2, 2]).bin_edges": (
        lambda a, b, plain: torch.histogramdd(a, bins=[2, 2, 2, 2]).bin_edges
    ),
    "torch.split(b, 1)": lambda a, b, plain: torch.split(b, 1),
    "torch.numel(a)": lambda a, b, plain: torch.numel(a),
    "torch.result_type(a, plain)": lambda a, b, plain: torch.result_type(a, plain),
    "torch.equal(a, b)": lambda a, b, plain: torch.equal(a, b),
    "torch.add(a, b, out=sum)": with_out,
}


def trial(call, a, rate_a, b, rate_b, plain):
    """The results of a call as a list, each signal as [tensor, rate], or the message of its ValueError.

    `in_tuple` tells whether the call returned them in a tuple.
    """
    try:
        result = CALLS[call](Signal(a, rate_a), Signal(b, rate_b), plain)
    except ValueError as error:
        return {"refused": str(error)}
    results = [[one.tensor, one.rate] if isinstance(one, Signal) else [one, None] for one in tree_leaves(result)]
    return {"results": results, "in_tuple": isinstance(result, tuple)}
