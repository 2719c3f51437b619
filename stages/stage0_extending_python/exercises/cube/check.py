import torch

from common.exercises.judge import Failure, LearnerError, made_by, require, same

# Runs in the learner's folder: the third derivative, and the first with a slope that has been doubled.
DERIVATIVES = """
import torch
from functions import Cube, cube

x = torch.tensor([-2.0, 0.5, 3.0], dtype=torch.float64, requires_grad=True)
y = cube(x)
for _ in range(3):
    found = torch.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True) if y.requires_grad else [None]
    y = torch.zeros_like(x) if found[0] is None else found[0]
third = y.tolist()
y, slope = Cube.apply(x)
slope.data.mul_(2)
(first,) = torch.autograd.grad(y.sum(), x)
tell([third, first.tolist()])
"""


def check(work):
    functions, numbers = work.load("functions"), work.numbers()
    cube = functions.cube
    for shape in ((7,), (3, 4), (1,)):
        x = torch.randn(shape, generator=numbers, dtype=torch.float64)
        x.flatten()[1:2] = 0  # where x³ / x is NaN
        x.requires_grad_()
        grad = torch.randn(shape, generator=numbers, dtype=torch.float64)
        at = x.detach()
        with work.counting() as counted:
            y = cube(x)
        same("cube(x)", y, at**3, f"shape {shape}", torch.float64)
        require(y.requires_grad, "cube(x) has no gradient: autograd does not know how it was computed")
        made_by(work, "Cube", "functions", "cube", x)
        (first,) = torch.autograd.grad(y, x, grad, allow_unused=True)
        same("the first derivative", first, 3 * at**2 * grad, f"shape {shape}", torch.float64)
        # The gradient of the sum of the squared first derivatives, which are 3 x² grad.
        (second,) = cube.second_derivatives(grad)
        suspects = {
            "slope is treated as a constant: grad_slope is not used": torch.zeros_like(at),
            "6x has the sign of x, but this is positive everywhere": 36 * at.abs() ** 3 * grad**2,
            "the derivative of 3x² is not 3x": 18 * at**3 * grad**2,
            "the derivative of 3x² is 6x, not 2 * slope: backward needs x, too": 36 * at**4 * grad**2,
        }
        second = torch.zeros_like(at) if second is None else second
        same(
            "the second derivative", second, 36 * at**3 * grad**2, f"shape {shape}", torch.float64, suspects=suspects
        )
        of_both_outputs(functions, x, grad, shape)
        require(
            counted.saved >= 2 * x.nbytes,
            f"only {counted.saved} bytes are saved for backward, but x and slope have {2 * x.nbytes}: backward "
            "computes the derivative again instead of using slope",
        )
    ran = work.observe(DERIVATIVES)
    third, first = ran.told or (ran.output[-200:], None)
    require(
        third == [6.0, 6.0, 6.0],
        f"the third derivative is {third}, expected 6 everywhere, although the first two are "
        "right: autograd treats what forward computes and saves as a constant, unless it is an output",
    )
    require(
        first == [24.0, 1.5, 54.0],
        "slope is saved, but backward does not use it: at x = [-2, 0.5, 3], with slope doubled after forward, the "
        f"first derivative is {first}, expected [24.0, 1.5, 54.0]",
    )


def of_both_outputs(functions, x, grad, shape):
    """Checks the gradient of both outputs, and that backward changes neither upstream gradient."""
    try:
        (both,) = torch.autograd.grad(getattr(functions, "Cube.apply")(x), x, [grad, grad])
    except LearnerError as error:
        if "modifies the gradient" not in str(error):
            raise
        raise Failure(
            "backward writes into grad_y or grad_slope: the same memory may be the gradient of another tensor. "
            "Compute a new tensor"
        ) from None
    at = x.detach()
    same("the gradient of both outputs", both, (3 * at**2 + 6 * at) * grad, f"shape {shape}", torch.float64)
