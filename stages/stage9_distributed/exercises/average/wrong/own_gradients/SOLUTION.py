total = torch.tensor(float(count))
all_reduce(total)
(loss_sum / total).backward()
