(x,) = ctx.saved_tensors
return grad * (1 - torch.tanh(x) ** 2)
