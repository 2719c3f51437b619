class Softsign(torch.autograd.Function):
    """Since saved_variables went, with saved_tensors."""

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
