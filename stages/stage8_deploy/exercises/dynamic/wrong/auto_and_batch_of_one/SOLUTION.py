example = torch.zeros(1, 3, I), torch.zeros(1, S), torch.zeros(1, S)
shapes = {0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}, {0: Dim.AUTO}
return torch.export.export(model, example, dynamic_shapes=shapes)
