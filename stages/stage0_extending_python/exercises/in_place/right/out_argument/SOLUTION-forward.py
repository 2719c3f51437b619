torch.tanh(x, out=x)
ctx.mark_dirty(x)
ctx.save_for_backward(x)
return x
