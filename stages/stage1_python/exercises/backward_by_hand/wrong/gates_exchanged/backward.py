tanh_new_cell = torch.tanh(new_cell)
d_output_gate = grad_h * tanh_new_cell
d_new_cell = grad_h * output_gate * (1 - tanh_new_cell**2) + grad_cell
d_candidate_cell = d_new_cell * input_gate
d_input_gate = d_new_cell * candidate_cell
d_z_i = d_input_gate * input_gate * (1 - input_gate)
d_z_o = d_output_gate * output_gate * (1 - output_gate)
d_z_g = d_candidate_cell * (candidate_cell + 1).clamp(max=1)
d_z = torch.cat([d_z_o, d_z_i, d_z_g], dim=1)
d_X = d_z.mm(weights)
S = new_cell.size(1)
return d_X[:, S:], d_z.t().mm(X), d_z.sum(dim=0), d_X[:, :S], d_new_cell
