@staticmethod
def forward(ctx, input, weight, bias):
    z = F.linear(input, weight, bias)
    ctx.save_for_backward(input, weight, d_gelu(z))
    return F.gelu(z)

@staticmethod
def backward(ctx, d_output):
    input, weight, slope = ctx.saved_tensors
    d_z = d_output * slope
    return d_z @ weight, d_z.t() @ input, d_z.sum(0)
