totals = [torch.tensor(float(one), dtype=torch.float64) for one in (loss_sum, correct, count)]
for total in totals:
    all_reduce(total)
return float(totals[0] / totals[2]), float(totals[1] / totals[2])
