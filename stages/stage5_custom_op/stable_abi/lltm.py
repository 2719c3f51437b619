"""The LLTM cell, with operators registered like torch's own: schema, fake kernel, gradient, vmap rule."""

import torch
from torch.autograd import forward_ad

from . import _C

operators = getattr(torch.ops, _C.NAMESPACE)  # importing _C has registered them


def lltm(input, weights, bias, old_h, old_cell):
    """One step of the cell.

    Shapes: input (B, I), weights (3S, S+I), bias (3S), old_h (B, S), old_cell (B, S).
    Returns (new_h, new_cell), both (B, S). Raises RuntimeError for arguments that do not fit together.
    """
    check_arguments(input, weights, bias, old_h, old_cell)
    X = torch.cat([old_h, input], dim=1)  # (B, S+I)
    z = torch.addmm(bias, X, weights.t())  # (B, 3S)
    refuse_tangents(z, old_cell)
    new_h, new_cell, _ = operators.pointwise(z, old_cell)
    return new_h, new_cell


# The shapes, dtypes and strides of the results. torch.compile, torch.export and the meta device need them, because
# they run the operator without data.
@torch.library.register_fake(f"{_C.NAMESPACE}::pointwise")
def _(z, old_cell):
    B, S = old_cell.shape
    return z.new_empty(B, S), z.new_empty(B, S), z.new_empty(B, 3, S)


@torch.library.register_fake(f"{_C.NAMESPACE}::pointwise_backward")
def _(grad_h, grad_cell, gates, new_cell):
    B, S = new_cell.shape
    return gates.new_empty(B, 3 * S), gates.new_empty(B, S)


def setup_context(ctx, inputs, output):
    _, new_cell, gates = output
    ctx.mark_non_differentiable(gates)
    ctx.save_for_backward(gates, new_cell)
    ctx.set_materialize_grads(False)


def backward(ctx, grad_h, grad_cell, _):
    if grad_h is None and grad_cell is None:
        return None, None
    return operators.pointwise_backward(grad_h, grad_cell, *ctx.saved_tensors)


def no_second_derivative(ctx, *gradients):
    raise RuntimeError("lltm: the gradient is once_differentiable: there are no second derivatives")


torch.library.register_autograd(f"{_C.NAMESPACE}::pointwise", backward, setup_context=setup_context)
torch.library.register_autograd(f"{_C.NAMESPACE}::pointwise_backward", no_second_derivative)


def refuse_tangents(*tensors):
    # With only a backward registered, torch drops the tangents of forward mode without an error. Outside of forward
    # mode, the level is -1.
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(one).tangent is not None for one in tensors):
        raise RuntimeError("lltm: there are no forward-mode derivatives")


# Rows are independent, so under torch.vmap a batch of batches is computed as one larger batch.
@torch.library.register_vmap(f"{_C.NAMESPACE}::pointwise")
def _(info, in_dims, z, old_cell):
    def rows(tensor, dim):
        full = tensor.unsqueeze(0).expand(info.batch_size, -1, -1) if dim is None else tensor.movedim(dim, 0)
        return full.flatten(0, 1)

    results = operators.pointwise(*map(rows, (z, old_cell), in_dims))
    return tuple(result.unflatten(0, (info.batch_size, -1)) for result in results), (0, 0, 0)


def check_arguments(input, weights, bias, old_h, old_cell):
    # Without this, a bias of shape (1) would be silently broadcast.
    if not input.is_floating_point():
        raise RuntimeError(f"lltm: input has dtype {input.dtype}, expected a floating-point dtype")
    if input.dim() != 2:
        raise RuntimeError(f"lltm: input has shape {tuple(input.shape)}, expected two dimensions: (B, I)")
    if weights.dim() != 2:
        raise RuntimeError(f"lltm: weights has shape {tuple(weights.shape)}, expected two dimensions: (3S, S+I)")
    (B, I), S = input.shape, weights.size(0) // 3
    dtype, device = input.dtype, input.device
    for name, tensor, shape in (
        ("weights", weights, (3 * S, S + I)),
        ("bias", bias, (3 * S,)),
        ("old_h", old_h, (B, S)),
        ("old_cell", old_cell, (B, S)),
    ):
        if tensor.dtype != dtype and not is_cast_by_autocast(device):
            raise RuntimeError(f"lltm: {name} has dtype {tensor.dtype}, but input has {dtype}")
        if tensor.device != device:
            raise RuntimeError(f"lltm: {name} is on {tensor.device}, but input is on {device}")
        if tensor.shape != shape:
            raise RuntimeError(
                f"lltm: {name} has shape {tuple(tensor.shape)}, but weights of shape {tuple(weights.shape)} "
                f"and input of shape {tuple(input.shape)} call for {shape}"
            )


def is_cast_by_autocast(device):
    return device.type != "meta" and torch.is_autocast_enabled(device.type)
