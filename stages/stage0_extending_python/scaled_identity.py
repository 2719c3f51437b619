"""A multiple of the identity, kept as two numbers, that torch's functions take like a tensor.

`ScalarTensor` answers the functions of a table and no others. `ConvertingScalarTensor` answers every one: where the
table has nothing, it makes the matrix.
"""

import torch
from torch.utils._pytree import tree_leaves, tree_map

HANDLED = {}  # torch's function -> the override that answers for it


def implements(*functions):
    """A decorator: the override answers for each of these functions of torch."""

    def register(override):
        HANDLED.update(dict.fromkeys(functions, override))
        return override

    return register


class ScalarTensor:
    """The matrix of (N, N) with `value` on its diagonal and zeros elsewhere.

    Raises ValueError where N is no whole number of at least 1, TypeError where value is no number.
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

    # Where no operand is a tensor, Python finds an operator here or nowhere.
    def __add__(self, other):
        return torch.add(self, other)

    __radd__ = __add__

    def __matmul__(self, other):
        return torch.matmul(self, other)

    # Without these two, Python answers `tensor == self` with False: it takes identity where nobody knows better.
    def __eq__(self, other):
        return torch.eq(self, other)

    def __ne__(self, other):
        return torch.ne(self, other)

    __hash__ = object.__hash__

    def tensor(self, like=None):
        """The matrix (N, N). On the device of the tensor `like`, and of the dtype that `like * value` has."""
        like = torch.empty(0) if like is None else like
        dtype = torch.result_type(like, self.value)
        return self.value * torch.eye(self.N, dtype=dtype, device=like.device)


def understood(types):
    """Whether the types that override a call are tensors and scaled identities: others may know better than we do."""
    return all(issubclass(kind, (torch.Tensor, ScalarTensor)) for kind in types)


def dense(operand, other):
    """An operand as something to compute with beside the other one: a scaled identity becomes a tensor."""
    if not isinstance(operand, ScalarTensor):
        return operand
    return operand.tensor(other if isinstance(other, torch.Tensor) else None)


# Each override has the parameters of torch's own function, under the same names. What it does not do itself it leaves
# to others, by NotImplemented.


@implements(torch.mean)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean of all N * N numbers, N of which are not zero."""
    if dim is not None or keepdim or dtype is not None or out is not None:
        return NotImplemented
    return torch.tensor(input.value / input.N)


@implements(torch.add, torch.Tensor.add)
def add(input, other, *, alpha=1, out=None):
    """The sum input + alpha * other: two scaled identities of one size make a third, anything else a tensor."""
    if isinstance(out, ScalarTensor):
        return NotImplemented
    both = isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor)
    if both and input.N == other.N and out is None:
        return type(input)(input.N, input.value + alpha * other.value)
    return torch.add(dense(input, other), dense(other, input), alpha=alpha, out=out)


@implements(torch.matmul, torch.Tensor.matmul)
def matmul(input, other, *, out=None):
    """The matrix product: the other factor times a number, so that no matrix is made for it.

    Infinity and NaN stay where they are in that factor; the zeros of a matrix would spread them over a column.
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
    """Of a factor's last two dimensions, the length of one: dim 0 are rows, -1 columns. A vector has one length."""
    if isinstance(factor, ScalarTensor):
        return factor.N
    return factor.shape[-2:][dim] if factor.dim() > 0 else "no"


class ConvertingScalarTensor(ScalarTensor):
    """A scaled identity that all of torch takes. What the table lacks is called with the matrix instead."""

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
            with torch.inference_mode(False):  # a tensor of inference mode has no version
                matrices.append(one.tensor(like))
            return matrices[-1]

        args, kwargs = tree_map(convert, (args, kwargs))
        result = func(*args, **kwargs)
        if any(matrix._version > 0 for matrix in matrices):  # it was written to, and will be gone
            raise TypeError(f"{func.__name__} writes into a scaled identity, which cannot hold what is written")
        return result
