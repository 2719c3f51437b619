"""Types that torch accepts as tensors. Syllabus 0.7 to 0.12; scaled_identity.py, tensor_likes.py, coverage.py."""

from __future__ import annotations

import operator
from functools import partial

import torch
from torch import Tensor

from ...build import modules
from ..lines import Check
from . import checks

stage = modules.load_stage(0)
identity, likes, coverage = stage.scaled_identity, stage.tensor_likes, stage.coverage
KINDS = (identity.ScalarTensor, identity.ConvertingScalarTensor)
refuses = partial(checks.refuses, kinds=(TypeError, ValueError, RuntimeError))


def equal(name: str, got: object, want: Tensor) -> None:
    """Raises AssertionError unless a tensor or scaled identity equals the expected tensor."""
    got = got.tensor() if isinstance(got, identity.ScalarTensor) else got
    assert isinstance(got, Tensor), f"{name} is a {type(got).__name__}, expected a tensor"
    close = got.shape == want.shape and torch.allclose(got, want.to(got.dtype), atol=1e-6)
    assert close, f"{name} is {got.tolist()}, expected {want.tolist()}"


def operations() -> str:
    """Sums and products with a tensor on either side and with another scaled identity, as functions and operators."""
    spellings = {"add": (torch.add, operator.add), "matmul": (torch.matmul, operator.matmul)}
    N, count = int(torch.randint(2, 9, ())), 0
    tensor = torch.randn(N, N)
    for kind in KINDS:
        one, other = (kind(N, float(value)) for value in torch.randn(2))
        equal("mean", torch.mean(input=one), one.tensor().mean())
        for name, functions in spellings.items():
            for function in functions:
                for a, b in ((one, tensor), (tensor, one), (one, other)):
                    equal(name, function(a, b), function(*(identity.dense(x, None) for x in (a, b))))
                    count += 1
            equal(f"Tensor.{name}", getattr(tensor, name)(one), getattr(torch, name)(tensor, one.tensor()))
            kept = getattr(torch, name)(one, other)
            assert isinstance(kept, kind), f"{name} of two scaled identities makes a {type(kept).__name__}"
        out = torch.zeros(N, N)
        torch.add(one, tensor, alpha=3, out=out)
        equal("out", out, one.tensor() + 3 * tensor)
    return f"mean, and {count} sums and products, are those of the matrix of {N} by {N}"


def refused_operations() -> str:
    """Refuses wrong sizes, None, functions that the table lacks, and writes into a temporary matrix."""
    strict, converting = (kind(3, 2.0) for kind in KINDS)
    refuses("N = 0", lambda: identity.ScalarTensor(0, 1.0), "N is 0")
    refuses("N = 2.5", lambda: identity.ScalarTensor(2.5, 1.0), "N is 2.5")
    refuses("a value of None", lambda: identity.ScalarTensor(3, None), "NoneType")
    for one in (strict, converting):
        refuses("a sum with another N", lambda one=one: torch.add(one, type(one)(4, 1.0)), "size")
        refuses("a product with another N", lambda one=one: one @ type(one)(4, 1.0), "3 columns")
        refuses("a product with None", lambda one=one: one @ None, "NoneType")
        refuses("a sum into a scaled identity", lambda one=one: torch.add(one, one, out=one), "add")
    refuses("a function that the table lacks", lambda: torch.relu(strict), "relu")
    refuses("==, which the table lacks", lambda: torch.ones(3, 3) == strict, "eq")
    refuses("an operation in place", lambda: torch.relu_(converting), "relu_")
    return "wrong N, None, unhandled functions, lost writes"


def logged_calls() -> str:
    """Functions, methods, operators and attributes are logged, and their results are logging tensors, too."""
    log = likes.LoggingTensor.calls
    log.clear()
    x = torch.randn(3, 4).as_subclass(likes.LoggingTensor)
    result = torch.nn.functional.relu(x @ torch.randn(4, 2)).sum()
    x.shape  # noqa: B018
    seen = [name.removeprefix("torch.") for name in log]
    want = ["Tensor.matmul", "nn.functional.relu", "Tensor.sum", "Tensor.shape.__get__"]
    assert seen == want, f"the log has {seen}, expected {want}"
    assert isinstance(result, likes.LoggingTensor), f"a result is a {type(result).__name__}, expected a LoggingTensor"
    return ", ".join(seen)


def carried_sources() -> str:
    """Metadata passes through lists, tuples and calls without keywords, and is merged."""
    a, b = (likes.Sourced(torch.randn(2, 3), {name}) for name in ("a", "b"))
    plain = torch.randn(2, 3)
    calls = {
        "sum without keywords": (torch.sum(a), a.tensor.sum(), {"a"}),
        "a tensor + one": (plain + a, plain + a.tensor, {"a"}),
        "add of two": (torch.add(a, b), a.tensor + b.tensor, {"a", "b"}),
        "cat of a list": (torch.cat([a, plain, b]), torch.cat([a.tensor, plain, b.tensor]), {"a", "b"}),
        "max, a tuple": (torch.max(a, dim=0).values, a.tensor.amax(dim=0), {"a"}),
        "linear with a bias of None": (torch.nn.functional.linear(a, b, None), a.tensor @ b.tensor.T, {"a", "b"}),
    }
    for name, (got, tensor, names) in calls.items():
        assert isinstance(got, likes.Sourced), f"{name} gives a {type(got).__name__}, expected Sourced"
        equal(name, got.tensor, tensor)
        assert got.sources == names, f"{name} has sources {sorted(got.sources)}, expected {sorted(names)}"
    refuses("out with sources", lambda: torch.add(a, b, out=a), "out")
    return f"through {len(calls)} kinds of call"


def covered() -> str:
    """How many of all overridable functions with one argument each type supports."""
    matrix = identity.ScalarTensor(3, 2.0).tensor()
    makers = {kind.__name__: lambda kind=kind: kind(3, 2.0) for kind in KINDS}
    makers["LoggingTensor"] = lambda: matrix.clone().as_subclass(likes.LoggingTensor)
    found = {name: coverage.coverage(matrix, make) for name, make in makers.items()}
    total = {name: [sum(column) for column in zip(*counts.values(), strict=True)] for name, counts in found.items()}
    strict, number = total["ScalarTensor"]
    assert number > 300, f"only {number} functions were tried"
    assert strict == 1, f"ScalarTensor covers {strict} functions of one argument, but its table has only mean"
    for name, (right, all_) in found["ConvertingScalarTensor"].items():
        if name.startswith("torch"):  # methods and attributes belong to tensors
            assert right >= 0.95 * all_, f"ConvertingScalarTensor covers {right} of {all_} functions of {name}"
    logged = total["LoggingTensor"][0]
    assert logged >= 0.95 * number, f"LoggingTensor covers {logged} of {number} functions"
    return "of {} with one argument: {}".format(
        number, ", ".join(f"{name} {right}" for name, (right, _) in total.items())
    )


CHECKS = (
    Check("scaled identity: mean, add, matmul", operations),
    Check("scaled identity: invalid operations", refused_operations),
    Check("a subclass that logs", logged_calls),
    Check("a wrapper that carries sources", carried_sources),
    Check("overridable functions: coverage", covered),
)
