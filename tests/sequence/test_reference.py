"""The reference loop agrees with torch's own LSTM and GRU, and its LLTM with the cell's reference."""

from __future__ import annotations

import pytest
import torch

from common.cell import reference as cell_reference
from common.cell.case import difference, fresh_seed, outputs
from common.sequence.case import GRADS, SequenceCase
from common.sequence.cells import CELLS

SIZE = (5, 4, 3, 7)  # T, B, I, S


def case_of(cell: str, *size: int, **changes: object) -> SequenceCase:
    return SequenceCase(cell, *(size or SIZE), **{"dtype": torch.float64, "seed": fresh_seed(), **changes})


def by_torch(case: SequenceCase):
    """torch.nn's function for the cell, with the case's parameters."""

    def function(*arguments):
        given = dict(zip(case.differentiable, arguments, strict=True))
        parameters = [given[name] for name in case.kind.parameters if name in given]
        states = [given[f"{name}0"][None] for name in case.kind.states]
        options = (
            case.has_bias,
            1,
            0.0,
            False,
            False,
            False,
        )  # layers, dropout, training, both directions, batch first
        inputs = given["inputs"].flip(0) if case.reverse else given["inputs"]
        run = torch.lstm if case.cell == "lstm" else torch.gru
        found, *states = run(inputs, states if case.cell == "lstm" else states[0], parameters, *options)
        return (found.flip(0) if case.reverse else found, *(state[0] for state in states))

    return function


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("has_bias", [True, False], ids=["biases", "no_biases"])
def test_it_is_what_torch_computes(cell, reverse, has_bias):
    case = case_of(cell, reverse=reverse, has_bias=has_bias)
    assert difference(case, outputs(by_torch(case), case)) is None


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_lengths_are_those_of_packed_sequences(cell, reverse):
    case = case_of(cell, lengths=(5, 1, 3, 4), reverse=reverse)
    given, wanted = case.inputs(), case.reference()[0]
    for row, length in enumerate(case.lengths):
        alone = case_of(cell, length, 1, 3, 7, reverse=reverse)
        arguments = {
            name: (t[:length, row : row + 1] if name == "inputs" else t[row : row + 1] if name.endswith("0") else t)
            for name, t in given.items()
        }
        outputs_of_row, *states = by_torch(alone)(*arguments.values())
        torch.testing.assert_close(wanted["outputs"][:length, row], outputs_of_row[:, 0].detach())
        for name, state in zip(case.kind.states, states, strict=True):
            torch.testing.assert_close(wanted[name][row], state[0].detach())
        kept = given["h0"][row] if reverse else wanted["h"][row]  # before it starts, or after it has ended
        torch.testing.assert_close(wanted["outputs"][length:, row], kept.detach().expand(5 - length, -1))


def test_one_step_of_the_lltm_is_the_cell():
    case = case_of("lltm", 1, 4, 3, 7)
    wanted, _ = case.reference()
    given = {name: tensor.detach() for name, tensor in case.inputs().items()}
    arguments = {"input": given["inputs"][0], "old_h": given["h0"], "old_cell": given["cell0"]}
    arguments |= {name: given[name] for name in ("weights", "bias")}
    new_h, new_cell = cell_reference.forward(**arguments)
    torch.testing.assert_close([wanted["h"], wanted["cell"]], [new_h, new_cell])
    grad_outputs, grad_h, grad_cell = case.gradients()
    gradients = cell_reference.backward(grad_h=grad_h + grad_outputs[0], grad_cell=grad_cell, **arguments)
    torch.testing.assert_close(wanted["d_inputs"][0], gradients["d_input"])
    for name, other in (("weights", "weights"), ("bias", "bias"), ("h0", "old_h"), ("cell0", "old_cell")):
        torch.testing.assert_close(wanted[f"d_{name}"], gradients[f"d_{other}"])


@pytest.mark.parametrize("cell", CELLS)
def test_a_row_of_length_zero_keeps_its_state(cell):
    case = case_of(cell, lengths=(0, 5, 0, 2))
    wanted, _ = case.reference()
    h0 = case.inputs()["h0"].detach()
    torch.testing.assert_close(wanted["h"][::2][:2], h0[::2])
    torch.testing.assert_close(wanted["outputs"][:, 0], h0[0].expand(5, -1))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("size", [(3, 0, 2, 4), (3, 2, 4, 0), (3, 2, 0, 4), (1, 1, 1, 1)], ids=str)
def test_small_sizes_have_a_reference(cell, size):
    for dtype in (torch.float64, torch.bfloat16):
        case = case_of(cell, *size, dtype=dtype)
        assert difference(case, outputs(case.equations, case)) is None


@pytest.mark.parametrize("cell", CELLS)
def test_without_steps_the_state_stays(cell):
    for grads in GRADS[: 3 if cell == "gru" else 4]:
        case = case_of(cell, 0, 3, 2, 4, grads=grads)
        wanted, _ = case.reference()
        assert wanted["outputs"].shape == (0, 3, 4)
        upstream = dict(zip(case.results, case.gradients(), strict=True))
        for name in case.kind.states:
            torch.testing.assert_close(wanted[name], case.inputs()[f"{name}0"].detach())
            grad = torch.zeros(3, 4) if upstream[name] is None else upstream[name]
            torch.testing.assert_close(wanted[f"d_{name}0"], grad.double())
        assert not any(wanted[f"d_{name}"].any() for name in ("inputs", *case.kind.parameters))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("size", [(6, 5, 4, 40), (12, 16, 8, 64)], ids=str)
def test_a_loop_in_low_precision_is_within_the_tolerance(cell, dtype, size):
    """Stage 7 rounds less often than this loop, which rounds the result of every operation.

    Over 30 steps, the loop's roundings exceed the tolerance somewhere in one case of nine.
    """
    for layout in ("contiguous", "transposed"):
        case = case_of(cell, *size, dtype=dtype, layout=layout)
        assert difference(case, outputs(case.equations, case)) is None
