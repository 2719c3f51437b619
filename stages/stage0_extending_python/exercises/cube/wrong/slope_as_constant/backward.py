x, slope = ctx.saved_tensors
return grad_y * slope
