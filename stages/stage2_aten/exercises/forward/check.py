import torch

from common.cell import reference
from common.exercises.judge import CALLS, Failure, LearnerError, agree, cases, require, same
from common.exercises.judging.repeats import nothing_kept


def check(work):
    returned(work)
    agree(work.cell(), cases(work))
    agree(work.cell(), [work.case(3, 5, 70, dtype=dtype) for dtype in (torch.half, torch.bfloat16)], gradients=False)
    nothing_kept(work, "_C.forward", work.case(3, 5, 70))
    refusals(work, work.cell())
    refuses_another_device(work)
    refuses_part_of_a_gate(work, work.cell())
    empty_batch(work)


def returned(work):
    """Checks the tensors that forward returns, both results and those that backward reads."""
    case = work.case(3, 5, 70, dtype=torch.float64)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    found = work.load("_C").forward(*inputs.values())
    require(
        isinstance(found, tuple | list) and len(found) == 4,
        "forward does not return the four tensors new_h, new_cell, X and gates",
    )
    X = torch.cat([inputs["old_h"], inputs["input"]], dim=1)
    z = X @ inputs["weights"].T + inputs["bias"]
    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_h, new_cell = reference.forward(**inputs)
    gates = torch.cat([torch.sigmoid(z_i), torch.sigmoid(z_o), torch.nn.functional.elu(z_g)], dim=1)
    want = {"X": X, "gates": gates, "new_cell": new_cell, "new_h": new_h}
    order = ("new_h", "new_cell", "X", "gates")
    other = torch.cat([inputs["input"], inputs["old_h"]], dim=1)
    suspects = {
        "these are the pre-activations z: backward reads the activated gates": z,
        "old_h and input are in the wrong order": other,
        "elu was applied to all three thirds": torch.nn.functional.elu(z),
        "the sigmoid was applied to all three thirds": torch.sigmoid(z),
        "this is tanh(new_cell): backward reads new_cell itself": torch.tanh(new_cell),
    }
    for name, tensor in want.items():
        others = {f"this is {key}": value for key, value in want.items() if key != name}
        same(name, found[order.index(name)], tensor, case, case.dtype, suspects=suspects | others)


def refusals(work, cell):
    """Checks that each argument is rejected in each way in which it may be wrong."""
    B, I, S = 3, 5, 70
    right = work.case(B, I, S).inputs()
    for name, wrong in (
        ("bias", right["bias"][:1]),
        ("bias", right["bias"].detach()[None]),
        ("bias", right["bias"].double()),
        ("bias", right["bias"].detach().to("meta")),
        ("old_cell", right["old_cell"][:1]),
        ("old_cell", right["old_cell"].detach().view(S, B)),
        ("old_cell", right["old_cell"].double()),
        ("old_cell", right["old_cell"].detach()[..., None]),
        ("old_cell", right["old_cell"].detach()[0]),
        ("old_h", right["old_h"].detach()[..., None]),
        ("old_h", right["old_h"][:, :-1]),
        ("old_h", right["old_h"][:1]),
        ("weights", right["weights"][:-1]),
        ("weights", right["weights"][0]),
        ("weights", right["weights"][:, :-1]),
        ("input", right["input"][0]),
        ("input", right["input"].detach().long()),
        ("input", right["input"].detach().bool()),
        ("input", right["input"].detach().to(torch.complex64)),
        ("weights", right["weights"].double()),
        ("old_h", right["old_h"].double()),
    ):
        shown = f"{name} of shape {tuple(wrong.shape)}, {wrong.dtype}, on {wrong.device}"
        try:
            cell(*(right | {name: wrong}).values())
        except LearnerError as error:
            said = str(error).partition("\n")[0]
            if not said.startswith(f"lltm: {name} "):
                raise Failure(
                    f"{shown} is rejected, but the message is {said!r}; it should begin with 'lltm: {name} ' "
                    "and come from check_arguments"
                ) from None
        else:
            raise Failure(f"{shown} is not rejected (B={B}, I={I}, S={S}): it is broadcast, or its memory is misread")


def refuses_another_device(work):
    """Checks that each argument but input is rejected if it is on another device of input's type."""
    right = {name: tensor.detach() for name, tensor in work.case(3, 5, 70).inputs().items()}
    elsewhere = work.beside(CALLS).call_with_elsewhere
    for number, name in enumerate(right):
        if name == "input":
            continue
        said = "it is not used"
        try:
            elsewhere("_C", "forward", number, *right.values())
        except LearnerError as error:
            said = str(error).partition("\n")[0]
        require(
            said.startswith(f"lltm: {name} "),
            f"{name} on cpu:1, another device than input's, is not rejected: {said}. Compare the devices, not only "
            "their types",
        )


def refuses_part_of_a_gate(work, cell):
    """Checks that the rows of weights and bias must be a multiple of 3."""
    S = 70
    right = work.case(3, 5, S).inputs()
    longer = {name: torch.cat([right[name], right[name][:1]]) for name in ("weights", "bias")}
    for names in (("weights", "bias"), ("weights",)):
        what = f"{' and '.join(names)} of {3 * S + 1} rows"
        try:
            cell(*(right | {name: longer[name] for name in names}).values())
        except LearnerError as error:
            said = str(error).partition("\n")[0]
            require(
                said.startswith("lltm: "),
                f"{what} are rejected with {said!r}; the message should come from check_arguments",
            )
        else:
            raise Failure(f"{what}, which is not a multiple of 3, are not rejected")


def empty_batch(work):
    """Checks that arguments without rows are accepted if their shapes fit."""
    try:
        agree(work.cell(), [work.case(0, 5, 70)])
    except LearnerError as error:
        raise Failure(
            f"an empty batch, B=0, is rejected with {str(error).splitlines()[0]!r}, but its shapes fit: new_h and "
            "new_cell have shape (0, S), and the gradients of weights and bias are zero"
        ) from None
