import torch
import torch.nn.functional as F

from common.exercises.judge import CALLS, require, right_or_refused, same, unchanged

SIZES = ((3, 5, 70), (1, 4, 33), (6, 2, 1))  # B, I, O
SUMS = (
    1e-12  # for sums over the batch: terms may cancel, so that the result is small compared with the rounding errors
)
FROM_ARGUMENTS = (
    "If backward computes everything from the saved arguments, second derivatives are right by themselves"
)
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "linear", "matmul")


def check(work):
    unchanged(work, "trial.py", "Edit only answer.py")
    function = getattr(work.load("answer"), "LinearGelu.apply")
    generator = work.numbers()
    for size in SIZES:
        for expanded in (False, True):
            right(function, size, expanded, generator)
    for by_columns in (False, True):
        keeps_arguments_only(work, function, leaves((16, 32, 128), generator, by_columns))
    arguments = dict(zip(("input", "weight", "bias"), leaves((3, 2, 4), generator), strict=True))
    right_or_refused(function, lambda *given: F.gelu(F.linear(*given)), arguments, FROM_ARGUMENTS)


def leaves(size, generator, by_columns=False):
    """input (B, I), weight (O, I) and bias (O) in float64; with `by_columns`, matrices that are not contiguous."""
    B, I, O = size
    tensors = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((B, I), (O, I), (O,))]
    if by_columns:
        tensors = [one.t().contiguous().t() for one in tensors]
    return [one.requires_grad_() for one in tensors]


def right(function, size, expanded, generator):
    input, weight, bias = arguments = leaves(size, generator)
    want, got = F.gelu(F.linear(input, weight, bias)), function(*arguments)
    shape = () if expanded else want.shape
    d_output = torch.randn(shape, dtype=torch.float64, generator=generator).expand(want.shape)
    what = f"(B, I, O) = {size}, float64" + (", d_output expanded" if expanded else "")
    same("the result", got, want, what)
    require(got.requires_grad, "the result has no gradient: autograd does not know how it was computed")
    without = torch.autograd.grad(F.gelu(F.linear(input, weight)), (input, weight), d_output)
    found, wanted = (torch.autograd.grad(result, arguments, d_output, allow_unused=True) for result in (got, want))
    words = "z was computed again without the bias"
    same("d_input", found[0], wanted[0], what, suspects={words: without[0]})
    same("d_weight", found[1], wanted[1], what, tolerance_=SUMS, suspects={words: without[1]})
    same("d_bias", found[2], wanted[2], what, tolerance_=SUMS)


def keeps_arguments_only(work, function, arguments):
    with work.counting() as counted:
        result = function(*arguments)
    allowed = sum(one.nbytes for one in arguments)
    require(
        counted.saved <= allowed,
        f"forward saves {counted.saved:,} bytes for backward, but the three arguments have only {allowed:,}; "
        f"one tensor of the result's shape has {result.nbytes:,}",
    )
    left = work.load("trial").left_over(*arguments)
    made = ", ".join(str(tuple(shape)) for shape in left)
    require(
        not left,
        f"tensors that forward created still exist after it: {made}. A tensor kept as an attribute, or anywhere "
        "else, takes the same memory, although autograd does not count it",
    )
    on_ctx = ", ".join(work.beside(CALLS).attributes("answer", "LinearGelu.apply", *arguments))
    require(
        not on_ctx,
        f"attributes of ctx hold tensors: {on_ctx}. If the caller changes one of them before backward, the gradient "
        "is wrong without an error; autograd checks only what ctx.save_for_backward saves",
    )
    require(
        counted.saved == allowed,
        f"ctx.save_for_backward saves {counted.saved:,} bytes, but the three arguments have {allowed:,} and "
        "backward needs them all: it takes one from another place, such as a closure or an attribute of the class. "
        "If the caller changes it before backward, or another call replaces it, the gradient is wrong without an "
        "error",
    )
    with work.counting() as counted:
        torch.autograd.grad(result.sum(), arguments)
    products = sum(number for name, number in counted.calls.items() if name in PRODUCTS)
    require(
        products >= 3, f"backward computes {products} matrix products, but 3 are needed: where does it get z from?"
    )
