return grad * (1 - ctx.y * ctx.y)
