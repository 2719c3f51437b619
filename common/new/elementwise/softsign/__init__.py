"""An elementwise function as an operator, for CPU and CUDA tensors, with a gradient: `y = softsign(x)`."""

from pathlib import Path

import torch

torch.ops.load_library(Path(__file__).with_name("_C.abi3.so"))  # this registers the operators of csrc/
operators = torch.ops.softsign


def softsign(x):
    """The function of every element of x, a floating-point tensor of any shape; the result is contiguous."""
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
    return operators.backward(grad_y, x)


def no_second_derivative(ctx, gradient):
    raise RuntimeError("softsign: there are no second derivatives")


torch.library.register_autograd("softsign::forward", backward, setup_context=setup_context)
torch.library.register_autograd("softsign::backward", no_second_derivative)
