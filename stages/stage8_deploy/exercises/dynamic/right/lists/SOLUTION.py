batch, length = Dim("batch"), Dim("length")
total, peak = torch.zeros(2, 4, S)
shapes = [batch, length, None], [batch, None], [batch, None]
return torch.export.export(model, (torch.randn(4, 7, I), total, peak), dynamic_shapes=shapes)
