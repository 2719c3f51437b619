loss_sum.backward()
for parameter in network.parameters():
    all_reduce(parameter.grad)
