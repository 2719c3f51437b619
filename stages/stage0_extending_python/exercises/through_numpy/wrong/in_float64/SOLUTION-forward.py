ctx.kernel = kernel
return torch.from_numpy(numpy.convolve(signal.detach().numpy(), kernel, mode="valid"))
