y, = ctx.saved_tensors
return grad - grad * y.square()
