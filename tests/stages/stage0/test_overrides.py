"""Stage 0's types that torch's functions accept, what notebooks 00d and 00e say of the protocol, and their checks."""

from __future__ import annotations

import contextlib
import inspect
import operator

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import (
    TorchFunctionMode,
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    handle_torch_function,
    has_torch_function_unary,
    resolve_name,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from common import load
from common.check.primer import overrides
from common.check.primer.overrides import CHECKS

stage = load(0)
identity, likes = stage.scaled_identity, stage.tensor_likes
ScalarTensor, Converting = identity.ScalarTensor, identity.ConvertingScalarTensor
LoggingTensor, Sourced = likes.LoggingTensor, likes.Sourced
KINDS = pytest.mark.parametrize("kind", [ScalarTensor, Converting])


def answering(answer: object = NotImplemented, *bases: type, log: list | None = None, name: str = "Type") -> type:
    """A type that answers everything with this and enters its name in the log."""

    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if log is not None:
            log.append(name)
        return answer(func, types, args, kwargs) if callable(answer) else answer

    return type(name, bases, {"__torch_function__": classmethod(__torch_function__)})


# A scaled identity -----------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.7a")
def test_without_the_protocol_torch_wants_a_tensor():
    class TwoNumbers:
        N, value = 5, 2.0

    with pytest.raises(TypeError, match=r"mean\(\): argument 'input' \(position 1\) must be Tensor, not TwoNumbers"):
        torch.mean(TwoNumbers())


@pytest.mark.syllabus("0.7b")
def test_what_is_registered_answers(monkeypatch):
    monkeypatch.setattr(identity, "HANDLED", {})
    one = ScalarTensor(5, 2.0)
    with pytest.raises(TypeError):
        torch.trace(one)
    identity.implements(torch.trace)(lambda input: input.N * input.value)
    assert torch.trace(one) == 10


@pytest.mark.syllabus("0.7c")
@KINDS
@pytest.mark.parametrize("value", [2.0, 2, -0.3, 0.0])
def test_mean_is_value_by_n(kind, value):
    for mean in (torch.mean(kind(5, value)), torch.mean(input=kind(5, value))):
        torch.testing.assert_close(mean, torch.tensor(value / 5, dtype=torch.float32))
    assert torch.mean(kind(10**6, value)) == torch.tensor(value / 10**6)  # a tensor of it would have 10**12 numbers


@pytest.mark.syllabus("0.7d")
def test_a_misnamed_parameter_reads_the_builtin(monkeypatch):
    monkeypatch.setitem(identity.HANDLED, torch.mean, lambda t: input.value / input.N)
    with pytest.raises(AttributeError, match="has no attribute 'value'"):
        torch.mean(ScalarTensor(5, 2.0))


@pytest.mark.syllabus("0.7e")
@KINDS
@pytest.mark.parametrize("function", [torch.add, operator.add, torch.matmul, operator.matmul])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_mixed_operands(kind, function, dtype):
    one, tensor = kind(3, 0.1), torch.arange(9).reshape(3, 3).to(dtype)
    matrix = 0.1 * torch.eye(3, dtype=torch.float64)
    for got, want in (
        (function(one, tensor), function(matrix, tensor.double())),
        (function(tensor, one), function(tensor.double(), matrix)),
    ):
        assert got.dtype == (torch.float32 if dtype == torch.int64 else dtype)  # as of tensor * 0.1
        torch.testing.assert_close(got, want.to(got.dtype))


@pytest.mark.syllabus("0.7e")
@KINDS
def test_two_scaled_identities_make_a_third(kind):
    a, b = kind(3, 2.0), kind(3, 0.5)
    for got, value in ((a + b, 2.5), (torch.add(a, b, alpha=4), 4.0), (a @ b, 1.0)):
        assert (type(got), got.N, got.value) == (kind, 3, value)


@KINDS
@pytest.mark.parametrize("shape", [(3,), (3, 5), (4, 3, 5), (2, 1, 3, 5), (0, 3, 5), (3, 0)])
def test_products_of_all_shapes(kind, shape):
    right = torch.randn(shape)
    left, matrix = right if right.dim() == 1 else right.mT, kind(3, -2.0).tensor()
    torch.testing.assert_close(kind(3, -2.0) @ right, matrix @ right)
    torch.testing.assert_close(left @ kind(3, -2.0), left @ matrix)


@KINDS
def test_gradients_go_through(kind):
    tensor = torch.randn(3, 3, requires_grad=True)
    (kind(3, 5.0) @ tensor + kind(3, 1.0)).sum().backward()
    assert torch.equal(tensor.grad, torch.full((3, 3), 5.0))


@pytest.mark.syllabus("0.7f")
def test_nobody_compares_signatures(monkeypatch):
    ones, one = torch.ones(2, 2), ScalarTensor(2, 2.0)
    monkeypatch.setitem(identity.HANDLED, torch.add, lambda input, other: "without alpha")
    assert torch.add(one, ones) == "without alpha"
    for options in ({"alpha": 10}, {"out": torch.zeros(2, 2)}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            torch.add(one, ones, **options)


@pytest.mark.syllabus("0.7f")
def test_the_stand_in_for_add_has_no_alpha():
    assert "alpha" not in inspect.signature(get_testing_overrides()[torch.add]).parameters
    assert torch.equal(torch.add(torch.ones(2), torch.ones(2), alpha=10), torch.full((2,), 11.0))


@pytest.mark.syllabus("0.7f")
@KINDS
def test_alpha_and_out(kind):
    one, ones, out = kind(2, 2.0), torch.ones(2, 2), torch.zeros(2, 2)
    want = torch.tensor([[12.0, 10.0], [10.0, 12.0]])
    assert torch.equal(torch.add(one, ones, alpha=10), want)
    assert torch.add(one, ones, alpha=10, out=out) is out
    assert torch.equal(out, want)
    assert torch.equal(torch.add(one, one, out=out), 4 * torch.eye(2))


@pytest.mark.syllabus("0.7g")
def test_not_implemented_becomes_a_type_error():
    one, ones = ScalarTensor(2, 2.0), torch.ones(2, 2)
    for call in (torch.relu, F.relu, lambda one: ones * one, lambda one: torch.cat([ones, one])):
        with pytest.raises(TypeError):
            call(one)
    assert (ones == answering()()) is False  # Python compares identities
    for compare in (operator.eq, operator.ne):
        with pytest.raises(TypeError):
            compare(ones, one)


@KINDS
def test_others_may_know_better(kind):
    other = answering("an answer")()
    assert torch.add(kind(2, 1.0), other) == "an answer"
    with pytest.raises(TypeError):
        torch.add(kind(2, 1.0), answering()())


@pytest.mark.syllabus("0.7h")
@pytest.mark.parametrize(
    "call",
    [
        torch.relu,
        lambda one: F.relu(one, inplace=False),
        lambda one: torch.sum(one, dim=0),
        lambda one: torch.mean(one, 0, keepdim=True),
        lambda one: torch.mean(one, dtype=torch.float64),
        lambda one: torch.cat([torch.ones(1, 3), one]),
        lambda one: torch.ones(3, 3) - one,
        lambda one: torch.einsum("ij,jk->ik", torch.ones(3, 3), one),
        lambda one: F.linear(torch.ones(2, 3), one, None),
        lambda one: torch.matmul(one, torch.ones(3, 3), out=torch.zeros(3, 3)),
        lambda one: torch.eye(3).mul_(one),
        lambda one: one == 2,
        lambda one: torch.linalg.svdvals(one),
    ],
)
def test_converting_gives_what_the_matrix_gives(call):
    one = Converting(3, 2.0)
    for inference in (False, True):
        with torch.inference_mode(inference):
            torch.testing.assert_close(call(one), call(one.tensor()))


# What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("N", "value", "error", "says"),
    [
        (0, 1.0, ValueError, "N is 0, expected a whole number of at least 1"),
        (-3, 1.0, ValueError, "N is -3"),
        (2.0, 1.0, ValueError, "N is 2.0"),
        ("3", 1.0, ValueError, "N is '3'"),
        (None, 1.0, ValueError, "N is None"),
        (3, None, TypeError, "value is a NoneType, expected a number"),
        (3, torch.ones(2), TypeError, "value is a Tensor"),
    ],
)
def test_wrong_arguments_are_named(N, value, error, says):
    with pytest.raises(error, match=says):
        ScalarTensor(N, value)


@KINDS
def test_sizes_that_do_not_fit(kind):
    one = kind(3, 2.0)
    for call, says in (
        (lambda: one + kind(4, 1.0), "must match the size"),
        (lambda: one + torch.ones(2, 2), "must match the size"),
        (lambda: one @ kind(4, 1.0), "matmul: input has 3 columns, but other has 4 rows"),
        (lambda: torch.ones(4, 5) @ one, "matmul: input has 5 columns, but other has 3 rows"),
        (lambda: one @ torch.ones(2), "matmul: input has 3 columns, but other has 2 rows"),
        (lambda: one @ torch.ones(()), "matmul: input has 3 columns, but other has no rows"),
    ):
        with pytest.raises(RuntimeError, match=says):
            call()
    torch.testing.assert_close(one + kind(1, 1.0), one.tensor() + 1)  # (1, 1) is stretched, as among tensors


@KINDS
def test_none_is_no_operand(kind):
    one = kind(3, 2.0)
    for call in (
        lambda: one + None,
        lambda: one @ None,
        lambda: torch.add(None, one),
        lambda: torch.stack([one, None]),
    ):
        with pytest.raises(TypeError, match="NoneType"):
            call()


@KINDS
def test_a_direct_call_without_keyword_arguments(kind):
    assert kind.__torch_function__(torch.mean, (kind,), (kind(4, 2.0),), None) == 0.5
    assert kind.__torch_function__(torch.mean, (kind,), (kind(4, 2.0),)) == 0.5


@KINDS
def test_nothing_is_written_into_a_matrix_that_is_gone(kind):
    one = kind(3, 2.0)
    for call in (
        lambda: torch.add(torch.ones(3, 3), 1, out=one),
        lambda: torch.add(one, one, out=one),
        lambda: torch.relu_(one),
        lambda: F.relu(one, inplace=True),
    ):
        for inference in (False, True):
            with torch.inference_mode(inference), pytest.raises(TypeError):
                call()


# Spellings -------------------------------------------------------------------------------------------------------

NAMER = answering(lambda func, types, args, kwargs: resolve_name(func))()


@pytest.mark.syllabus("0.8a")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda it, ones: torch.add(ones, it), "torch.add"),
        (lambda it, ones: ones.add(it), "torch.Tensor.add"),
        (lambda it, ones: ones + it, "torch.Tensor.add"),
        (lambda it, ones: it + ones, "torch.Tensor.add"),
        (lambda it, ones: operator.iadd(ones, it), "torch.Tensor.add_"),
        (lambda it, ones: torch.subtract(ones, it), "torch.subtract"),
        (lambda it, ones: ones - it, "torch.Tensor.sub"),
        (lambda it, ones: it - ones, "torch.Tensor.__rsub__"),
        (lambda it, ones: ones**it, "torch.Tensor.__pow__"),
        (lambda it, ones: it @ ones, "torch.Tensor.__rmatmul__"),
    ],
)
def test_what_a_spelling_arrives_as(call, name):
    assert call(NAMER, torch.ones(2)) == name


