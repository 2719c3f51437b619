class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _C.forward(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_variables
        return _C.backward(grad, x)


def softsign(x):
    return Softsign.apply(x)
