slope = 3 * x * x
ctx.save_for_backward(slope)
return x * x * x, slope
