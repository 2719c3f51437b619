from pathlib import Path

from common.cell.case import INPUTS, input_gradients
from common.exercises.judge import (
    OPERATORS,
    SMALL,
    Failure,
    LearnerError,
    Stopped,
    agree,
    cases,
    once_differentiable,
    require,
)

OPERATIONS = Path(__file__).parents[1] / "leave_it_out" / "operations.py"
PRODUCTS = ("mm", "addmm", "addmm_")
PLAINLY = "The operator cell_backward refuses it in plain words, if autograd sees the call"


def check(work):
    cell = work.cell()
    ends(work, cell)
    agree(cell, cases(work))
    probe = work.beside(OPERATORS)
    z_is_no_result(work, probe)
    kept(work, cell)
    operations = work.beside(OPERATIONS)
    no_zeros(work, operations)
    only_what_is_needed(work, operations)
    once_differentiable(work, cell, PLAINLY)
    traced(work, probe)


def ends(work, cell):
    """One call, which a cell that calls itself does not survive."""
    case = work.case(*SMALL)
    try:
        cell(*case.inputs().values())
    except Stopped as stopped:
        raise Failure(
            f"{stopped}\nEvery call of `cell` comes to this forward first, the one in it too, unless a guard leads "
            "it past autograd"
        ) from None


def z_is_no_result(work, probe):
    """Who differentiates z is told that it has no gradient."""
    new_h, new_cell, z = probe.call("cell", *work.case(*SMALL).inputs().values())
    require(new_h.requires_grad and new_cell.requires_grad, "new_h and new_cell need gradients, and have none")
    require(
        not z.requires_grad,
        "z seems to have a gradient, and it would be lost without a word: backward does not use it. "
        "ctx->mark_non_differentiable says that there is none",
    )


def kept(work, cell):
    """Three inputs, an output and z."""
    case = work.case(*SMALL)
    inputs = case.inputs()
    with work.counting() as counted:
        results = cell(*inputs.values())
    input_gradients(results, inputs, case.gradients())
    given = {name: inputs[name].nbytes for name in ("input", "weights", "old_h")}
    needed = sum(given.values()) + 4 * results[1].nbytes  # new_cell, and z with three numbers for each unit
    require(
        counted.saved <= needed,
        f"{counted.saved:,} bytes are kept for backward, where {needed:,} are enough: those of input, weights, "
        "old_h, new_cell and z. What are the others for?",
    )
    require(
        counted.saved == needed,
        f"only {counted.saved:,} bytes went through save_for_backward, where backward reads {needed:,}: "
        "what is kept elsewhere, nobody watches, and what is computed again costs more than reading it",
    )


def no_zeros(work, operations):
    """None are made for an output that nobody used."""
    for grads in ("h only", "cell only"):
        case = work.case(*SMALL, grads=grads)
        inputs = [tensor.detach() for tensor in case.inputs().values()]
        found = operations.passes(list(range(len(INPUTS))), list(case.gradients()), *inputs)["backward"]["own"]
        made = sum(number for name, number in found.items() if name.startswith(("zero", "new_zeros", "full", "fill")))
        require(
            not made,
            f"with a gradient of {grads}, backward makes zeros ({made} calls), where the operator takes nullopt: "
            "set_materialize_grads(false)",
        )


def only_what_is_needed(work, operations):
    """`needs` is what autograd says."""
    for needed in (("weights", "bias"), *((name,) for name in INPUTS)):
        case = work.case(*SMALL, requires_grad=needed)
        agree(work.cell(), [case])
        inputs = [tensor.detach() for tensor in case.inputs().values()]
        places = [INPUTS.index(name) for name in needed]
        found = operations.passes(places, list(case.gradients()), *inputs)["backward"]["all"]
        products = sum(found.get(product, 0) for product in PRODUCTS)
        enough = bool({"input", "old_h"} & set(needed)) + 2 * ("weights" in needed)
        require(
            products <= enough,
            f"when {' and '.join(needed)} alone need a gradient, backward makes {products} products, where {enough} "
            "would do: needs_input_grad says which gradients anybody wants",
        )


def traced(work, probe):
    """Whole under torch.compile, with sizes that are not known."""
    agree(lambda *inputs: compiled(probe, inputs), [work.case(*size) for size in (SMALL, (4, 6, 33))])
    for test in ("test_autograd_registration", "test_aot_dispatch_dynamic"):
        said = probe.opcheck("cell", test, *work.case(*SMALL).inputs().values())
        require(not said, f"opcheck's {test}: {said}")


def compiled(probe, inputs):
    """The cell in one graph."""
    try:
        return probe.compiled("lltm", "lltm", True, *inputs)
    except LearnerError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        size = next((line for line in lines if "size mismatch" in line), None)
        what = "fits only the sizes that it was traced with" if size else "cannot be traced"
        raise Failure(
            f"the compiled cell {what}: {size or lines[0]}\nWhile torch.compile traces, tensors have no numbers and "
            "sizes may be unknown. An operator has a fake kernel that knows what to do then. A function that is "
            "called past the dispatcher has none, and its size(0) pins a size to a number"
        ) from None
