self.in_features, self.out_features = in_features, out_features
self.weight = torch.nn.Parameter(torch.empty(out_features, in_features))
self.bias = torch.nn.Parameter(torch.empty(out_features)) if bias else None
self.reset_parameters()
