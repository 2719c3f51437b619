from pathlib import Path

import torch

from common.cell import reference
from common.exercises.judge import LearnerError, agree, cases, digits_kept, require, same
from common.exercises.judging.repeats import nothing_kept


def check(work):
    cell = work.cell()
    gates_not_batch(work, cell)
    case = work.case(3, 5, 70, dtype=torch.float64)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    results = cell(*inputs.values())
    if isinstance(results, tuple | list) and len(results) == 2:
        same("new_cell", results[1], reference.forward(**inputs)[1], case, suspects=mistakes(**inputs))
    agree(cell, cases(work))
    called_otherwise(work, inputs, case)
    near_zero(work, cell)


def called_otherwise(work, inputs, case):
    """The results under no_grad, also after a later call, and after the arguments were changed in place."""
    calls = work.beside(Path(__file__).with_name("calls.py"))
    first = reference.forward(**inputs)
    later = reference.forward(**{name: -tensor for name, tensor in inputs.items()})
    under_no_grad = calls.lltm_under_no_grad(*inputs.values())
    before_another = calls.lltm_before_another_call(*inputs.values())
    for k, name in enumerate(("new_h", "new_cell")):
        same(name, under_no_grad[k], first[k], f"{case}, under no_grad")
        replaced = {"this is the result of the later call: each call must return new tensors": later[k]}
        same(name, before_another[k], first[k], f"{case}, under no_grad, after a later call", suspects=replaced)
    nothing_kept(work, "lltm.lltm", case)


def near_zero(work, cell):
    """The candidate cell keeps its digits where z is small."""
    z = -1e-6
    inputs = {name: 0 * tensor.detach() for name, tensor in work.case(3, 5, 70).inputs().items()}
    inputs["bias"] += z
    _, new_cell = cell(*inputs.values())
    digits_kept(new_cell / inputs["bias"][0].sigmoid(), z, "F.elu keeps them")


def gates_not_batch(work, cell):
    """At B=3, S=1, z is 3 by 3, and a split along the wrong dimension does not raise an error."""
    try:
        results = cell(*work.case(3, 2, 1).inputs().values())
    except LearnerError:
        return  # other sizes show this error more clearly
    if not isinstance(results, tuple | list):
        return
    for name, result in zip(("new_h", "new_cell"), results, strict=False):
        require(
            getattr(result, "shape", None) != (3, 3),
            f"{name} has shape (3, 3), expected (3, 1) (B=3, I=2, S=1): z was split along the batch, dimension 0. "
            "There is no error at this size because z is 3 by 3",
        )


def mistakes(input, weights, bias, old_h, old_cell):
    """Wrong values that new_cell may have, by the mistake that leads to them."""
    S = old_cell.size(1)
    swapped = torch.cat([weights[:, -S:], weights[:, :-S]], dim=1)
    _, last = reference.forward(input, swapped, bias, old_h, old_cell)
    z = torch.cat([old_h, input], dim=1) @ weights.T + bias
    z_i, z_o, z_g = z.chunk(3, dim=1)
    input_gate, elu = torch.sigmoid(z_i), torch.nn.functional.elu
    _, right = reference.forward(input, weights, bias, old_h, old_cell)
    forgets = "old_cell is multiplied by something, as with the forget gate of an LSTM; this cell only adds to it"
    return {
        "old_h and input are in the wrong order in X": last,
        forgets: right - input_gate * old_cell,
        f"{forgets} ": right - (1 - input_gate) * old_cell,
        "old_cell is missing": right - old_cell,
        "the bias is missing": reference.forward(input, weights, torch.zeros_like(bias), old_h, old_cell)[1],
        "the candidate cell is tanh(z_g), expected elu(z_g)": old_cell + torch.tanh(z_g) * input_gate,
        "the gates take z's columns in turns, but z_i is its first third": old_cell
        + elu(z[:, 2::3]) * torch.sigmoid(z[:, ::3]),
        "z_i and z_o are exchanged": old_cell + elu(z_g) * torch.sigmoid(z_o),
        "z_i and z_g are exchanged": old_cell + elu(z_i) * torch.sigmoid(z_g),
        "z_o and z_g are exchanged": old_cell + elu(z_o) * input_gate,
    }
