batch, length = Dim("batch", max=64), Dim("length", max=1024)
example = torch.zeros(1, 3, I), torch.zeros(1, S), torch.zeros(1, S)
shapes = {0: batch, 1: length}, {0: batch}, {0: batch}
return torch.export.export(model, example, dynamic_shapes=shapes)
