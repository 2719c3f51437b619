import torch

from common.exercises.judge import made_by, require, same


def check(work):
    cube, numbers = work.load("functions").cube, work.numbers()
    for shape in ((7,), (3, 4), (1,)):
        x = torch.randn(shape, generator=numbers, dtype=torch.float64, requires_grad=True)
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
            "the derivative of 3x² is not 3x": 18 * at**3 * grad**2,
            "the derivative of 3x² is 6x, not 2 * slope: backward needs x, too": 36 * at**4 * grad**2,
        }
        second = torch.zeros_like(at) if second is None else second
        same(
            "the second derivative", second, 36 * at**3 * grad**2, f"shape {shape}", torch.float64, suspects=suspects
        )
        require(
            counted.saved >= 2 * x.nbytes,
            f"only {counted.saved} bytes are saved for backward, but x and slope have {2 * x.nbytes}: backward "
            "computes the derivative again instead of using slope",
        )
