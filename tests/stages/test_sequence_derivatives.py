"""Derivatives of stage 7 beyond the first: right by every path of the code."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

from common.build import modules
from common.sequence.case import SequenceCase
from common.sequence.cells import CELLS
from common.sequence.rungs import rungs_of
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(7))
TARGETS = [
    pytest.param("host", marks=pytest.mark.needs("g++")),
    pytest.param("emulator", marks=pytest.mark.needs("g++")),
    pytest.param("cuda", marks=pytest.mark.needs("gpu", "nvcc", "g++")),
]
OFFICIAL = {"FastLSTM": nn.LSTM, "FastGRU": nn.GRU}
both = pytest.mark.parametrize("name", OFFICIAL)
EXACT = {"rtol": 1e-10, "atol": 1e-10}
T, B, I, S = 4, 3, 2, 5


@pytest.fixture(params=TARGETS)
def stage(request: pytest.FixtureRequest) -> ModuleType:
    """The stage's package, loaded for a target."""
    return modules.load_stage(7, request.param)


def device_of(stage: ModuleType) -> str:
    return "cuda" if stage.TARGET == "cuda" else "cpu"


class Pair:
    """torch's module on a CPU, where it has every derivative, and the stage's, as functions of named tensors."""

    def __init__(self, stage: ModuleType, name: str, **options: object):
        torch.manual_seed(0)
        self.official = OFFICIAL[name](I, S, **options).double()
        self.device = device_of(stage)
        self.fast = getattr(stage, name)(I, S, **options).double().to(self.device)
        self.fast.load_state_dict(self.official.state_dict())
        states = ("h0", "cell0") if name == "FastLSTM" else ("h0",)
        layers = self.official.num_layers * (2 if self.official.bidirectional else 1)
        self.values = {n: p.detach() for n, p in self.official.named_parameters()}
        self.values["inputs"] = torch.randn(T, B, I, dtype=torch.float64)
        self.values |= {state: torch.randn(layers, B, S, dtype=torch.float64) for state in states}
        self.lengths = None

    def arguments(self, module: nn.Module) -> dict[str, torch.Tensor]:
        """Leaves with the same values on the module's device."""
        place = next(module.parameters()).device
        return {name: value.clone().to(place).requires_grad_() for name, value in self.values.items()}

    def call(self, module: nn.Module, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Outputs and last states, flat."""
        parameters = {name: given[name] for name, _ in module.named_parameters()}
        states = tuple(given[name] for name in ("h0", "cell0") if name in given)
        inputs = given["inputs"]
        if self.lengths:
            inputs = pack_padded_sequence(inputs, torch.tensor(self.lengths), enforce_sorted=False)
        outputs, state = functional_call(module, parameters, (inputs, states if len(states) > 1 else states[0]))
        outputs = outputs.data if self.lengths else outputs
        return [outputs, *(state if isinstance(state, tuple) else (state,))]

    def both(self, compute: Callable[[Callable, dict[str, torch.Tensor]], list[torch.Tensor]]) -> None:
        """Asserts that a computation gives the same with both modules."""
        wanted, got = (
            compute(lambda given, module=module: self.call(module, given), self.arguments(module))
            for module in (self.official, self.fast)
        )
        torch.testing.assert_close([t.cpu() for t in got], [t.cpu() for t in wanted], **EXACT)


def squares(tensors: list[torch.Tensor]) -> torch.Tensor:
    return sum(tensor.square().sum() for tensor in tensors)


def every_pair(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The gradient for each argument of a loss that contains the gradient for each argument, one call for each."""
    found = []
    for penalised in given:
        value = squares(call(given))
        (first,) = torch.autograd.grad(value, given[penalised], create_graph=True)
        loss = value + squares([first])
        found += [torch.autograd.grad(loss, given[name], retain_graph=True)[0] for name in given]
    return found


@both
@pytest.mark.parametrize(
    "options",
    [{"num_layers": 2}, {"bidirectional": True}, {"bias": False}],
    ids=["two layers", "both directions", "without biases"],
)
@pytest.mark.parametrize("lengths", [None, (2, 4, 1)], ids=["equal", "lengths"])
def test_every_pair_of_arguments(stage, name, options, lengths):
    pair = Pair(stage, name, **options)
    pair.lengths = lengths
    pair.both(every_pair)


def penalty(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """As in a Wasserstein GAN: the norm of the gradient for each input vector should be 1."""
    (first,) = torch.autograd.grad(call(given)[0].sum(), given["inputs"], create_graph=True)
    loss = (first.norm(2, dim=2) - 1).square().mean()
    wanted = [given[name] for name in given if name.startswith("weight")]
    return list(torch.autograd.grad(loss, wanted, allow_unused=True))


def maml(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Model-agnostic meta-learning: the gradient of a loss after a step, with respect to the weights before it."""
    names = [name for name in given if name not in ("inputs", "h0", "cell0")]
    before = [given[name] for name in names]
    first = torch.autograd.grad(call(given)[0].square().sum(), before, create_graph=True)
    after = {name: old - 0.1 * d for name, old, d in zip(names, before, first, strict=True)}
    return list(torch.autograd.grad(call(given | after)[0].square().sum(), before))


def hessian_vector(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    values = list(given.values())
    first = torch.autograd.grad(squares(call(given)), values, create_graph=True)
    return list(torch.autograd.grad(first, values, [value.detach().cos() for value in values]))


def third(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    values = list(given.values())
    loss = squares(call(given))
    for _ in range(2):
        loss = squares(torch.autograd.grad(loss, values, create_graph=True))
    return list(torch.autograd.grad(loss, values))


def one_output(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The gradients of the other results are undefined, in the first backward pass as in the second."""
    found = []
    for k in range(len(call(given))):
        (first,) = torch.autograd.grad(call(given)[k].square().sum(), given["h0"], create_graph=True)
        found += torch.autograd.grad(squares([first]), list(given.values()), allow_unused=True)
    return [torch.zeros(()) if gradient is None else gradient for gradient in found]


def some_arguments(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Arguments that need no gradient."""
    given = {name: t if name in ("inputs", "weight_hh_l0") else t.detach() for name, t in given.items()}
    values = [given["inputs"], given["weight_hh_l0"]]
    return list(
        torch.autograd.grad(squares(torch.autograd.grad(squares(call(given)), values, create_graph=True)), values)
    )


def retained(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The same graph, differentiated twice, with create_graph and without."""
    values = list(given.values())
    loss = squares(call(given))
    return [
        *torch.autograd.grad(loss, values, retain_graph=True),
        *torch.autograd.grad(squares(torch.autograd.grad(loss, values, create_graph=True)), values),
    ]


def accumulated(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """By backward(), which adds to .grad."""
    squares(call(given)).backward(create_graph=True)
    first = [value.grad.clone() for value in given.values()]
    squares(first).backward()
    found = [value.grad.detach() for value in given.values()]
    for value in given.values():
        value.grad = None  # with create_graph, a gradient and its tensor keep each other alive
    return found


def checkpointed(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    values = list(given.values())
    results = checkpoint(lambda *tensors: call(dict(zip(given, tensors, strict=True))), *values, use_reentrant=False)
    return list(
        torch.autograd.grad(squares(torch.autograd.grad(squares(results), values, create_graph=True)), values)
    )


WAYS = [penalty, maml, hessian_vector, third, one_output, some_arguments, retained, accumulated, checkpointed]


@both
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
@pytest.mark.parametrize("compute", WAYS, ids=lambda function: function.__name__)
def test_every_way_to_a_second_derivative(stage, name, compute):
    Pair(stage, name).both(compute)


@both
@pytest.mark.parametrize("size", ["T", "B", "S"])
def test_nothing_to_compute(stage, name, size):
    empty = {"T": T, "B": B, "S": S} | {size: 0}
    fast = getattr(stage, name)(I, empty["S"], dtype=torch.float64, device=device_of(stage)) if empty["S"] else None
    if fast is None:  # torch's modules refuse a state without units; the functions do not
        zeros = torch.zeros(empty["B"], 0, dtype=torch.float64, device=device_of(stage))
        inputs = zeros.new_ones(T, B, I).requires_grad_()
        outputs = stage.lltm_sequence(inputs, zeros.new_zeros(0, I), zeros.new_zeros(0), zeros, zeros)[0]
    else:
        inputs = torch.ones(
            empty["T"], empty["B"], I, dtype=torch.float64, device=device_of(stage), requires_grad=True
        )
        outputs = fast(inputs)[0]
    (first,) = torch.autograd.grad(outputs.square().sum(), inputs, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum() + inputs.sum(), inputs)
    assert torch.equal(second, torch.ones_like(inputs))


@both
def test_padding_that_is_not_a_number(stage, name):
    """Inputs past the end of a row take part in no derivative of the recurrence."""
    cell = {"FastLSTM": "lstm", "FastGRU": "gru"}[name]
    case = SequenceCase(cell, T, B, I, S, dtype=torch.float64, device=device_of(stage), lengths=(2, 4, 1), seed=1)
    inputs, weight_ih, *given = case.inputs().values()
    lengths = torch.tensor(case.lengths, device=device_of(stage))
    inputs.data[torch.arange(T, device=lengths.device)[:, None] >= lengths] = torch.nan
    outputs, _ = getattr(stage, f"{cell}_sequence")(inputs, weight_ih, *given, lengths=lengths)
    first = torch.autograd.grad(outputs.square().sum(), given, create_graph=True)
    for gradient in torch.autograd.grad(squares(first), given):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("cell", CELLS)
def test_every_rung(stage, cell):
    """Each rung saves what the second derivative needs, with lengths and in both directions."""
    for rung, reverse in itertools.product(rungs_of(stage.TARGET, device_of(stage)), (False, True)):
        case = SequenceCase(
            cell, T, B, I, S, dtype=torch.float64, device=device_of(stage), lengths=(2, 4, 1), reverse=reverse, seed=3
        )
        wanted, got = (
            every_pair(lambda given, f=function: f(*given.values()), case.inputs())
            for function in (case.equations, case.bind(stage, rung))
        )
        torch.testing.assert_close(got, wanted, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("cell", CELLS)
def test_other_dtypes(stage, cell, dtype):
    case = SequenceCase(cell, T, B, I, S, dtype=dtype, device=device_of(stage), seed=4)
    exact = SequenceCase(cell, T, B, I, S, dtype=torch.float64, seed=4)
    got = hessian_vector(lambda given: case.bind(stage, "")(*given.values()), case.inputs())
    wanted = hessian_vector(lambda given: exact.equations(*given.values()), exact.inputs())
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == dtype
        error = (one.cpu().double() - other).abs().max() / other.abs().max()
        assert error < 32 * torch.finfo(dtype).eps


@both
def test_autocast(stage, name):
    """Under autocast, the derivatives are those of the casted arguments."""
    fast = getattr(stage, name)(I, S, device=device_of(stage))
    inputs = torch.randn(T, B, I, device=device_of(stage), requires_grad=True)
    exact = copy.deepcopy(fast).double()

    def second(module, inputs):
        (first,) = torch.autograd.grad(module(inputs)[0].float().square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(first.square().sum(), module.weight_hh_l0)[0]

    with torch.autocast(device_of(stage), torch.bfloat16):
        got = second(fast, inputs)
    wanted = second(exact, inputs.detach().double().requires_grad_())
    assert ((got - wanted).abs().max() / wanted.abs().max()) < 0.1


# torch.func and forward mode
# ---------------------------


def gradient_by_func(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    return list(torch.func.grad(lambda values: squares(call(values)))(detached(given)).values())


def each_sample(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """The gradient of each row of the batch by itself."""

    def loss(values, inputs, *states):
        row = {"inputs": inputs[:, None]} | {n: s[:, None] for n, s in zip(names, states, strict=True)}
        return squares(call(values | row))

    given = detached(given)
    names = [name for name in ("h0", "cell0") if name in given]
    states = [given.pop(name) for name in names]
    inputs = given.pop("inputs")
    each = torch.vmap(torch.func.grad(loss), in_dims=(None, 1, *(1 for _ in names)))(given, inputs, *states)
    return list(each.values())


def jacobian_vector(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    values = detached(given)
    return torch.func.jvp(lambda v: call(v), (values,), ({n: t.cos() for n, t in values.items()},))[1]


def dual_numbers(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    with forward_ad.dual_level():
        results = call({name: forward_ad.make_dual(t, t.cos()) for name, t in detached(given).items()})
        return [forward_ad.unpack_dual(result).tangent for result in results]


def forward_over_reverse(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    values = detached(given)
    gradient = torch.func.grad(lambda v: squares(call(v)))
    return list(torch.func.jvp(gradient, (values,), ({n: t.cos() for n, t in values.items()},))[1].values())


def forward_over_backward(call: Callable, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """A tangent that only the upstream gradients have."""
    values = list(given.values())
    results = call(given)
    with forward_ad.dual_level():
        grads = [forward_ad.make_dual(result.detach().cos(), result.detach().sin()) for result in results]
        found = torch.autograd.grad(results, values, grads)
        return [forward_ad.unpack_dual(gradient).tangent for gradient in found]


def detached(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach() for name, tensor in given.items()}


TRANSFORMS = [
    gradient_by_func, each_sample, jacobian_vector, dual_numbers, forward_over_reverse, forward_over_backward
]  # fmt: skip


@both
@pytest.mark.parametrize("compute", TRANSFORMS, ids=lambda function: function.__name__)
def test_transforms(stage, name, compute):
    """Equal to a loop over torch's own cells, because torch.nn.LSTM has no forward mode."""
    pair = Pair(stage, name)
    cell = {"FastLSTM": "lstm", "FastGRU": "gru"}[name]

    def equations(given):
        values = dict(given)
        parameters = {n.removesuffix("_l0"): t for n, t in values.items() if n.endswith("_l0")}
        states = [values[n][0] for n in ("h0", "cell0") if n in values]
        arguments = [values["inputs"], *(parameters[n] for n in CELLS[cell].parameters), *states]
        outputs, *last = SequenceCase(cell, T, B, I, S, dtype=torch.float64).equations(*arguments)
        return [outputs, *(state[None] for state in last)]

    got = compute(lambda given: pair.call(pair.fast, given), pair.arguments(pair.fast))
    wanted = compute(equations, pair.arguments(pair.official))
    torch.testing.assert_close([t.cpu() for t in got], [t.cpu() for t in wanted], **EXACT)


@pytest.mark.parametrize("cell", CELLS)
def test_a_hessian(stage, cell):
    """Of all arguments at once, by forward over reverse."""
    case = SequenceCase(cell, 2, 2, 1, 2, dtype=torch.float64, device=device_of(stage), seed=5)
    values = tuple(tensor.detach() for tensor in case.inputs().values())
    found = [
        torch.func.hessian(lambda *given, f=function: squares(f(*given)), argnums=tuple(range(len(values))))(*values)
        for function in (case.bind(stage, ""), case.equations)
    ]
    torch.testing.assert_close(*found, **EXACT)


@both
@pytest.mark.needs("g++")
def test_a_second_derivative_under_compile_is_refused(name):
    """By torch itself, for every device."""
    fast = torch.compile(getattr(modules.load_stage(7, "host"), name)(I, S))
    inputs = torch.randn(T, B, I, requires_grad=True)
    (first,) = torch.autograd.grad(fast(inputs)[0].square().sum(), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        torch.autograd.grad(first.square().sum() + inputs.sum(), inputs)


def test_the_backward_operator_alone_is_refused(stage):
    """`recurrence_backward` has no derivative. Its refusal leads to each of its arguments."""
    case = SequenceCase("lstm", T, B, I, S, dtype=torch.float64, device=device_of(stage))
    x, weights = torch.randn(T, B, 4 * S).double(), torch.randn(4 * S, S).double()
    h0, cell0 = torch.randn(B, S).double(), torch.randn(B, S).double()
    x, weights, h0, cell0 = (tensor.to(case.device) for tensor in (x, weights, h0, cell0))
    outputs, _, _, cells, z = stage.sequence.operators.recurrence(
        x, weights, None, h0, cell0, None, "lstm", False, "", True
    )
    arguments = [outputs.cos(), h0.cos(), h0.sin(), weights, h0, cell0, outputs, cells, z]
    for k in range(len(arguments)):
        given = [tensor.detach().clone().requires_grad_(n == k) for n, tensor in enumerate(arguments)]
        d_z, d_h0, _ = stage.sequence.operators.recurrence_backward(*given[:6], None, *given[6:], "lstm", False, "")
        loss = d_z.square().sum() + d_h0.sum() + given[k].sum()
        with pytest.raises(RuntimeError, match="recurrence_backward has no derivative"):
            torch.autograd.grad(loss, given[k])
