x.tanh_()
ctx.mark_dirty(x)
ctx.save_for_backward(x + 0)
return x
