self.in_features, self.out_features = in_features, out_features
self.weight = torch.empty(out_features, in_features, requires_grad=True)
self.bias = torch.empty(out_features, requires_grad=True) if bias else None
for tensor in (self.weight, self.bias):
    if tensor is not None:
        torch.nn.init.uniform_(tensor, -(in_features**-0.5), in_features**-0.5)
