import re

import torch

from common.cell.case import input_gradients
from common.exercises.judge import agree, cases, no_silent_second_derivatives, releases_gil, require
from common.exercises.judging.repeats import nothing_kept

ARGUMENTS = {
    "forward": ("input", "weights", "bias", "old_h", "old_cell"),
    "backward": ("grad_h", "grad_cell", "weights", "X", "gates", "new_cell", "needs_input_grad"),
}

CONNECT = (
    "Save a result of the Function (new_cell), and call the gradient as a Function of its own, LLTMBackward.apply, "
    "whose backward raises an error that names once_differentiable"
)


def check(work):
    binding(work)
    cell = work.cell()
    agree(cell, cases(work))
    saved(work, cell)
    unused_output(work, cell)
    nothing_kept(work, "lltm.lltm", work.case(3, 5, 70))
    two_calls(work, cell)
    no_silent_second_derivatives(work, cell, CONNECT)
    threads(work)


def binding(work):
    """Checks the names of functions and arguments."""
    extension = work.load("_C")
    for function, names in ARGUMENTS.items():
        require(function in dir(extension), f"the module _C has no {function}: m.def gives a function its name")
        signature = getattr(extension, function).doc.partition("\n")[0]  # which pybind11 writes
        for name in names:
            require(
                f"{name}: " in signature, f"help(_C.{function}) shows no argument {name}: py::arg gives it its name"
            )
        shown = tuple(re.findall(r"(\w+): ", signature))
        require(shown == names, f"help(_C.{function}) shows the arguments {', '.join(shown)}, in a wrong order")


def two_calls(work, cell):
    """Checks that backward computes what the inputs of its own call need, also if another call came between."""
    case = work.case(3, 5, 70)
    inputs = case.inputs()
    results = cell(*inputs.values())
    cell(*work.case(3, 5, 70, requires_grad=("bias",)).inputs().values())
    found = input_gradients(results, inputs, case.gradients())
    missing = ", ".join(name for name, gradient in found.items() if gradient is None)
    require(
        not missing,
        f"after another call, in which only bias needs a gradient, backward of the first call returns no {missing}: "
        "take the flags from the ctx of the call",
    )


def threads(work):
    """Checks that other Python threads can run meanwhile."""
    inputs = [one.detach() for one in work.case(512, 500, 500, dtype=torch.float64).inputs().values()]
    new_h, new_cell, *saved = work.load("_C").forward(*inputs)
    releases_gil(work, "forward", *inputs)
    releases_gil(work, "backward", new_h, new_cell, inputs[1], *saved, new_cell, [True] * 5)


def saved(work, cell):
    """Checks that the tensors that backward needs are saved where autograd notices changes, and no others."""
    B, I, S = 3, 5, 70
    with work.counting() as counted:
        cell(*work.case(B, I, S).inputs().values())
    needed = 4 * (3 * S * (S + I) + B * (S + I) + 3 * B * S + B * S)
    what = f"save_for_backward got {counted.saved} bytes, but weights, X, gates and new_cell"
    require(
        counted.saved >= needed,
        f"{what} have {needed}. Autograd does not notice changes to a tensor that is kept as an attribute of ctx",
    )
    require(
        counted.saved <= needed,
        f"{what}, which are all that backward reads, have {needed}. "
        "Every other tensor stays in memory until backward for nothing",
    )


def unused_output(work, cell):
    """Checks that backward makes no zeros for an unused output and no products for an input without gradient."""
    calls = {}
    for grads in ("both", "cell only", "h only"):
        case = work.case(3, 5, 70, grads=grads)
        inputs = case.inputs()
        results = cell(*inputs.values())
        with work.counting() as counted:
            input_gradients(results, inputs, case.gradients())
        calls[grads] = counted.all_calls
    for grads, unused in (("cell only", "new_h"), ("h only", "new_cell")):
        require(
            calls[grads] < calls["both"],
            f"backward makes {calls['both']} ATen calls with both gradients and {calls[grads]} when {unused} has "
            "none: autograd made zeros for it, or your code did. With set_materialize_grads(False), its gradient is "
            "None, which _C.backward accepts",
        )
    case = work.case(3, 5, 70, requires_grad=("bias",))
    inputs = case.inputs()
    results = cell(*inputs.values())
    with work.counting() as counted:
        input_gradients(results, inputs, case.gradients())
    require(
        "mm" not in counted.calls,
        "only bias needs a gradient, but backward multiplies matrices: use needs_input_grad",
    )
