example = torch.zeros(5, 9, I), torch.zeros(5, S), torch.ones(5, S)
shapes = {"steps": {0: Dim.AUTO, 1: Dim.AUTO}, "total": {0: Dim.AUTO}, "peak": {0: Dim.AUTO}}
return torch.export.export(model, example, dynamic_shapes=shapes)
