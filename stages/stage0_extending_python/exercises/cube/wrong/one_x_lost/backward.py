x, slope = ctx.saved_tensors
return grad_y * slope + grad_slope * 3 * x
