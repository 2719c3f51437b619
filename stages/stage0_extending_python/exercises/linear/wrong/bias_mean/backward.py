input, weight = ctx.saved_tensors
d_input = grad_output.mm(weight) if ctx.needs_input_grad[0] else None
d_weight = grad_output.t().mm(input) if ctx.needs_input_grad[1] else None
d_bias = grad_output.mean(dim=0) if ctx.needs_input_grad[2] else None
return d_input, d_weight, d_bias
