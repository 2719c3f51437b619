"""A diagonal matrix, stored as its diagonal."""

import torch

HANDLED = {}  # torch's function -> the override that handles it


def implements(*functions):
    """Decorator: registers an override for each of these torch functions."""

    def register(override):
        HANDLED.update(dict.fromkeys(functions, override))
        return override

    return register


class Diagonal:
    """The matrix (N, N) with `values` (N) on its diagonal and zeros elsewhere."""

    def __init__(self, values):
        self.values = values

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))

    def tensor(self):
        """The matrix."""
        return torch.diag(self.values)


def dense(operand):
    """An operand as a tensor: for a Diagonal, the full matrix."""
    return operand.tensor() if isinstance(operand, Diagonal) else operand


@implements(torch.mean, torch.Tensor.mean)
def mean(input):
    return input.values.mean() / len(input.values)


@implements(torch.add, torch.Tensor.add, torch.Tensor.__radd__)
def add(input, other, *, alpha=1, out=None):
    if isinstance(input, Diagonal) and isinstance(other, Diagonal) and out is None:
        return Diagonal(input.values + alpha * other.values)
    return torch.add(dense(input), dense(other), alpha=alpha, out=out)


@implements(torch.matmul, torch.Tensor.matmul)
def matmul(input, other):
    if isinstance(input, Diagonal) and isinstance(other, Diagonal):
        return Diagonal((input.values[:, None] * other.values).diagonal())
    if isinstance(input, Diagonal):
        return input.values * other if other.dim() == 1 else input.values[:, None] * other
    return input * other.values


@implements(torch.Tensor.__rmatmul__)
def rmatmul(other, input):
    return matmul(input, other)
