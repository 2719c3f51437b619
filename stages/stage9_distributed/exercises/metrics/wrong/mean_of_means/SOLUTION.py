mine = torch.tensor([loss_sum / max(count, 1), correct / max(count, 1), 1.0], dtype=torch.float64)
all_reduce(mine)
return float(mine[0] / mine[2]), float(mine[1] / mine[2])
