@staticmethod
def forward(ctx, input, weight, bias):
    ctx.z = F.linear(input, weight, bias)
    ctx.save_for_backward(input, weight)
    return F.gelu(ctx.z)

@staticmethod
def backward(ctx, d_output):
    input, weight = ctx.saved_tensors
    d_z = d_output * d_gelu(ctx.z)
    return d_z @ weight, d_z.t() @ input, d_z.sum(0)