@pytest.mark.syllabus("0.8a")
def test_the_operator_s_own_name_is_listed_and_never_comes(monkeypatch):
    assert torch.Tensor.__add__ in get_overridable_functions()[torch.Tensor]
    monkeypatch.setattr(identity, "HANDLED", {torch.Tensor.__add__: identity.add})
    with pytest.raises(TypeError):
        torch.ones(2, 2) + ScalarTensor(2, 1.0)


@pytest.mark.syllabus("0.8b")
def test_spellings_that_call_each_other_never_end():
    class Circular(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.add:
                return args[0].add(args[1])
            if func is torch.Tensor.add:
                return torch.add(*args)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Circular)
    for call in (lambda: x + 1, lambda: torch.add(x, 1)):
        with pytest.raises(RecursionError):
            call()
    assert isinstance(x * 2, Circular)


# Subclasses ------------------------------------------------------------------------------------------------------


class Pixels(torch.Tensor): ...


class Grey(Pixels): ...


class Colour(Pixels): ...


class Sound(torch.Tensor): ...


def of(kind: type) -> torch.Tensor:
    return torch.ones(2, 2).as_subclass(kind)


@pytest.mark.syllabus("0.9a")
def test_results_are_of_the_subclass():
    x = of(Pixels)
    for result in (
        x + 1,
        1 + x,
        x @ torch.ones(2, 2),
        x.mean(),
        x[0],
        torch.stack([x, x]),
        F.relu(x),
        x.max(0).values,
    ):
        assert type(result) is Pixels
    assert type(x.shape) is torch.Size


