"""Three functions that use the operators. All are right in eager mode; the check also compiles them."""

import torch

from . import _C  # noqa: F401  (registers the operators)


@torch.library.register_fake("leak::leak_")
def _(cell, share):
    return None


@torch.library.register_fake("leak::leak")
def _(cell, share, lost):
    return torch.empty_like(cell, memory_format=torch.contiguous_format)


def leaked(cell, share):
    """cell after two leaks: (B, S)."""
    state = cell.clone()
    torch.ops.leak.leak_(state, share)
    torch.ops.leak.leak_(state, share)
    return state


def leaked_row(cell, share):
    """2 * cell, after a leak of the first row: (B, S)."""
    state = cell * 2
    torch.ops.leak.leak_(state[:1], share)
    return state


def accounted(cell, share):
    """What is kept after two steps, and what was lost in them: both (B, S)."""
    lost = torch.zeros_like(cell)
    kept = torch.ops.leak.leak(cell, share, lost)
    return torch.ops.leak.leak(kept, share, lost), lost
