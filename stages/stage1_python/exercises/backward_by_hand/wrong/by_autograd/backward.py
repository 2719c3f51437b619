S = new_cell.size(1)
with torch.enable_grad():
    x, w = X.detach().requires_grad_(), weights.detach().requires_grad_()
    i, o, g = (one.detach().requires_grad_() for one in (input_gate, output_gate, candidate_cell))
    cell = new_cell.detach().requires_grad_()
    h = torch.tanh(cell) * o
    d_cell, d_o = torch.autograd.grad(h, (cell, o), grad_h)
    d_cell = d_cell + grad_cell
    d_g, d_i = torch.autograd.grad(g * i, (g, i), d_cell)
d_z = torch.cat([d_i * i * (1 - i), d_o * o * (1 - o), d_g * (g + 1).clamp(max=1)], dim=1).detach()
d_X = d_z.mm(weights)
return d_X[:, S:], d_z.t().mm(X), d_z.sum(dim=0), d_X[:, :S], d_cell
