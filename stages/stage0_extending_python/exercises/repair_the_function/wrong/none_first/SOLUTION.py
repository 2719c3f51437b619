d_a = grad * ctx.share if ctx.needs_input_grad[0] else None
d_b = grad * (1 - ctx.share) if ctx.needs_input_grad[1] else None
return None, d_a, d_b
