"""Stage 7's `FastLSTM` and `FastGRU` do what `torch.nn.LSTM` and `torch.nn.GRU` do, number by number."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
import types
import warnings
from types import ModuleType

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from common.build import modules
from common.paths import ROOT
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
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN has no backward in evaluation mode
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


def wrong_states(*batch: int):
    """States that do not fit a module with a layer and this batch, and some that do."""
    fits, double, meta = (torch.zeros(1, *batch, S, **o) for o in ({}, {"dtype": torch.double}, {"device": "meta"}))
    integers, larger, wider = fits.long(), torch.zeros(1, *(b + 1 for b in batch), S), torch.zeros(1, *batch, S + 1)
    tensors = [fits, double, meta, integers, larger, wider, fits[0], fits[None], torch.stack([fits, fits])]
    tensors += [torch.zeros(1, S), torch.zeros(1, B, S), torch.zeros(2, B, S), torch.zeros(S), torch.zeros(0)]
    for state in tensors:
        yield from (state, (state,), (state, state), [state, fits], (fits, state), (state,) * 3)
    yield from ((), [], "ab", 0, False, 3, {"h": fits}, (fits, None), (None, None), fits.numpy())


def have_unequal_layers(states) -> bool:
    """Whether h and cell are tensors with another number of layers."""
    are_tensors = isinstance(states, (tuple, list)) and all(isinstance(state, torch.Tensor) for state in states)
    return are_tensors and len({state.size(0) for state in states if state.dim() == 3}) > 1


def test_a_state_that_ends_the_process_in_torch_is_refused(stage):
    """Packed sequences, and a cell state of fewer layers than h."""
    _, fast = pair(stage, "FastLSTM", torch.float32)
    packed = pack_padded_sequence(torch.randn(T, B, I, device=device_of(stage)), torch.tensor([5, 3, 2, 1]))
    h, cell = (torch.zeros(layers, B, S, device=device_of(stage)) for layers in (2, 1))
    for state in ((h, cell), [h, cell], (h, cell, cell)):
        assert outcome(fast, packed, state) == (RuntimeError, "Expected hidden[0] size (1, 4, 6), got [2, 4, 6]")
    message = "Expected hidden[1] size (1, 4, 6), got [2, 4, 6]"
    assert outcome(fast, packed, (cell, h)) == (RuntimeError, message)


def outcome(module: nn.Module, input, state):
    """The type and the text of an error, or None."""
    try:
        module(input, state)
    except Exception as error:
        return type(error), str(error)
    return None


@both
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bidirectional": True}], ids=str)
def test_a_wrong_state_has_the_error_of_torch(stage, name, options):
    if stage.TARGET == "cuda":
        pytest.skip("the states are on the CPU")
    official, fast = pair(stage, name, torch.float32, **options)
    padded = torch.randn(T, B, I)
    packed = pack_padded_sequence(padded, torch.tensor([2, 5, 1, 3]), enforce_sorted=False)
    batched = padded.transpose(0, 1) if official.batch_first else padded
    errors = set()
    for input, batch in ((batched, (B,)), (packed, (B,)), (padded[:, 0], ()), (batched.double(), (B,))):
        for state in wrong_states(*batch):
            if input is packed and have_unequal_layers(state):
                continue  # torch.nn.LSTM ends the process
            found = outcome(official, input, state)
            assert outcome(fast, input, state) == found
            errors.add(found)
    assert len(errors) > 20


@both
def test_a_state_of_another_dtype_under_autocast(stage, name):
    """Autocast casts all of them, except float64."""
    official, fast = pair(stage, name, torch.float32)
    input = numbers(T, B, I, like=official)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        state = torch.zeros(1, B, S, dtype=dtype, device=input.device)
        state = (state, state) if name == "FastLSTM" else state
        with torch.autocast(input.device.type, torch.bfloat16):
            assert outcome(fast, input, state) == outcome(official, input, state)


@both
def test_a_module_is_copied(stage, name):
    _, fast = pair(stage, name, num_layers=2, bidirectional=True)
    input = numbers(T, B, I, like=fast)
    for copied in (copy.deepcopy(fast), copy.copy(fast), pickle.loads(pickle.dumps(fast))):
        assert type(copied) is type(fast)
        assert torch.equal(copied(input)[0], fast(input)[0])
        assert copied._flat_weights_names == fast._flat_weights_names
    assert copy.copy(fast).weight_ih_l0 is fast.weight_ih_l0
    assert copy.deepcopy(fast).weight_ih_l0 is not fast.weight_ih_l0


LOADS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
fast, input, wanted = torch.load(sys.argv[2], weights_only=False)
assert torch.equal(fast(input)[0], wanted)
print(type(fast).__module__, type(fast).__name__)
"""


