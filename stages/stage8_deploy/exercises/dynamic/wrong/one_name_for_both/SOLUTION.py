size = Dim("size", max=1024)
example = torch.zeros(3, 3, I), torch.zeros(3, S), torch.zeros(3, S)
return torch.export.export(model, example, dynamic_shapes=({0: size, 1: size}, {0: size}, {0: size}))
