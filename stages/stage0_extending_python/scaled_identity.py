"""A multiple of the identity matrix, stored as two numbers, that torch's functions accept like a tensor.

`ScalarTensor` handles only the functions in a table. `ConvertingScalarTensor` handles every function: for those that
are not in the table, it creates the matrix.
"""

import torch
from torch.utils._pytree import tree_leaves, tree_map

HANDLED = {}  # torch's function -> the override that handles it


def implements(*functions):
    """Decorator: registers an override for each of these torch functions."""

    def register(override):
        HANDLED.update(dict.fromkeys(functions, override))
        return override

    return register


class ScalarTensor:
    """The matrix (N, N) with `value` on its diagonal and zeros elsewhere.

    Raises ValueError if N is not a whole number of at least 1, and TypeError if value is not a number.
    """

    def __init__(self, N, value):
        if not isinstance(N, int) or N < 1:
            raise ValueError(f"ScalarTensor: N is {N!r}, expected a whole number of at least 1")
        if not isinstance(value, (int, float)):
            raise TypeError(f"ScalarTensor: value is a {type(value).__name__}, expected a number")
        self.N, self.value = N, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not understood(types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))

    def __repr__(self):
        return f"{type(self).__name__}(N={self.N}, value={self.value})"

    # If no operand is a tensor, these are the only operators that Python can find.
    def __add__(self, other):
        return torch.add(self, other)

    __radd__ = __add__

    def __matmul__(self, other):
        return torch.matmul(self, other)

    # Without these two, `tensor == self` is False: if no operand handles ==, Python compares identities.
    def __eq__(self, other):
        return torch.eq(self, other)

    def __ne__(self, other):
        return torch.ne(self, other)

    __hash__ = object.__hash__

    def tensor(self, like=None):
        """The matrix (N, N), on the device of the tensor `like` and with the dtype of `like * value`."""
        like = torch.empty(0) if like is None else like
        dtype = torch.result_type(like, self.value)
        return self.value * torch.eye(self.N, dtype=dtype, device=like.device)


def understood(types):
    """Whether all types that override a call are tensors or scaled identities; other types handle it themselves."""
    return all(issubclass(kind, (torch.Tensor, ScalarTensor)) for kind in types)


def dense(operand, other):
    """An operand to compute with: a scaled identity becomes a tensor that fits the other operand."""
    if not isinstance(operand, ScalarTensor):
        return operand
    return operand.tensor(other if isinstance(other, torch.Tensor) else None)


# Each override has the parameters of torch's own function, with the same names. For cases that it does not support,
# it returns NotImplemented, and torch asks the other types.


@implements(torch.mean)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of all N * N numbers, N of which are not zero."""
    if dim is not None or keepdim or dtype is not None or out is not None:
        return NotImplemented
    return torch.tensor(input.value / input.N)


@implements(torch.add, torch.Tensor.add)
def add(input, other, *, alpha=1, out=None):
    """The sum input + alpha * other: a scaled identity for two of the same size, otherwise a tensor."""
    if isinstance(out, ScalarTensor):
        return NotImplemented
    both = isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor)
    if both and input.N == other.N and out is None:
        return type(input)(input.N, input.value + alpha * other.value)
    return torch.add(dense(input, other), dense(other, input), alpha=alpha, out=out)


@implements(torch.matmul, torch.Tensor.matmul)
def matmul(input, other, *, out=None):
    """The matrix product: the other factor times a number, without creating the matrix.

    Infinity and NaN stay where they are in that factor; the zeros of a full matrix would spread them over a column.
    """
    if out is not None:
        return NotImplemented
    columns, rows = length(input, -1), length(other, 0)
    if columns != rows:
        raise RuntimeError(f"matmul: input has {columns} columns, but other has {rows} rows")
    identity, factor = (input, other) if isinstance(input, ScalarTensor) else (other, input)
    if isinstance(factor, ScalarTensor):
        return type(identity)(identity.N, identity.value * factor.value)
    return identity.value * factor


def length(factor, dim):
    """The length of one of a factor's last two dimensions: 0 for rows, -1 for columns. A vector has only one."""
    if isinstance(factor, ScalarTensor):
        return factor.N
    return factor.shape[-2:][dim] if factor.dim() > 0 else "no"


class ConvertingScalarTensor(ScalarTensor):
    """A scaled identity that all torch functions accept. Those that are not in the table get the matrix instead."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        answer = super().__torch_function__(func, types, args, kwargs)
        if answer is not NotImplemented or not understood(types):
            return answer
        like = next((one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)), None)
        matrices = []

        def convert(one):
            if not isinstance(one, ScalarTensor):
                return one
            with torch.inference_mode(False):  # a tensor created in inference mode has no version
                matrices.append(one.tensor(like))
            return matrices[-1]

        args, kwargs = tree_map(convert, (args, kwargs))
        result = func(*args, **kwargs)
        if any(matrix._version > 0 for matrix in matrices):  # the call wrote to a temporary matrix
            raise TypeError(f"{func.__name__} writes into a scaled identity, which cannot store other values")
        return result
