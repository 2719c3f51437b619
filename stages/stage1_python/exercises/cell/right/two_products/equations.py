S = old_h.shape[1]
z = torch.addmm(bias, old_h, weights[:, :S].T) + input @ weights[:, S:].T
gates = torch.special.expit(z[:, : 2 * S])
new_cell = torch.addcmul(old_cell, F.elu(z[:, 2 * S :]), gates[:, :S])
return [new_cell.tanh().mul(gates[:, S:]), new_cell]
