example = torch.zeros(2, 3, I), torch.zeros(2, S), torch.zeros(2, S)
return torch.export.export(model, example)
