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
    no_silent_second_derivatives,
    require,
)

OPERATIONS = Path(__file__).parents[1] / "leave_it_out" / "operations.py"
ALL = list(range(len(INPUTS)))
PRODUCTS = ("mm", "addmm", "addmm_")
# B, I, S: more rows than the stage adds up in one part. Then it adds the parts, for the bias, with ATen's sum.
SEVERAL_PARTS = (65, 3, 5)
PLAINLY = (
    "The operator cell_backward rejects it with a clear message, if autograd sees the call. The node of this call is "
    "connected with what cell_backward gets: save new_cell, a result, as it is, because it leads to every argument"
)


def check(work):
    cell = work.cell()
    ends(work, cell)
    agree(cell, cases(work))
    probe = work.beside(OPERATORS)
    z_is_not_differentiable(work, probe)
    kept(work, cell)
    operations = work.beside(OPERATIONS)
    no_zeros(work, operations)
    only_what_is_needed(work, operations)
    only_what_is_asked(work, operations)
    no_silent_second_derivatives(work, cell, PLAINLY)
    traced(work, probe)


def ends(work, cell):
    """One call, in which a cell without a guard calls itself without end."""
    case = work.case(*SMALL)
    try:
        cell(*case.inputs().values())
    except Stopped as stopped:
        raise Failure(
            f"{stopped}\nEvery call of `cell` reaches this forward first, also the call inside forward, unless a "
            "guard makes it skip autograd"
        ) from None


def z_is_not_differentiable(work, probe):
    """Autograd treats z as not differentiable."""
    new_h, new_cell, z = probe.call("cell", *work.case(*SMALL).inputs().values())
    require(new_h.requires_grad and new_cell.requires_grad, "new_h and new_cell must require gradients, but do not")
    require(
        not z.requires_grad,
        "z requires a gradient, but backward ignores the gradient of z, so it would be lost silently. "
        "Mark z with ctx->mark_non_differentiable",
    )


def kept(work, cell):
    """Three inputs, one output and z are saved, and nothing else."""
    case = work.case(*SMALL)
    inputs = case.inputs()
    with work.counting() as counted:
        results = cell(*inputs.values())
    input_gradients(results, inputs, case.gradients())
    given = {name: inputs[name].nbytes for name in ("input", "weights", "old_h")}
    needed = sum(given.values()) + 4 * results[1].nbytes  # new_cell, and z with three numbers for each unit
    require(
        counted.saved <= needed,
        f"{counted.saved:,} bytes are saved for backward, but {needed:,} are enough: those of input, weights, "
        "old_h, new_cell and z. What are the others for?",
    )
    require(
        counted.saved == needed,
        f"only {counted.saved:,} bytes are saved with save_for_backward, but backward reads {needed:,}: autograd "
        "does not check tensors that are kept elsewhere, and computing them again takes longer than reading them",
    )


def no_zeros(work, operations):
    """No zeros are created for an output that was not used."""
    for grads in ("h only", "cell only"):
        case = work.case(*SMALL, grads=grads)
        inputs = [tensor.detach() for tensor in case.inputs().values()]
        found = operations.passes(ALL, ALL, list(case.gradients()), *inputs)["backward"]["own"]
        made = sum(number for name, number in found.items() if name.startswith(("zero", "new_zeros", "full", "fill")))
        require(
            not made,
            f"with a gradient of {grads}, backward creates zeros ({made} calls), but the operator accepts nullopt: "
            "call ctx->set_materialize_grads(false)",
        )


def only_what_is_needed(work, operations):
    """`needs` asks only for the gradients that autograd needs."""
    for needed in (("weights", "bias"), *((name,) for name in INPUTS)):
        case = work.case(*SEVERAL_PARTS, requires_grad=needed)
        agree(work.cell(), [case])
        inputs = [tensor.detach() for tensor in case.inputs().values()]
        places = [INPUTS.index(name) for name in needed]
        counted = operations.passes(places, places, list(case.gradients()), *inputs)["backward"]
        found = counted["all"]
        products = sum(found.get(product, 0) for product in PRODUCTS)
        enough = bool({"input", "old_h"} & set(needed)) + 2 * ("weights" in needed)
        require(
            products <= enough,
            f"when only {' and '.join(needed)} need a gradient, backward computes {products} products, but {enough} "
            "are enough: needs_input_grad says which gradients are needed",
        )
        columns = {"input": case.I, "old_h": case.S, "weights": case.I + case.S}
        least = 3 * case.B * case.S * sum(columns.get(name, 0) for name in needed)
        require(
            counted["multiplications"] <= least,
            f"when only {' and '.join(needed)} need a gradient, backward makes {counted['multiplications']:,} "
            f"multiplications, but {least:,} are enough: needs may ask for the gradient of input or of old_h alone",
        )
        sums = sum(number for name, number in found.items() if name.startswith("sum"))
        require(
            sums <= ("bias" in needed),
            f"when only {' and '.join(needed)} need a gradient, backward computes the sum for the bias, which is not "
            "needed",
        )


def only_what_is_asked(work, operations):
    """All inputs need gradients, and `torch.autograd.grad` is called for that of the bias alone."""
    case = work.case(*SEVERAL_PARTS)
    inputs = [tensor.detach() for tensor in case.inputs().values()]
    bias = [INPUTS.index("bias")]
    found = operations.passes(ALL, bias, list(case.gradients()), *inputs)["backward"]["all"]
    products = sum(found.get(product, 0) for product in PRODUCTS)
    require(
        not products,
        "when all inputs need gradients and torch.autograd.grad is called for that of bias alone, backward computes "
        f"{products} products, and none is needed: ask ctx->needs_input_grad in backward, not requires_grad in "
        "forward",
    )


def traced(work, probe):
    """torch.compile makes one graph of the cell, with unknown sizes."""
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
        what = "works only for the sizes that it was traced with" if size else "cannot be traced"
        raise Failure(
            f"the compiled cell {what}: {size or lines[0]}\nWhile torch.compile traces, tensors have no data and "
            "sizes may be unknown. An operator has a fake kernel for this case. A C++ function that is called "
            "without the dispatcher has none, and its size(0) fixes a size to one number"
        ) from None
