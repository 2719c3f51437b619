"""The same cell with its pointwise part as two Triton kernels, for comparison with the CUDA kernels.

Triton compiles Python functions for the GPU at the first call: https://triton-lang.org. Each program handles BLOCK
units of one row; Triton takes care of threads, vector loads and their remainders.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def elu(z):
    return tl.where(z > 0, z, tl.exp(z) - 1)


@triton.jit
def forward_kernel(new_h, new_cell, z, old_cell, S, old_cell_row, MATH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < S
    z += row * 3 * S + unit
    input_gate = tl.sigmoid(tl.load(z, inside).to(MATH))
    output_gate = tl.sigmoid(tl.load(z + S, inside).to(MATH))
    candidate_cell = elu(tl.load(z + 2 * S, inside).to(MATH))

    cell = tl.load(old_cell + row * old_cell_row + unit, inside).to(MATH) + candidate_cell * input_gate
    tl.store(new_cell + row * S + unit, cell, inside)
    tl.store(new_h + row * S + unit, tanh(cell) * output_gate, inside)


@triton.jit
def backward_kernel(d_z, d_old_cell, grad_h, grad_cell, z, new_cell, S, MATH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < S
    z += row * 3 * S + unit
    d_z += row * 3 * S + unit
    place = row * S + unit
    input_gate = tl.sigmoid(tl.load(z, inside).to(MATH))
    output_gate = tl.sigmoid(tl.load(z + S, inside).to(MATH))
    z_g = tl.load(z + 2 * S, inside).to(MATH)
    candidate_cell = elu(z_g)
    tanh_new_cell = tanh(tl.load(new_cell + place, inside).to(MATH))
    d_new_h = tl.load(grad_h + place, inside).to(MATH)

    d_new_cell = tl.load(grad_cell + place, inside).to(MATH)
    d_new_cell += d_new_h * output_gate * (1 - tanh_new_cell * tanh_new_cell)
    tl.store(d_old_cell + place, d_new_cell, inside)
    tl.store(d_z, d_new_cell * candidate_cell * input_gate * (1 - input_gate), inside)
    tl.store(d_z + S, d_new_h * tanh_new_cell * output_gate * (1 - output_gate), inside)
    tl.store(d_z + 2 * S, d_new_cell * input_gate * tl.where(z_g > 0, 1.0, candidate_cell + 1), inside)


def launch(kernel, tensors, *numbers):
    """Runs a kernel over all rows and units of the last tensor's shape, (B, S)."""
    B, S = tensors[-1].shape
    if B * S == 0:  # an empty grid is an error
        return
    block = min(triton.next_power_of_2(S), 1024)
    maths = tl.float64 if tensors[0].dtype == torch.float64 else tl.float32
    with torch.cuda.device_of(tensors[0]):
        kernel[B, triton.cdiv(S, block)](*tensors, S, *numbers, MATH=maths, BLOCK=block)


def pointwise(z, old_cell):
    """new_h and new_cell (B, S) from z (B, 3S) and old_cell (B, S)."""
    old_cell = old_cell if old_cell.stride(1) == 1 else old_cell.contiguous()
    new_h, new_cell = (torch.empty_like(old_cell, memory_format=torch.contiguous_format) for _ in "hc")
    launch(forward_kernel, (new_h, new_cell, z.contiguous(), old_cell), old_cell.stride(0))
    return new_h, new_cell


def pointwise_backward(grad_h, grad_cell, z, new_cell):
    """d_z (B, 3S) and d_old_cell (B, S); a gradient that is None counts as zero."""
    grad_h, grad_cell = (
        torch.zeros_like(new_cell) if grad is None else grad.contiguous() for grad in (grad_h, grad_cell)
    )
    d_z, d_old_cell = torch.empty_like(z), torch.empty_like(new_cell)
    launch(backward_kernel, (d_z, d_old_cell, grad_h, grad_cell, z, new_cell))
    return d_z, d_old_cell


class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        X = torch.cat([old_h, input], dim=1)  # (B, S+I)
        z = torch.addmm(bias, X, weights.t())  # (B, 3S)
        new_h, new_cell = pointwise(z, old_cell)
        ctx.save_for_backward(weights, X, z, new_cell)
        ctx.set_materialize_grads(False)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        gradient = LLTMBackward.apply if torch.is_grad_enabled() else backward
        return gradient(grad_h, grad_cell, *ctx.saved_tensors, ctx.needs_input_grad)


class LLTMBackward(torch.autograd.Function):
    """The gradient as a Function of its own, without a derivative: see LLTMBackward in stage 2."""

    @staticmethod
    def forward(ctx, *arguments):
        return backward(*arguments)

    @staticmethod
    def backward(ctx, *gradients):
        raise RuntimeError("lltm: the gradient is once_differentiable: there are no second derivatives")


def backward(grad_h, grad_cell, weights, X, z, new_cell, needs_input_grad):
    """The gradients of the arguments of the cell, None where not needed; a gradient that is None counts as zero."""
    if grad_h is None and grad_cell is None:
        return None, None, None, None, None
    needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell = needs_input_grad
    d_z, d_old_cell = pointwise_backward(grad_h, grad_cell, z, new_cell)
    d_input = d_weights = d_bias = d_old_h = None
    if needs_input or needs_old_h:
        d_old_h, d_input = d_z.mm(weights).split([new_cell.size(1), X.size(1) - new_cell.size(1)], dim=1)
    if needs_weights:
        d_weights = d_z.t().mm(X)
    if needs_bias:
        d_bias = d_z.sum(0)
    return d_input, d_weights, d_bias, d_old_h, d_old_cell if needs_old_cell else None


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell. Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h and old_cell (B, S)."""
    return LLTMFunction.apply(input, weights, bias, old_h, old_cell)
