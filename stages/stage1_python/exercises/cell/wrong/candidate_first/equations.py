X = torch.cat([old_h, input], dim=1)
z_g, z_o, z_i = F.linear(X, weights, bias).chunk(3, dim=1)
new_cell = old_cell + F.elu(z_g) * torch.sigmoid(z_i)
return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell
