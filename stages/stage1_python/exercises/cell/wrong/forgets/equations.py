X = torch.cat([old_h, input], dim=1)
z_i, z_o, z_g = F.linear(X, weights, bias).chunk(3, dim=1)
input_gate = torch.sigmoid(z_i)
new_cell = (1 - input_gate) * old_cell + F.elu(z_g) * input_gate
return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell
