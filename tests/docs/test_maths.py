"""The formulas of docs/maths.md, run as they stand on the page, against autograd and finite differences."""

from __future__ import annotations

import importlib
import re

import pytest
import torch
from torch.autograd.functional import jacobian
from torch.autograd.gradcheck import GradcheckError

from common import load
from common.cell import reference
from common.cell.memory import saved_storages
from common.paths import ROOT
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("pages", files=["docs/maths.md", *stage_files()])


PAGE = (ROOT / "docs" / "maths.md").read_text(encoding="utf-8")
INPUTS = ("input", "weights", "bias", "old_h", "old_cell")
INNER = ("X", "z", "z_i", "z_o", "z_g", "input_gate", "output_gate", "candidate_cell")  # not the cell's arguments
B, I, S = 3, 4, 5


def code(kind: str = "python") -> str:
    """The Python of the page, its blocks one after the other."""
    return "\n".join(re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, flags=re.M | re.S))


def run(**given: torch.Tensor) -> dict:
    """Every name that the page defines, from the five inputs, grad_h and grad_cell."""
    names = dict(given)
    exec(compile(code(), "docs/maths.md", "exec"), names)
    return names


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture
def given() -> dict[str, torch.Tensor]:
    """Arguments in float64; among the pre-activations are both sides of elu."""
    torch.manual_seed(0)
    shapes = {"input": (B, I), "weights": (3 * S, S + I), "bias": (3 * S,), "old_h": (B, S), "old_cell": (B, S)}
    return {name: random(*shape) for name, shape in shapes.items()} | {
        "grad_h": random(B, S),
        "grad_cell": random(B, S),
    }


