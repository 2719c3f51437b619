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


# BEGIN SOLUTION: overrides for torch.mean, torch.add and torch.matmul, under every name that a call may have.
@implements(torch.mean)
def mean(input):
    """The mean of all N * N numbers."""
    return input.values.sum() / len(input.values) ** 2


@implements(torch.add, torch.Tensor.add)
def add(input, other, *, alpha=1, out=None):
    """The sum input + alpha * other: a Diagonal if both are, else a tensor."""
    if isinstance(input, Diagonal) and isinstance(other, Diagonal) and out is None:
        return Diagonal(input.values + alpha * other.values)
    return torch.add(dense(input), dense(other), alpha=alpha, out=out)


@implements(torch.matmul, torch.Tensor.matmul)
def matmul(input, other):
    """The product with (N, columns) on the right, (rows, N) on the left, or a Diagonal. Creates no full matrix."""
    if isinstance(input, Diagonal) and isinstance(other, Diagonal):
        return Diagonal(input.values * other.values)
    if isinstance(input, Diagonal):
        return input.values[:, None] * other
    return input * other.values


@implements(torch.Tensor.__rmatmul__)
def right_matmul(other, input):
    """The product input @ other. The tensor, which is on the right, is the first argument."""
    return matmul(input, other)


# END SOLUTION
