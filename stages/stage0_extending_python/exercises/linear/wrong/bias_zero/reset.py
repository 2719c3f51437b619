bound = 1 / math.sqrt(self.in_features)
torch.nn.init.uniform_(self.weight, -bound, bound)
if self.bias is not None:
    torch.nn.init.zeros_(self.bias)
