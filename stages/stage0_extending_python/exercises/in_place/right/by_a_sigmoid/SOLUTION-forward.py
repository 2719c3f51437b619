x.mul_(2).sigmoid_().mul_(2).sub_(1)  # tanh(x) = 2 sigmoid(2x) - 1
ctx.mark_dirty(x)
ctx.save_for_backward(x)
return x