@pytest.mark.syllabus("0.9b")
@pytest.mark.parametrize("function", [operator.add, operator.matmul, torch.add, lambda a, b: torch.cat([a, b])])
def test_the_most_derived_type_wins(function):
    for a, b in ((Pixels, Grey), (Grey, Pixels), (torch.Tensor, Grey)):
        assert type(function(of(a), of(b))) is Grey


@pytest.mark.syllabus("0.9c")
@pytest.mark.parametrize("function", [operator.add, operator.matmul, torch.add, lambda a, b: torch.cat([a, b])])
def test_siblings_do_not_mix(function):
    for a, b in ((Grey, Colour), (Colour, Grey), (Pixels, Sound)):
        with pytest.raises(TypeError):
            function(of(a), of(b))


@pytest.mark.syllabus("0.9d")
def test_the_log_has_functions_methods_and_attributes():
    LoggingTensor.calls.clear()
    x = of(LoggingTensor)
    torch.exp(x), x.exp(), x + 1, x.T, F.softmax(x, 0), x[0]
    assert LoggingTensor.calls == [
        "torch.exp",
        "torch.Tensor.exp",
        "torch.Tensor.add",
        "torch.Tensor.T.__get__",
        "torch.nn.functional.softmax",
        "torch.Tensor.__getitem__",
    ]


