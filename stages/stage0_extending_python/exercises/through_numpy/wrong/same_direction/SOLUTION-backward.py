d_signal = numpy.convolve(grad.numpy(), ctx.kernel, mode="full")
return torch.as_tensor(d_signal, dtype=grad.dtype), None