@both
def test_a_pickled_module_is_loaded_in_another_process(stage, name, tmp_path):
    """Only the root of the workbook is on its path, and it is in another folder."""
    fast = nn.Sequential(pair(stage, name)[1])
    input = numbers(T, B, I, like=fast[0]).detach()
    torch.save((fast[0], input, fast[0](input)[0].detach()), tmp_path / "module.pt")
    command = [sys.executable, "-c", LOADS, str(ROOT), str(tmp_path / "module.pt")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [type(fast[0]).__module__, name]


@both
def test_a_package_that_pip_has_installed_is_pickled_by_its_name(stage, name, monkeypatch):
    """Then there is no workbook, and `TARGET`, which its loader sets."""
    fast = pair(stage, name)[1]
    monkeypatch.delattr(sys.modules[type(fast).__module__.split(".")[0]], "TARGET")
    text = pickle.dumps(fast, protocol=0)
    assert b"common" not in text
    assert type(fast).__module__.encode() in text
    assert type(pickle.loads(text)) is type(fast)


@both
def test_a_class_of_the_user_is_pickled_by_its_name(stage, name, monkeypatch):
    derived = type("Derived", (getattr(stage, name),), {"__module__": __name__})
    monkeypatch.setitem(sys.modules, __name__, types.SimpleNamespace(Derived=derived))
    text = pickle.dumps(derived(I, S), protocol=0)
    assert b"common" not in text
    assert type(pickle.loads(text)) is derived


@both
def test_what_it_is_for_isinstance_and_quantize_dynamic(stage, name):
    official, fast = pair(stage, name, torch.float32)
    assert not isinstance(fast, OFFICIAL[name])
    assert isinstance(fast, nn.RNNBase)
    for module, is_quantized in ((official, True), (fast, False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = nn.Sequential(module).cpu()
            quantized = torch.ao.quantization.quantize_dynamic(model, {OFFICIAL[name], type(module)})
        assert (type(quantized[0]) is not type(module)) == is_quantized


@both
def test_scripting_is_refused_in_one_line(stage, name):
    for module in (pair(stage, name)[1], nn.Sequential(pair(stage, name)[1])):
        with pytest.raises(RuntimeError, match=f"^lltm: torch.jit.script cannot compile {name}; .*state_dict$"):
            torch.jit.script(module)


CHANGES = {
    "all outputs": lambda outputs, h: outputs.add_(1),
    "a step": lambda outputs, h: outputs[0].mul_(3),
    "an activation": lambda outputs, h: outputs.relu_(),
    "detached": lambda outputs, h: outputs.detach().zero_(),
    "the last state": lambda outputs, h: h.add_(1),
}


@both
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_outputs_that_change_in_place(stage, name, change, options):
    """The gradients are right, or autograd raises its error: the outputs are needed again for backward."""
    official, fast = pair(stage, name, **options)
    input = numbers(*((B, T, I) if official.batch_first else (T, B, I)), like=official)
    found = []
    for module in (official, fast):
        results = flat(module(input))
        CHANGES[change](*results[:2])
        try:
            loss = sum(result.sin().sum() for result in results)
            found.append(torch.autograd.grad(loss, [input, *module.parameters()]))
        except RuntimeError as error:
            assert "has been modified by an inplace operation" in str(error)
            found.append(None)
    if found[1] is not None and found[0] is not None:
        torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-10)
    if change == "the last state":
        assert None not in found
    elif options == OPTIONS[0]:  # with more layers or directions, the outputs may be a copy
        assert found[1] is None
