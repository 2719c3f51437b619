"""The same cell with its gradient derived by hand (docs/maths.md), as an autograd.Function."""

import torch
import torch.nn.functional as F

from .lltm import check_arguments


class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        X = torch.cat([old_h, input], dim=1)  # (B, S+I)
        z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3, dim=1)  # (B, S) each
        input_gate, output_gate, candidate_cell = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_g)
        new_cell = old_cell + candidate_cell * input_gate
        new_h = torch.tanh(new_cell) * output_gate
        ctx.save_for_backward(X, weights, input_gate, output_gate, candidate_cell, new_cell)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return LLTMBackward.apply(grad_h, grad_cell, *ctx.saved_tensors)


class LLTMBackward(torch.autograd.Function):
    """The gradient as a Function of its own, without a derivative: see LLTMBackward in stage 2."""

    @staticmethod
    def forward(ctx, grad_h, grad_cell, X, weights, input_gate, output_gate, candidate_cell, new_cell):
        tanh_new_cell = torch.tanh(new_cell)
        d_new_cell = grad_cell + grad_h * output_gate * (1 - tanh_new_cell**2)
        d_z_o = grad_h * tanh_new_cell * output_gate * (1 - output_gate)
        d_z_i = d_new_cell * candidate_cell * input_gate * (1 - input_gate)
        d_z_g = d_new_cell * input_gate * (1 + candidate_cell.clamp(max=0))
        d_z = torch.cat([d_z_i, d_z_o, d_z_g], dim=1)  # (B, 3S)
        d_X = d_z.mm(weights)  # (B, S+I)
        I = X.size(1) - new_cell.size(1)
        return d_X[:, -I:], d_z.t().mm(X), d_z.sum(dim=0), d_X[:, :-I], d_new_cell

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("lltm: the gradient is once_differentiable: there are no second derivatives")


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell: shapes, result and errors as in lltm.py."""
    check_arguments(input, weights, bias, old_h, old_cell)
    return LLTMFunction.apply(input, weights, bias, old_h, old_cell)
