"""Functions with a gradient of their own. Syllabus 0.1 to 0.6; functions.py and linear.py of stage 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ...build import modules
from ...cell.memory import saved_bytes
from .checks import Check, agrees, leaf, passes, refuses

functions, linear = modules.load_stage(0).functions, modules.load_stage(0).linear


def interp() -> str:
    """What NumPy computes has a gradient, and so has that."""

    def line(x: Tensor) -> Tensor:
        return functions.interp(x, [0.0, 1.0, 3.0], [1.0, 2.0, -5.0])

    x = torch.tensor(
        [-0.4, 0.3, 0.9, 1.7, 3.2], dtype=torch.float64, requires_grad=True
    )  # not at a knot, which has no derivative
    agrees("interp", line(x), torch.tensor([1.0, 1.3, 1.9, -0.45, -5.0], dtype=torch.float64))
    passes("interp", line, x, twice=True)
    refuses("an interp whose knots fall", lambda: functions.interp(x, [1.0, 0.0], [0.0, 0.0]), "knots")
    return f"gradcheck on {len(x)} places; knots that fall are refused"


def swish() -> str:
    """One node keeps nothing beside its input; a second derivative is refused."""
    x = leaf(7)
    passes("swish", functions.swish, x, 1.5)
    agrees("swish", functions.swish(x, 1.5), x * torch.sigmoid(1.5 * x))
    refuses("the second derivative of swish", lambda: second_derivative(functions.swish, x), "once_differentiable")
    x = leaf(100, 100)
    ours, formula = saved_bytes(lambda: functions.swish(x), [x]), saved_bytes(lambda: x * torch.sigmoid(x), [x])
    assert ours == 0, f"swish keeps {ours:,} bytes beside its input, expected none"
    return f"keeps {ours} bytes for backward, the formula {formula:,}"


def second_derivative(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The second derivative of the sum of y ** 2, by `backward`, which passes on what a Function refuses."""
    (gradient,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
    x.grad = None
    gradient.sum().backward()
    return x.grad


def scale() -> str:
    """A gradient of None goes through: gradcheck tries that."""
    x = leaf(4)
    passes("scale", functions.scale, x, -3.0, twice=True)
    return "gradcheck, which tries None too"


def exp_() -> str:
    """In place: same memory, the history rewritten, a leaf refused."""
    x = leaf(4)
    passes("exp_", lambda x: functions.exp_(x.clone()), x, twice=True)
    changed = x.clone()
    assert functions.exp_(changed) is changed, "exp_ does not return the tensor that it was given"
    (gradient,) = torch.autograd.grad(changed.sum(), x)
    agrees("the gradient through what exp_ has changed", gradient, x.exp())
    refuses("exp_ of a leaf", lambda: functions.exp_(x), "leaf")
    return "gradcheck; a leaf is refused"


def clip() -> str:
    """The mask has no gradient."""
    x = torch.tensor([-2.0, -0.5, 0.7, 3.0], dtype=torch.float64, requires_grad=True)
    passes("clip", lambda x: functions.clip(x, -1.0, 1.0)[0], x)
    _, inside = functions.clip(x, -1.0, 1.0)
    assert not inside.requires_grad, "the mask of clip requires a gradient, and has none to give"
    agrees("the mask of clip", inside, torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=torch.float64))
    return "gradcheck; its mask requires no gradient"


def cube() -> str:
    """The second derivative is right where others are silently wrong."""
    x = leaf(5)
    passes("cube", functions.cube, x, twice=True)
    two = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    second = second_derivative(functions.cube, two).item()
    assert second == 480, f"the second derivative of (x ** 3) ** 2 at 2 is {second:g}, expected 480"
    return "gradgradcheck; the second derivative of y ** 2 is 480 at x = 2"


def linear_function() -> str:
    """Every combination of gradients, with a bias and without."""
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
    """What an optimizer, a state_dict and a reader find in the module."""
    module, without = linear.Linear(16, 3), linear.Linear(16, 3, bias=False)
    assert list(module.state_dict()) == ["weight", "bias"], f"its state_dict holds {list(module.state_dict())}"
    assert [name for name, _ in without.named_parameters()] == ["weight"], "without a bias it has more than a weight"
    assert without.bias is None, "without a bias it has one"
    bound = max(parameter.abs().max().item() for parameter in module.parameters())
    assert bound <= 1 / math.sqrt(16), f"a parameter starts at {bound:.3f}, beyond 1/sqrt(16)"
    shown = "Linear(in_features=16, out_features=3, bias=True)"
    assert str(module) == shown, f"it is printed as {module}, expected {shown}"
    return str(without)


CHECKS = (
    Check("interp: a call into NumPy", interp),
    Check("swish: less memory, one node", swish),
    Check("scale: a gradient that is None", scale),
    Check("exp_: in place", exp_),
    Check("clip: an output without gradient", clip),
    Check("cube: the second derivative", cube),
    Check("linear: a bias or none", linear_function),
    Check("Linear: the module around it", linear_module),
)
