"""The calls that `make check` makes. Do not change this file; edit counting.py."""

import contextlib

import torch
import torch.nn.functional as F

from .counting import Counting, multiplications


def in_place(a, b):
    """A copy of a after add_, which returns the tensor itself."""
    copy = a.clone()
    added = copy.add_(1)
    assert added is copy, "copy.add_(1) returns another object than copy"
    copy.requires_grad_()
    assert copy.requires_grad, "copy.requires_grad_() has no effect on copy"
    return added.detach()


def differentiated(a, b):
    """a, whose product with b has a gradient."""
    a = a.detach().requires_grad_()
    product = a @ b
    assert product.requires_grad, "a requires a gradient, but a @ b does not"
    (d_a,) = torch.autograd.grad(product.sum(), a, allow_unused=True)
    assert d_a is not None, "the gradient of a @ b does not reach a: the product is cut off from its graph"
    return a.detach()


def stored(a, b):
    """A product that is stored in an existing matrix."""
    product = torch.zeros(len(a), b.size(1))
    result = torch.mm(a, b, out=product)
    assert product.any(), "nothing is stored in the matrix that `out` names"
    return result


def failing(a, b):
    """A product whose sizes do not match."""
    with contextlib.suppress(RuntimeError):
        a @ torch.cat([b, b])
    return torch.relu(a)


CALLS = {
    "torch.matmul(a, b)": torch.matmul,
    "torch.matmul(input=a, other=b)": lambda a, b: torch.matmul(input=a, other=b),
    "torch.mm(a, b)": torch.mm,
    "torch.mm(a, mat2=b)": lambda a, b: torch.mm(a, mat2=b),
    "torch.mm(mat2=b, input=a)": lambda a, b: torch.mm(mat2=b, input=a),
    "a.matmul(b)": lambda a, b: a.matmul(b),
    "a.mm(b)": lambda a, b: a.mm(b),
    "a.matmul(other=b)": lambda a, b: a.matmul(other=b),
    "a.mm(mat2=b)": lambda a, b: a.mm(mat2=b),
    "a @ b": lambda a, b: a @ b,
    "torch.mm(a, b, out=product)": stored,
    "F.linear(a, b.T)": lambda a, b: F.linear(a, b.T),
    "F.linear(input=a, weight=b.T)": lambda a, b: F.linear(input=a, weight=b.T),
    "F.linear(a, weight=b.T, bias=bias)": lambda a, b: F.linear(a, weight=b.T, bias=torch.ones(b.size(1))),
    "F.linear(a, bias=bias, weight=b.T)": lambda a, b: F.linear(a, bias=torch.ones(b.size(1)), weight=b.T),
    "F.linear(a, b.T, bias)": lambda a, b: F.linear(a, b.T, torch.ones(b.size(1))),
    "F.linear(a, b.T, None)": lambda a, b: F.linear(a, b.T, None),
    "a @ b[:, 0]": lambda a, b: a @ b[:, 0],
    "torch.stack([a, a]) @ b": lambda a, b: torch.stack([a, a]) @ b,
    "F.linear(a[0], b.T)": lambda a, b: F.linear(a[0], b.T),
    "F.linear(torch.stack([a, a]), b.T)": lambda a, b: F.linear(torch.stack([a, a]), b.T),
    "a[:, :0] @ b[:0]": lambda a, b: a[:, :0] @ b[:0],
    "torch.relu(a @ b) @ b.T": lambda a, b: torch.relu(a @ b) @ b.T,
    "a @ b + a @ b": lambda a, b: a @ b + a @ b,
    "a * 2 + a.sum()": lambda a, b: a * 2 + a.sum(),
    "torch.split(a, len(a))[0] @ b": lambda a, b: torch.split(a, len(a))[0] @ b,
    "copy = a.clone(); copy.add_(1)": in_place,
    "torch.max(a, dim=0).values": lambda a, b: torch.max(a, dim=0).values,
    "torch.cat([a, a])": lambda a, b: torch.cat([a, a]),
    "a @ b, where a requires a gradient": differentiated,
    "a @ torch.cat([b, b]), which raises an error": failing,
}


def trial(call, a, b, which):
    """The result of a call with two matrices, and its count. The matrices named in `which` are Counting."""
    given = [tensor.as_subclass(Counting) if name in which else tensor for name, tensor in (("a", a), ("b", b))]
    before = multiplications[0]
    result = CALLS[call](*given)
    counted = multiplications[0] - before
    return {"kind": type(result).__name__, "result": result.as_subclass(torch.Tensor), "counted": counted}