@pytest.mark.syllabus("0.9e")
def test_super_switches_the_protocol_off_and_wraps():
    def subclass(run):
        return answering(lambda func, types, args, kwargs: run(func, args, kwargs or {}), torch.Tensor)

    with pytest.raises(RecursionError):
        of(subclass(lambda func, args, kwargs: func(*args, **kwargs))) + 1

    def switched_off(func, args, kwargs):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    assert type(of(subclass(switched_off)) + 1) is torch.Tensor
    assert type(of(LoggingTensor) + 1) is LoggingTensor


@pytest.mark.syllabus("0.9f")
def test_a_method_in_the_body_is_reached_by_its_own_calls_only():
    class OwnAdd(torch.Tensor):
        def add(self, other):
            return "ours"

    own, ones = of(OwnAdd), torch.ones(2, 2)
    assert own.add(1) == "ours"
    for result in (own + 1, 1 + own, torch.add(own, 1), ones.add(own)):
        assert torch.equal(result.as_subclass(torch.Tensor), ones + 1)


# Metadata --------------------------------------------------------------------------------------------------------


def two_sources(*shape: int) -> tuple:
    return tuple(Sourced(torch.randn(shape), {name}) for name in ("a", "b"))


@pytest.mark.syllabus("0.10a")
def test_an_attribute_is_lost_where_a_wrapper_keeps_it():
    x = of(Pixels)
    x.sources = {"a"}
    assert not hasattr(x + 1, "sources")
    a, _ = two_sources(2, 2)
    last = torch.exp(torch.sum(torch.add(a, 1), dim=0))
    assert (type(last), last.sources) == (Sourced, {"a"})


