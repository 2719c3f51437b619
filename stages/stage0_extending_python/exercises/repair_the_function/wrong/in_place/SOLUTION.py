d_b = grad * (1 - ctx.share) if ctx.needs_input_grad[1] else None
d_a = grad.mul_(ctx.share) if ctx.needs_input_grad[0] else None
return d_a, d_b, None
