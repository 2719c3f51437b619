total = torch.tensor(float(count))
all_reduce(total)
(loss_sum / total).backward()
if count:
    for parameter in network.parameters():
        all_reduce(parameter.grad)
