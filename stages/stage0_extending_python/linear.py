"""A fully connected layer: the Function that computes it, and the module that holds the parameters."""

import math

import torch


class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        if bias is None:
            return input.mm(weight.t())
        return torch.addmm(bias, input, weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        d_input = d_weight = d_bias = None
        if ctx.needs_input_grad[0]:
            d_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            d_weight = grad_output.t().mm(input)
        if ctx.needs_input_grad[2]:  # False where bias is None
            d_bias = grad_output.sum(dim=0)
        return d_input, d_weight, d_bias


def linear(input, weight, bias=None):
    """The affine map input @ weight.T + bias.

    Shapes: input (B, I), weight (O, I), bias (O) or None. Returns (B, O).
    Raises RuntimeError for arguments that do not fit together.
    """
    check_arguments(input, weight, bias)
    return LinearFunction.apply(input, weight, bias)


def check_arguments(input, weight, bias):
    # Without these checks, a bias of shape (1) would be broadcast without an error.
    for name, tensor in ("input", input), ("weight", weight):
        if tensor.dim() != 2:
            raise RuntimeError(f"linear: {name} has shape {tuple(tensor.shape)}, expected two dimensions")
    O, I = weight.shape
    if input.size(1) != I:
        raise RuntimeError(f"linear: input has {input.size(1)} columns, but weight of shape {(O, I)} calls for {I}")
    if bias is not None and bias.shape != (O,):
        raise RuntimeError(
            f"linear: bias has shape {tuple(bias.shape)}, but weight of shape {(O, I)} calls for ({O},)"
        )
    for name, tensor in ("weight", weight), ("bias", bias):
        if tensor is not None and tensor.dtype != input.dtype:
            raise RuntimeError(f"linear: {name} has dtype {tensor.dtype}, but input has {input.dtype}")


class Linear(torch.nn.Module):
    """The layer as a module. Its parameters are initialised uniformly within ±1/sqrt(in_features)."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = torch.nn.Parameter(torch.empty(out_features, in_features))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input):
        return linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
