return grad * ctx.share, grad * (1 - ctx.share), None
