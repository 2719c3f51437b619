batch, length = Dim("batch", max=64), Dim("length", max=1024)
state = torch.zeros(2, S)
shapes = {0: batch, 1: length}, {0: batch}, {0: batch}
return torch.export.export(model, (torch.zeros(2, 3, I), state, state), dynamic_shapes=shapes)
