"""Stage 7's `FastLSTM` and `FastGRU` do what `torch.nn.LSTM` and `torch.nn.GRU` do, number by number."""

from __future__ import annotations

import itertools
from types import ModuleType

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from common.build import modules
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(7))
TARGETS = [
    pytest.param("host", marks=pytest.mark.needs("g++")),
    pytest.param("emulator", marks=pytest.mark.needs("g++")),
    pytest.param("cuda", marks=pytest.mark.needs("gpu", "nvcc", "g++")),
]
OFFICIAL = {"FastLSTM": nn.LSTM, "FastGRU": nn.GRU}
both = pytest.mark.parametrize("name", OFFICIAL)
OPTIONS = [
    {"num_layers": layers, "bidirectional": both_ways, "batch_first": batch_first, "bias": bias}
    for layers, both_ways, batch_first, bias in (
        (1, False, False, True), (2, True, False, True), (1, True, True, False), (3, False, True, True),
    )
]  # fmt: skip
T, B, I, S = 5, 4, 3, 6


@pytest.fixture(params=TARGETS)
def stage(request: pytest.FixtureRequest) -> ModuleType:
    """The stage's package, loaded for a target."""
    return modules.load_stage(7, request.param)


def device_of(stage: ModuleType) -> str:
    return "cuda" if stage.TARGET == "cuda" else "cpu"


def pair(stage: ModuleType, name: str, dtype: torch.dtype = torch.float64, **options: object):
    """torch's module and the stage's, with the same parameters."""
    options = {"dtype": dtype, "device": device_of(stage), **options}
    official = OFFICIAL[name](I, S, **options)
    fast = getattr(stage, name)(I, S, **options)
    fast.load_state_dict(official.state_dict())
    return official, fast


def numbers(*shape: int, like: nn.Module) -> torch.Tensor:
    parameter = next(like.parameters())
    return torch.randn(*shape, dtype=parameter.dtype, device=parameter.device).requires_grad_()


def states_of(module: nn.Module, *batch: int):
    """h0, or h0 and cell0, as torch's modules take them."""
    layers = module.num_layers * (2 if module.bidirectional else 1)
    given = [numbers(layers, *batch, S, like=module) for _ in range(2 if isinstance(module, nn.LSTM) else 1)]
    return tuple(given) if len(given) == 2 else given[0]


def flat(results) -> list[torch.Tensor]:
    """The tensors of outputs and states."""
    outputs, state = results
    outputs = outputs.data if isinstance(outputs, PackedSequence) else outputs
    return [outputs, *(state if isinstance(state, tuple) else (state,))]


def assert_same(official: nn.Module, fast: nn.Module, input, state=None, **tolerance: float) -> None:
    """Results, and gradients of inputs, states and parameters, are the same."""
    tolerance = tolerance or {"rtol": 1e-10, "atol": 1e-10}
    given = input.data if isinstance(input, PackedSequence) else input
    leaves = [given, *(() if state is None else state if isinstance(state, tuple) else (state,))]
    found = []
    for module in (official, fast):
        results = flat(module(input) if state is None else module(input, state))
        heads = [result.sin().sum() for result in results]
        gradients = torch.autograd.grad(sum(heads), [*leaves, *module.parameters()])
        found.append([*results, *gradients])
    for want, got in zip(*found, strict=True):
        torch.testing.assert_close(got, want, **tolerance)


@both
def test_parameters_have_the_same_names_and_shapes(stage, name):
    for options in OPTIONS:
        official, fast = pair(stage, name, **options)
        shapes = [[(key, tuple(value.shape)) for key, value in one.state_dict().items()] for one in (official, fast)]
        assert shapes[0] == shapes[1]
        bound = 1 / S**0.5
        fresh = getattr(stage, name)(I, S, **options)
        assert all(p.abs().max() <= bound and p.std() > bound / 4 for p in fresh.parameters())


@both
@pytest.mark.parametrize("k", range(len(OPTIONS)))
@pytest.mark.parametrize("has_state", [False, True], ids=["zeros", "states"])
def test_a_batch(stage, name, k, has_state):
    official, fast = pair(stage, name, **OPTIONS[k])
    shape = (B, T, I) if official.batch_first else (T, B, I)
    assert_same(official, fast, numbers(*shape, like=official), states_of(official, B) if has_state else None)


@both
def test_a_single_sequence_without_a_batch(stage, name):
    for options in OPTIONS[:2]:
        official, fast = pair(stage, name, **options)
        assert_same(official, fast, numbers(T, I, like=official))
        assert_same(official, fast, numbers(T, I, like=official), states_of(official))


@both
@pytest.mark.parametrize(
    ("lengths", "is_sorted"), [((5, 4, 2, 1), True), ((1, 5, 3, 5), False), ((5, 5, 5, 5), True)], ids=str
)
def test_packed_sequences(stage, name, lengths, is_sorted):
    for options, has_state in itertools.product(OPTIONS[:2], (False, True)):
        official, fast = pair(stage, name, **options)
        padded = numbers(T, B, I, like=official).detach()
        packed = pack_padded_sequence(padded, torch.tensor(lengths), enforce_sorted=is_sorted)
        packed.data.requires_grad_()
        assert_same(official, fast, packed, states_of(official, B) if has_state else None)
        want, _ = pad_packed_sequence(official(packed)[0])
        got, _ = pad_packed_sequence(fast(packed)[0])
        torch.testing.assert_close(got, want)


@both
def test_dropout_is_between_layers_and_only_in_training(stage, name):
    official, fast = pair(stage, name, num_layers=2, dropout=0.5)
    input = numbers(T, B, I, like=official)
    official.eval(), fast.eval()
    assert_same(official, fast, input)
    fast.train()
    outputs = [fast(input)[0] for _ in range(2)]
    assert not torch.equal(*outputs)
    certain_official, certain_fast = pair(stage, name, num_layers=2, dropout=1.0)
    want, got = certain_official(input)[0], certain_fast(input)[0]
    torch.testing.assert_close(got, want)


def test_projections_are_refused_in_one_line(stage):
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match="proj_size") as error:
        stage.FastLSTM(I, S, proj_size=2)
    assert "\n" not in str(error.value)


@both
def test_inputs_that_do_not_fit_are_refused(stage, name):
    _, fast = pair(stage, name)
    with pytest.raises(RuntimeError):
        fast(numbers(T, B, I + 1, like=fast))
    with pytest.raises(RuntimeError):
        fast(numbers(T, B, I, like=fast), states_of(OFFICIAL[name](I, S), B + 1))


@both
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_low_precision_is_close_to_float64(stage, name, dtype):
    official, fast = pair(stage, name, dtype)
    exact = OFFICIAL[name](I, S, dtype=torch.float64, device=device_of(stage))
    exact.load_state_dict(official.state_dict())
    input = numbers(T, B, I, like=official).detach()
    for want, got in zip(flat(exact(input.double())), flat(fast(input)), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=0, atol=8 * torch.finfo(dtype).eps)


@both
def test_training_follows_the_same_curve(stage, name):
    """Ten steps of a small model, with one module and with the other: the losses are the same."""
    official, fast = pair(stage, name, torch.float32)
    input = numbers(T, B, I, like=official).detach()
    curves = []
    for module in (official, fast):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        losses = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = (module(input)[0] - 0.3).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curves.append(losses)
    assert curves[0][-1] < curves[0][0]
    torch.testing.assert_close(torch.tensor(curves[1]), torch.tensor(curves[0]), rtol=1e-4, atol=1e-5)
