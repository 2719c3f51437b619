(slope,) = ctx.saved_tensors
return grad_y * slope + grad_slope * 2 * slope
