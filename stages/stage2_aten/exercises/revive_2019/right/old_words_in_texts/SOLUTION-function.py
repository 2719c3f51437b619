class Softsign(torch.autograd.Function):
    """saved_variables is deprecated; this uses saved_tensors."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _C.forward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return _C.backward(grad, x)


def softsign(x):
    return Softsign.apply(x)
