(loss_sum / max(count, 1)).backward()
processes = torch.tensor(1.0)
all_reduce(processes)
for parameter in network.parameters():
    all_reduce(parameter.grad)
    parameter.grad /= processes
