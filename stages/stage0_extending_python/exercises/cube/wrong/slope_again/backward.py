(x,) = ctx.saved_tensors
return grad_y * 3 * x * x + grad_slope * 6 * x
