input, weight = ctx.saved_tensors
return grad_output.mm(weight), grad_output.t().mm(input), grad_output.sum(dim=0)
