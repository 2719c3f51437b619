from pathlib import Path

import torch

from common.exercises.judge import CALLS, Failure, LearnerError, require, same, unchanged

ENOUGH = (
    "x itself holds tanh(x) by the end of forward, and the derivative can be computed from that; save x, not a copy"
)


def check(work):
    unchanged(work, "trial.py", "Edit only in_place.py")
    trial, numbers = work.load("trial"), work.numbers()
    for shape, dtype in (((3, 5), torch.float64), ((70,), torch.float32), ((1,), torch.float64), ((5, 3), None)):
        start = torch.randn(shape, generator=numbers, dtype=torch.float64).to(dtype)
        case = f"shape {shape}, {str(dtype or torch.float64).removeprefix('torch.')}"
        if dtype is None:
            start, dtype, case = start.t(), torch.float64, f"{case}, transposed"
        start.requires_grad_()
        grad = torch.randn(start.shape, generator=numbers, dtype=torch.float64).to(dtype)
        x, made_by = trial.used_afterwards(start)
        y = torch.tanh(start.detach().double())
        same("x after tanh_(x)", x, y, case, dtype)
        allocations = work.beside(CALLS).allocations("trial", "used_afterwards", start)
        made = ", ".join(allocations[1:])  # the first is the trial's own x
        require(not made, f"{made} allocates a second tensor of x's size ({case}): {ENOUGH}")
        require(x.requires_grad, f"x has no gradient after tanh_(x) ({case})")
        (d_start,) = torch.autograd.grad(x, start, grad, allow_unused=True)
        bypassed = "the gradient bypasses tanh_: autograd does not know that x was changed"
        suspects = {bypassed: grad.double(), "this is 1 - y * y without the upstream gradient": 1 - y * y}
        same("the gradient of x", d_start, grad.double() * (1 - y * y), case, dtype, suspects=suspects)
        after = "backward has changed x: it computes in the memory that forward saved, which is x itself"
        require(torch.equal(trial.used_after_backward(start), x.detach()), f"{after} ({case})")
        require(made_by == "TanhInPlaceBackward", f"x was made by {made_by}, not by TanhInPlace")
    differentiated_twice(work, numbers)
    x, is_itself = trial.of_a_plain_tensor(start)
    same("x after tanh_(x)", x, torch.tanh(start.detach()), "x requires no gradient", torch.float64)
    require(is_itself, "tanh_(x) does not return x, if x requires no gradient")
    made = ", ".join(work.beside(CALLS).allocations("trial", "of_a_plain_tensor", start)[1:])
    require(not made, f"{made} allocates a second tensor of x's size, if x requires no gradient: overwrite x itself")
    noticed(trial.of_a_leaf, start, "leaf", "tanh_ of a leaf that requires a gradient does not raise an error")
    message = "x was changed before backward, but no error was raised: the gradient belongs to other numbers"
    noticed(trial.changed_before_backward, start, "modified by an inplace operation", message)
    message = (
        "sin(x) had saved x before tanh_ overwrote it, but its backward raised no error: autograd counts the changes "
        "of x itself, not those of x.data"
    )
    noticed(trial.changed_after_it_was_saved, start, "modified by an inplace operation", message)


def differentiated_twice(work, numbers):
    """The second derivative is right, or refused with torch's `once_differentiable`."""
    start = torch.randn(3, 5, generator=numbers, dtype=torch.float64).requires_grad_()
    calls = work.beside(Path(__file__).with_name("twice.py"))
    constant = "backward computes 1 - y * y so that autograd treats it as a constant"
    try:
        second = calls.second_derivative(start)
    except LearnerError as error:
        raise Failure(f"the second derivative through tanh_ raises {error.kind}: {constant}") from None
    if second is not None:
        y = torch.tanh(start.detach())
        slope = 1 - y * y
        of_grad, of_slope = 2 * slope**2, -4 * y * y * slope
        cut_off = "backward uses grad as a constant, but the upstream gradient depends on x, too"
        same("the second derivative of tanh_(x) ** 2", second, of_grad + of_slope, "shape (3, 5), float64",
             suspects={constant: of_grad, cut_off: of_slope})  # fmt: skip


def noticed(call, start, words, message):
    """Raises `Failure` unless autograd itself raises an error with these words."""
    try:
        call(start)
    except LearnerError as error:
        if words in str(error):
            return
        raise
    raise Failure(message)
