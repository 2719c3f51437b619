ctx.save_for_backward(weights, *saved)
