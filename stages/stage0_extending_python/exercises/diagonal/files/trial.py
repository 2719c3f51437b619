"""The calls that `make check` makes. Do not change this file; edit diagonal.py."""

import torch

from .diagonal import Diagonal

CALLS = {
    "torch.mean(d)": lambda d, e, tensor: torch.mean(d),
    "torch.mean(input=d)": lambda d, e, tensor: torch.mean(input=d),
    "torch.add(tensor, d)": lambda d, e, tensor: torch.add(tensor, d),
    "torch.add(d, tensor, alpha=3)": lambda d, e, tensor: torch.add(d, tensor, alpha=3),
    "tensor.add(d)": lambda d, e, tensor: tensor.add(d),
    "tensor + d": lambda d, e, tensor: tensor + d,
    "d + tensor": lambda d, e, tensor: d + tensor,
    "torch.add(d, e)": lambda d, e, tensor: torch.add(d, e),
    "torch.add(d, e, alpha=-2)": lambda d, e, tensor: torch.add(d, e, alpha=-2),
    "torch.matmul(d, tensor)": lambda d, e, tensor: torch.matmul(d, tensor),
    "torch.matmul(tensor, other=d)": lambda d, e, tensor: torch.matmul(tensor, other=d),
    "tensor.matmul(d)": lambda d, e, tensor: tensor.matmul(d),
    "tensor @ d": lambda d, e, tensor: tensor @ d,
    "d @ tensor": lambda d, e, tensor: d @ tensor,
    "torch.matmul(d, e)": lambda d, e, tensor: torch.matmul(d, e),
}


def trial(call, d, e, tensor):
    """The result of a call with diagonals d and e (N), and whether it is a Diagonal."""
    found = CALLS[call](Diagonal(d), Diagonal(e), tensor)
    is_diagonal = isinstance(found, Diagonal)
    return {"is_diagonal": is_diagonal, "found": found.values if is_diagonal else found}


def written(d, tensor):
    """The tensor that torch.add should write d + tensor into, passed as `out`."""
    out = torch.full_like(tensor, torch.nan)
    torch.add(Diagonal(d), tensor, out=out)
    return out