def by_autograd(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The gradient of each value on the way, from autograd over the forward written without the page."""
    leaves = {name: given[name].clone().requires_grad_() for name in INPUTS}
    X = torch.cat([leaves["old_h"], leaves["input"]], dim=1)
    z = torch.nn.functional.linear(X, leaves["weights"], leaves["bias"])
    # Slices taken one by one, so that each has a gradient of its own.
    z_i, z_o, z_g = z[:, :S], z[:, S : 2 * S], z[:, 2 * S :]
    input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), torch.nn.functional.elu(z_g)
    new_cell = leaves["old_cell"] + candidate_cell * input_gate
    new_h = torch.tanh(new_cell) * output_gate
    loss = (new_h * given["grad_h"]).sum() + (new_cell * given["grad_cell"]).sum()
    inner = dict(zip(INNER, (X, z, z_i, z_o, z_g, input_gate, output_gate, candidate_cell), strict=True))
    wanted = leaves | inner | {"new_cell": new_cell}
    return dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values())), strict=True))


@pytest.mark.syllabus("1.1a")
def test_forward(given):
    page = run(**given)
    new_h, new_cell = reference.forward(*(given[name] for name in INPUTS))
    torch.testing.assert_close(page["new_h"], new_h)
    torch.testing.assert_close(page["new_cell"], new_cell)
    assert page["z"].shape == (B, 3 * S)
    assert page["new_h"].shape == page["new_cell"].shape == (B, S)


@pytest.mark.syllabus("1.1e")
def test_chunk_alone_cuts_the_batch():
    def new_cell(batch, state):
        z_i, _, z_g = random(batch, 3 * state).chunk(3)
        return random(batch, state) + z_g * z_i

    assert new_cell(3, 1).shape == (3, 3), "no error, and no cell"
    for batch, state in [(16, 8), (3, 4)]:
        with pytest.raises(RuntimeError, match="must match the size"):
            new_cell(batch, state)


@pytest.mark.syllabus("1.1c")
def test_the_direct_line_has_derivative_one(given):
    def steps(old_cell):
        cell = old_cell
        for _ in range(20):
            cell = run(**(given | {"old_cell": cell}))["new_cell"]  # old_h held fixed
        return cell

    derivative = jacobian(steps, given["old_cell"]).reshape(B * S, B * S)
    assert torch.equal(derivative, torch.eye(B * S, dtype=torch.float64)), "exactly, not nearly"
    assert round(0.9**100, 5) == 0.00003, "the page's figure for a forget gate"


@pytest.mark.syllabus("1.2a", "2.8c")
@pytest.mark.parametrize("function", ["sigmoid", "tanh", "elu"])
def test_the_derivative_of_each_function(given, function):
    page = run(**given)
    z = torch.cat([torch.linspace(-30, 30, 101, dtype=torch.float64), torch.tensor([-1e-9, 0.0, 1e-9])])
    leaf = z.clone().requires_grad_()
    output = page[function](leaf)
    (expected,) = torch.autograd.grad(output.sum(), leaf)
    step = 1e-5
    differences = (page[function](z + step) - page[function](z - step)) / (2 * step)
    for derivative in (page[f"d_{function}"](z), page[f"d_{function}_from"](output.detach())):
        torch.testing.assert_close(derivative, expected, rtol=0, atol=1e-14)
        torch.testing.assert_close(derivative, differences, rtol=0, atol=2 * step)


@pytest.mark.syllabus("2.8c")
def test_elu_from_its_output_is_off_by_one_rounding_in_float32(given):
    page = run(**given)
    z = torch.linspace(-30, 1, 10001)
    error = (page["d_elu_from"](torch.nn.functional.elu(z)).double() - page["d_elu"](z.double())).abs().max()
    assert 0 < error <= 6e-8 + 1e-9


@pytest.mark.syllabus("2.2e")
@pytest.mark.parametrize(("dtype", "large"), [(torch.float32, 100.0), (torch.float64, 710.0)])
def test_the_mask_is_nan_for_large_z(given, dtype, large):
    page = run(**given)
    exec(code("python wrong"), page)
    z = torch.tensor([-1.0, 1.0, large], dtype=dtype)
    assert page["d_elu_mask"](z).isnan().tolist() == [False, False, True]
    torch.testing.assert_close(page["d_elu"](z), torch.tensor([-1.0, 0.0, 0.0], dtype=dtype).exp())

    def second(derivative):
        leaf = z.clone().requires_grad_()
        return torch.autograd.grad(derivative(leaf).sum(), leaf)[0]

    where = torch.where(z > 0, 1.0, torch.exp(z))
    assert not where.isnan().any()
    assert second(lambda z: torch.where(z > 0, 1.0, torch.exp(z))).isnan().tolist() == [False, False, True]
    torch.testing.assert_close(second(page["d_elu"]), torch.tensor([0.36787944117144233, 0, 0], dtype=dtype))


@pytest.mark.syllabus("1.2b", "1.2c", "1.2d")
@pytest.mark.parametrize("name", ["new_cell", *INNER, *INPUTS])
def test_each_step_equals_autograd(given, name):
    derivative = run(**given)[f"d_{name}"]
    assert derivative.shape == (given[name].shape if name in given else run(**given)[name].shape)
    torch.testing.assert_close(derivative, by_autograd(given)[name])


@pytest.mark.syllabus("1.2d")
@pytest.mark.parametrize("name", INPUTS)
def test_the_result_equals_finite_differences(given, name):
    def loss(value):
        page = run(**(given | {name: value}))
        return (page["new_h"] * given["grad_h"]).sum() + (page["new_cell"] * given["grad_cell"]).sum()

    step, derivative = 1e-6, torch.empty_like(given[name])
    for index in range(derivative.numel()):
        shift = torch.zeros(derivative.numel(), dtype=torch.float64)
        shift[index] = step
        shift = shift.view_as(derivative)
        derivative.view(-1)[index] = (loss(given[name] + shift) - loss(given[name] - shift)) / (2 * step)
    torch.testing.assert_close(run(**given)[f"d_{name}"], derivative, rtol=0, atol=1e-7)


@pytest.mark.parametrize("silent", ["grad_h", "grad_cell"])
def test_a_loss_of_one_output_hides_half_of_d_new_cell(given, silent):
    given[silent] = torch.zeros(B, S, dtype=torch.float64)
    page = run(**given)
    half = (
        given["grad_cell"]
        if silent == "grad_h"
        else given["grad_h"] * page["output_gate"] * page["d_tanh"](page["new_cell"])
    )
    torch.testing.assert_close(page["d_new_cell"], half)


REDRAW = "run python -m common.figures.diagrams.cell_diagram"


def test_backward_through_time(given):
    T = 4
    inputs, grad_outputs = random(T, B, I), random(T, B, S)
    leaves = {name: given[name].clone().requires_grad_() for name in INPUTS if name != "input"}
    sequence = inputs.clone().requires_grad_()
    h, cell, loss, states = leaves["old_h"], leaves["old_cell"], 0, []
    for t in range(T):
        states.append({"input": inputs[t], "old_h": h.detach(), "old_cell": cell.detach()})
        h, cell = reference.forward(sequence[t], leaves["weights"], leaves["bias"], h, cell)
        loss = loss + (h * grad_outputs[t]).sum()
    loss = loss + (h * given["grad_h"]).sum() + (cell * given["grad_cell"]).sum()
    order = [sequence, *(leaves[name] for name in ("weights", "bias", "old_h", "old_cell"))]
    expected = torch.autograd.grad(loss, order)

    steps = {}

    def backward(t, grad_h, grad_cell):
        steps[t] = run(**(given | states[t] | {"grad_h": grad_h, "grad_cell": grad_cell}))
        return steps[t]

    through_time = run(**given)["backward_through_time"]
    d_inputs, *others = through_time(backward, grad_outputs, given["grad_h"], given["grad_cell"])
    for found, wanted in zip([torch.stack(d_inputs), *others], expected, strict=True):
        torch.testing.assert_close(found, wanted)
    # One large product for the weights of all steps.
    d_z, X = (torch.cat([steps[t][name] for t in range(T)]) for name in ("d_z", "X"))
    torch.testing.assert_close(d_z.T @ X, expected[1])


@pytest.mark.parametrize(("version", "blocks"), [("equations", 7), ("by_hand", 4)])
def test_how_many_blocks_are_kept(given, version, blocks):
    stage = load(1)
    cell = importlib.import_module(f"{stage.__package__}.by_hand").lltm if version == "by_hand" else stage.equations
    outputs, kept = saved_storages(lambda: cell(*(given[name].clone().requires_grad_() for name in INPUTS)))
    numbers = sum(storage.nbytes() for storage in kept.values()) // 8
    assert len(outputs) == 2
    assert numbers == blocks * B * S + B * (S + I) + 3 * S * (S + I), "blocks, X and weights"


class Recomputed(torch.autograd.Function):
    """The page's six steps from the saved inputs alone."""

    @staticmethod
    def forward(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return reference.forward(*inputs)

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        page = run(**dict(zip(INPUTS, ctx.saved_tensors, strict=True)), grad_h=grad_h, grad_cell=grad_cell)
        return tuple(page[f"d_{name}"] for name in INPUTS)


class SavedGates(torch.autograd.Function):
    """The same, but with the gates of forward, which have no history in backward."""

    @staticmethod
    def forward(ctx, *inputs):
        none = torch.zeros_like(inputs[4])
        page = run(**dict(zip(INPUTS, inputs, strict=True)), grad_h=none, grad_cell=none)
        ctx.save_for_backward(*inputs, *(page[name] for name in ("input_gate", "output_gate", "candidate_cell")))
        return page["new_h"], page["new_cell"]

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        *inputs, input_gate, output_gate, candidate_cell = ctx.saved_tensors
        input, weights, _, old_h, old_cell = inputs
        page = run(**dict(zip(INPUTS, inputs, strict=True)), grad_h=grad_h, grad_cell=grad_cell)
        tanh_new_cell = torch.tanh(old_cell + candidate_cell * input_gate)
        d_new_cell = grad_cell + grad_h * output_gate * page["d_tanh_from"](tanh_new_cell)
        d_z_i = d_new_cell * candidate_cell * page["d_sigmoid_from"](input_gate)
        d_z_o = grad_h * tanh_new_cell * page["d_sigmoid_from"](output_gate)
        d_z_g = d_new_cell * input_gate * page["d_elu_from"](candidate_cell)
        d_z = torch.cat([d_z_i, d_z_o, d_z_g], dim=1)
        d_X = d_z @ weights
        return d_X[:, S:], d_z.T @ torch.cat([old_h, input], dim=1), d_z.sum(dim=0), d_X[:, :S], d_new_cell


def test_second_derivatives_are_right_when_gates_are_computed_again(given):
    leaves = [given[name].requires_grad_() for name in INPUTS]
    assert torch.autograd.gradcheck(Recomputed.apply, leaves)
    assert torch.autograd.gradgradcheck(Recomputed.apply, leaves)


@pytest.mark.syllabus("2.7b")
def test_second_derivatives_are_silently_wrong_with_saved_gates(given):
    leaves = [given[name].requires_grad_() for name in INPUTS]
    assert torch.autograd.gradcheck(SavedGates.apply, leaves), "the first derivatives are right"
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradgradcheck(SavedGates.apply, leaves)


@pytest.mark.needs("matplotlib")
@pytest.mark.syllabus("1.1b")
@pytest.mark.parametrize("name", ["dataflow.svg", "dataflow_backward.svg"])
def test_the_pictures_are_up_to_date(tmp_path, name):
    from common.figures.diagrams import cell_diagram

    def numbers_and_words(path):
        """Versions of matplotlib may differ in the last digits: words as they are, coordinates to half a point."""
        text = path.read_text(encoding="utf-8")
        drawn = re.sub(r"<defs>.*?</defs>", "", text, flags=re.S)  # the glyphs, and style
        lines = [
            [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", d)] for d in re.findall(r'<path d="([^"]*)"', drawn)
        ]
        return re.findall(r"<!-- (.*?) -->", text), lines

    cell_diagram.write_diagrams(tmp_path)
    (new_words, new_lines), (words, lines) = (
        numbers_and_words(folder / name) for folder in (tmp_path, cell_diagram.PICTURES)
    )
    assert {"weights", "(B, S+I)", "tanh"} <= set(words) or "backward" in name
    assert new_words == words, REDRAW
    assert [len(line) for line in new_lines] == [len(line) for line in lines], REDRAW
    for new, old in zip(new_lines, lines, strict=True):
        assert new == pytest.approx(old, abs=0.5), REDRAW
    assert f"pictures/{name}" in PAGE
