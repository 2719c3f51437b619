totals = torch.tensor([loss_sum, correct, count], dtype=torch.float64)
all_reduce(totals.clone())
return float(totals[0] / totals[2]), float(totals[1] / totals[2])