@pytest.mark.syllabus("0.10b")
def test_nested_arguments_and_results():
    a, b = two_sources(2, 2)
    plain = torch.randn(2, 2)
    joined = torch.cat([plain, a, b])
    assert torch.equal(joined.tensor, torch.cat([plain, a.tensor, b.tensor]))
    assert joined.sources == {"a", "b"}
    values, places = torch.max(a, 0)
    assert torch.equal(values.tensor, a.tensor.amax(0))
    assert values.sources == places.sources == {"a"}
    parts = torch.split(b, 1)
    assert [type(part) for part in parts] == [Sourced, Sourced]
    assert torch.numel(a) == 4


@pytest.mark.syllabus("0.10c")
def test_kwargs_is_none_where_there_are_none():
    seen = answering(lambda func, types, args, kwargs: (kwargs,))()
    assert torch.sum(seen) == (None,)
    assert torch.sum(seen, dim=0) == ({"dim": 0},)
    assert F.relu(seen) == ({"inplace": False},)
    with pytest.raises(TypeError, match=r"argument after \*\* must be a mapping, not NoneType"):
        torch.sum(answering(lambda func, types, args, kwargs: func(torch.ones(2), **kwargs))())
    a, _ = two_sources(2)
    assert torch.sum(a).sources == torch.sum(a, dim=0).sources == F.relu(a).sources == {"a"}


@pytest.mark.syllabus("0.10d")
def test_sources_are_merged():
    a, b = two_sources(3, 3)
    for result in (
        torch.add(a, b),
        torch.add(b, a),
        torch.where(a.tensor > 0, a, b),
        F.linear(a, weight=b, bias=None),
    ):
        assert result.sources == {"a", "b"}
    assert torch.add(a, 1).sources == {"a"}
    assert (a.sources, b.sources) == ({"a"}, {"b"})


def test_what_a_wrapper_refuses():
    a, b = two_sources(2)
    with pytest.raises(TypeError, match="add: out is Sourced"):
        torch.add(a, b, out=a)
    with pytest.raises(TypeError, match="NoneType"):
        torch.add(a, None)
    with pytest.raises(TypeError, match=r"tensor is a list, expected a torch\.Tensor"):
        Sourced([1.0], {"a"})
    for sources in ("a", None):
        with pytest.raises(TypeError, match="expected a set of names"):
            Sourced(torch.ones(2), sources)
    with pytest.raises(TypeError):
        torch.add(a, ScalarTensor(2, 1.0))  # neither knows the other
    assert "sources=['a']" in repr(a)


# Who is asked first ----------------------------------------------------------------------------------------------


@pytest.fixture
def asked():
    """A list of names in the order of asking, and types A and B with subclasses A2 of A and A3 of A2."""
    log = []
    A, B = answering(log=log, name="A"), answering(log=log, name="B")
    A2 = answering(NotImplemented, A, log=log, name="A2")
    A3 = answering(NotImplemented, A2, log=log, name="A3")
    return log, {"A": A, "B": B, "A2": A2, "A3": A3}


