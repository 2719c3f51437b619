@staticmethod
def forward(ctx, input, weight, bias):
    ctx.save_for_backward(input, weight)
    return F.gelu(F.linear(input, weight, bias))

@staticmethod
def backward(ctx, d_output):
    input, weight = ctx.saved_tensors
    d_z = d_output * d_gelu(F.linear(input, weight))
    return d_z @ weight, d_z.t() @ input, d_z.sum(0)
