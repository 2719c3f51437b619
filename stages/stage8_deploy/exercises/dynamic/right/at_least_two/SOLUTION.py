batch, length = Dim("batch", min=2, max=64), Dim("length", max=1024)
example = torch.zeros(2, 3, I), torch.zeros(2, S), torch.zeros(2, S)
shapes = {0: batch, 1: length}, {0: batch}, {0: batch}
return torch.export.export(model, example, dynamic_shapes=shapes)