@pytest.mark.syllabus("0.11a", "0.11b")
@pytest.mark.parametrize(
    ("given", "order"),
    [
        ("A B", "A B"),
        ("B A", "B A"),
        ("A A2", "A2 A"),
        ("A B A2", "A2 A B"),
        ("B A A2", "B A2 A"),
        ("B A2 A B", "B A2 A"),
        ("A A2 A3", "A3 A2 A"),
    ],
)
@pytest.mark.parametrize("function", [torch.stack, lambda all_: torch.einsum("a,b,c,d", *all_)])
def test_subclasses_first_then_left_to_right(asked, given, order, function):
    log, kinds = asked
    with pytest.raises(TypeError):
        function([kinds[name]() for name in given.split()])
    assert log == order.split()


@pytest.mark.syllabus("0.11c")
@pytest.mark.parametrize("answer", ["an answer", None, 0])
def test_the_first_answer_is_the_result(asked, answer):
    log, kinds = asked
    answers = answering(answer, log=log, name="answers")
    assert torch.stack([kinds["A"](), answers(), kinds["B"]()]) == answer
    assert log == ["A", "answers"]


# How much of torch -----------------------------------------------------------------------------------------------


@pytest.mark.syllabus("0.12a")
def test_the_list_of_overridable_functions():
    listed = get_overridable_functions()
    for namespace, function in (
        (torch, torch.add),
        (F, F.relu),
        (torch.Tensor, torch.Tensor.add),
        (torch.linalg, torch.linalg.inv),
        (torch.fft, torch.fft.fft),
    ):
        assert function in listed[namespace]
    unique = stage.coverage.overridable()
    assert sum(map(len, unique.values())) == len({function for one in listed.values() for function in one})
    assert torch.Tensor.shape.__get__ in unique["attributes of Tensor"]


@pytest.mark.syllabus("0.12b")
def test_an_ignored_function_may_ask_all_the_same():
    ignored = get_ignored_functions()
    assert not ignored & {function for one in get_overridable_functions().values() for function in one}
    log = []
    one = answering(log=log)()
    for function, asks in ((torch.tensor, False), (torch.is_tensor, False), (torch.rand_like, True)):
        assert function in ignored
        log.clear()
        with contextlib.suppress(TypeError, RuntimeError):
            function(one)
        assert bool(log) is asks, function


def energy(x):
    if has_torch_function_unary(x):
        return handle_torch_function(energy, (x,), x)
    return x.square().sum()


@pytest.mark.syllabus("0.12d")
def test_a_function_of_one_s_own_asks(monkeypatch):
    one = ScalarTensor(3, 2.0)
    assert energy(torch.full((3,), 2.0)) == 12
    with pytest.raises(TypeError, match="no implementation found"):
        energy(one)
    monkeypatch.setitem(identity.HANDLED, energy, lambda x: x.N * x.value**2)
    assert energy(one) == 12


class Named(TorchFunctionMode):
    """A mode that writes its name and the function's down, and computes softmax itself where it is told to."""

    def __init__(self, name: str, log: list, softmax: bool = False):
        super().__init__()
        self.name, self.log, self.softmax = name, log, softmax

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append((self.name, func.__name__))
        if not (self.softmax and func is F.softmax):
            return func(*args, **(kwargs or {}))
        with self:
            power = torch.exp(args[0])
            return power / power.sum()


@pytest.mark.syllabus("0.12e")
def test_modes_are_asked_from_the_inner_one_outwards():
    log, x = [], torch.randn(3)
    one = answering(lambda func, types, args, kwargs: log.append(("type", func.__name__)))()
    with Named("outer", log), Named("inner", log):
        torch.exp(one)
        energy(x)
    assert log[:3] == [("inner", "exp"), ("outer", "exp"), ("type", "exp")]
    assert log[3:5] == [("inner", "energy"), ("outer", "energy")]
    want = F.softmax(x, dim=0)
    for softmax, inside in ((False, []), (True, ["exp", "sum", "div"])):
        log.clear()
        with Named("mode", log, softmax):
            got = F.softmax(x, dim=0)
        torch.testing.assert_close(got, want)
        assert [name for _, name in log] == ["softmax", *inside]


