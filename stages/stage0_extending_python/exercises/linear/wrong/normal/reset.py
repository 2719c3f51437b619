bound = 1 / math.sqrt(self.in_features)
for parameter in self.parameters():
    torch.nn.init.trunc_normal_(parameter, std=bound / math.sqrt(3), a=-bound, b=bound)
