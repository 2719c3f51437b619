"""An elementwise function as an operator, for CPU and CUDA tensors, with a gradient: `y = softsign(x)`."""

from pathlib import Path

import torch
from torch.autograd import forward_ad

torch.ops.load_library(Path(__file__).with_name("_C.abi3.so"))  # this registers the operators of csrc/
operators = torch.ops.softsign


def softsign(x):
    """The function of every element of x, a floating-point tensor of any shape; the result is contiguous."""
    refuse_tangent(x)
    return operators.forward(x)


# The shapes of the results: torch.compile, torch.export and the meta device run the operators without data.
@torch.library.register_fake("softsign::forward")
def _(x):
    return x.new_empty(x.shape)


@torch.library.register_fake("softsign::backward")
def _(grad_y, x):
    return x.new_empty(x.shape)


def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad_y):
    (x,) = ctx.saved_tensors
    # grad_y and x lead to all that the gradient depends on, so every derivative of it reaches no_second_derivative.
    return operators.backward(grad_y, x)


def no_second_derivative(ctx, gradient):
    raise RuntimeError("softsign: there are no second derivatives")


torch.library.register_autograd("softsign::forward", backward, setup_context=setup_context)
torch.library.register_autograd("softsign::backward", no_second_derivative)


def refuse_tangent(x):
    # With only a backward registered, torch drops the tangent of forward mode without an error. Outside of forward
    # mode, the level is -1.
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None:
        raise RuntimeError("softsign: there are no forward-mode derivatives")
