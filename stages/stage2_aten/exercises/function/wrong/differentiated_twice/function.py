class LLTMFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        new_h, new_cell, *saved = _C.forward(input, weights, bias, old_h, old_cell)
        ctx.save_for_backward(weights, *saved)
        ctx.set_materialize_grads(False)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return _C.backward(grad_h, grad_cell, *ctx.saved_tensors, ctx.needs_input_grad)