class Dispatched(TorchDispatchMode):
    def __init__(self, log: list):
        super().__init__()
        self.log = log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.syllabus("0.12f")
def test_only_torch_dispatch_sees_what_a_call_runs():
    calls, operations = [], []
    for mode in (Named("mode", calls), Dispatched(operations)):
        x = torch.randn(3, requires_grad=True)
        with mode:
            x.softmax(0).sum().backward()
    aten = torch.ops.aten
    assert [name for _, name in calls] == ["softmax", "sum", "backward"]
    assert {aten._softmax.default, aten.sum.default, aten._softmax_backward_data.default} <= set(operations)


@pytest.mark.syllabus("0.12c")
def test_coverage_counts_what_agrees(monkeypatch):
    matrix = 2 * torch.eye(3)

    def covered(make) -> tuple[int, int]:
        return tuple(map(sum, zip(*stage.coverage.coverage(matrix, make).values(), strict=True)))

    itself, everything = covered(matrix.clone)
    assert itself == everything > 300
    assert covered(object)[0] < everything / 20
    before, _ = covered(lambda: ScalarTensor(3, 2.0))
    monkeypatch.setitem(identity.HANDLED, torch.trace, lambda input: torch.tensor(input.N * input.value))
    monkeypatch.setitem(identity.HANDLED, torch.exp, lambda input: input)  # wrong
    assert covered(lambda: ScalarTensor(3, 2.0))[0] == before + 1


# `make stage-0` --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.what)
def test_the_primer_s_checks(check):
    assert check.run()


def misnamed(t):
    return input.value / input.N


def no_alpha(input, other, **options):
    return torch.add(identity.dense(input, other), identity.dense(other, input))


def no_wrap(cls, func, types, args=(), kwargs=None):
    LoggingTensor.calls.append(resolve_name(func))
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def first_wins(cls, func, types, args=(), kwargs=None):
    carriers = [one for one in tree_leaves(args) if isinstance(one, Sourced)]
    args, kwargs = tree_map(lambda one: one.tensor if isinstance(one, Sourced) else one, (args, kwargs or {}))
    return Sourced(func(*args, **kwargs), carriers[0].sources)


def lost_writes(cls, func, types, args=(), kwargs=None):
    args, kwargs = tree_map(lambda one: identity.dense(one, None), (args, kwargs or {}))
    return func(*args, **kwargs)


MISTAKES = {
    "misnamed": ("mean", lambda patch: patch.setitem(identity.HANDLED, torch.mean, misnamed)),
    "sum": ("mean", lambda patch: patch.setitem(identity.HANDLED, torch.mean, lambda input: torch.ones(()))),
    "no alpha": ("mean", lambda patch: patch.setitem(identity.HANDLED, torch.add, no_alpha)),
    "no method": ("mean", lambda patch: patch.delitem(identity.HANDLED, torch.Tensor.add)),
    "no checks": ("invalid", lambda patch: patch.setattr(identity, "length", lambda factor, dim: 0)),
    "lost writes": (
        "invalid",
        lambda patch: patch.setattr(Converting, "__torch_function__", classmethod(lost_writes)),
    ),
    "not wrapped": ("logs", lambda patch: patch.setattr(LoggingTensor, "__torch_function__", classmethod(no_wrap))),
    "first wins": ("sources", lambda patch: patch.setattr(Sourced, "__torch_function__", classmethod(first_wins))),
    "not converting": (
        "coverage",
        lambda patch: patch.setattr(Converting, "__torch_function__", ScalarTensor.__torch_function__),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_primer_sees_a_planted_mistake(name, monkeypatch):
    what, plant = MISTAKES[name]
    (check,) = (check for check in CHECKS if what in check.what)
    plant(monkeypatch)
    with pytest.raises((AssertionError, AttributeError, TypeError)):
        check.run()


def test_the_checks_are_run_by_make_stage_0():
    from common.check import primer

    assert overrides in primer.PARTS
