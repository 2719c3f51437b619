"""Functions with their own gradients. Syllabus 0.1 to 0.6; functions.py and linear.py of stage 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...build import modules
from ...cell.memory import saved_bytes
from ..lines import Check
from .checks import agrees, leaf, passes, refuses, refuses_second_derivatives

functions, linear = modules.load_stage(0).functions, modules.load_stage(0).linear


def interp() -> str:
    """A function computed by NumPy has a first and a second derivative."""

    def line(x: Tensor) -> Tensor:
        return functions.interp(x, [0.0, 1.0, 3.0], [1.0, 2.0, -5.0])

    x = torch.tensor(
        [-0.4, 0.3, 0.9, 1.7, 3.2], dtype=torch.float64, requires_grad=True
    )  # not at a knot, which has no derivative
    agrees("interp", line(x), torch.tensor([1.0, 1.3, 1.9, -0.45, -5.0], dtype=torch.float64))
    passes("interp", line, x, twice=True)
    refuses("interp with decreasing knots", lambda: functions.interp(x, [1.0, 0.0], [0.0, 0.0]), "knots")
    return f"gradcheck at {len(x)} points; decreasing knots are refused"


def swish() -> str:
    """A single node saves nothing besides its input; a second derivative is refused."""
    x = leaf(7)
    passes("swish", functions.swish, x, 1.5)
    agrees("swish", functions.swish(x, 1.5), x * torch.sigmoid(1.5 * x))
    refuses_second_derivatives("swish", functions.swish, x, 1.5)
    x = leaf(100, 100)
    ours, formula = saved_bytes(lambda: functions.swish(x), [x]), saved_bytes(lambda: x * torch.sigmoid(x), [x])
    assert ours == 0, f"swish keeps {ours:,} bytes besides its input, expected none"
    return f"keeps {ours} bytes for backward, the formula {formula:,}"


def second_derivative(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The second derivative of the sum of y ** 2, by `backward`."""
    (gradient,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
    x.grad = None
    gradient.sum().backward()
    return x.grad


def scale() -> str:
    """Backward accepts a gradient of None: gradcheck tests that."""
    x = leaf(4)
    passes("scale", functions.scale, x, -3.0, twice=True)
    return "gradcheck, which also tries None"


def exp_() -> str:
    """An in-place function returns the same memory with a new history, and refuses a leaf."""
    x = leaf(4)
    passes("exp_", lambda x: functions.exp_(x.clone()), x, twice=True)
    changed = x.clone()
    assert functions.exp_(changed) is changed, "exp_ does not return the tensor that it was given"
    (gradient,) = torch.autograd.grad(changed.sum(), x)
    agrees("the gradient through what exp_ has changed", gradient, x.exp())
    refuses("exp_ of a leaf", lambda: functions.exp_(x), "leaf")
    return "gradcheck; a leaf is refused"


def clip() -> str:
    """The mask does not require a gradient."""
    x = torch.tensor([-2.0, -0.5, 0.7, 3.0], dtype=torch.float64, requires_grad=True)
    passes("clip", lambda x: functions.clip(x, -1.0, 1.0)[0], x)
    _, inside = functions.clip(x, -1.0, 1.0)
    assert not inside.requires_grad, "the mask of clip requires a gradient, but it has no derivative"
    agrees("the mask of clip", inside, torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    return "gradcheck; its mask requires no gradient"


def cube() -> str:
    """The second derivative is right; a simpler backward would make it silently wrong."""
    x = leaf(5)
    passes("cube", functions.cube, x, twice=True)
    two = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    second = second_derivative(functions.cube, two).item()
    assert second == 480, f"the second derivative of (x ** 3) ** 2 at 2 is {second:g}, expected 480"
    return "gradgradcheck; the second derivative of y ** 2 is 480 at x = 2"


def linear_function() -> str:
    """Every combination of required gradients, with and without a bias."""
    tried = 0
    for needed in range(8):
        given = [leaf(3, 5), leaf(4, 5), leaf(4)]
        for k, tensor in enumerate(given):
            tensor.requires_grad_(bool(needed >> k & 1))
        for arguments in (given, given[:2]):
            agrees("linear", linear.linear(*arguments), torch.nn.functional.linear(*arguments))
            if any(tensor.requires_grad for tensor in arguments):
                passes("linear", linear.linear, *arguments, twice=True)
                tried += 1
    refuses("a bias of shape (1)", lambda: linear.linear(leaf(3, 5), leaf(4, 5), leaf(1)), "bias")
    return f"gradcheck and gradgradcheck of {tried} combinations"


def linear_module() -> str:
    """The module's parameters, its state_dict and its printed form."""
    module, without = linear.Linear(16, 3), linear.Linear(16, 3, bias=False)
    assert list(module.state_dict()) == ["weight", "bias"], f"its state_dict holds {list(module.state_dict())}"
    assert [name for name, _ in without.named_parameters()] == ["weight"], (
        "without a bias it has other parameters than a weight"
    )
    assert without.bias is None, "without a bias its bias is not None"
    bound = max(parameter.abs().max().item() for parameter in module.parameters())
    assert bound <= 1 / math.sqrt(16), f"a parameter starts at {bound:.3f}, beyond 1/sqrt(16)"
    shown = "Linear(in_features=16, out_features=3, bias=True)"
    assert str(module) == shown, f"it is printed as {module}, expected {shown}"
    return str(without)


CHECKS = (
    Check("interp: a call into NumPy", interp),
    Check("swish: less memory, one node", swish),
    Check("scale: a gradient of None", scale),
    Check("exp_: in place", exp_),
    Check("clip: an output without gradient", clip),
    Check("cube: the second derivative", cube),
    Check("linear: with and without a bias", linear_function),
    Check("Linear: the module", linear_module),
)
