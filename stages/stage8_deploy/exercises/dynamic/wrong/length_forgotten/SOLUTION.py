batch = Dim("batch", max=64)
example = torch.zeros(2, 3, I), torch.zeros(2, S), torch.zeros(2, S)
return torch.export.export(model, example, dynamic_shapes=({0: batch}, {0: batch}, {0: batch}))
