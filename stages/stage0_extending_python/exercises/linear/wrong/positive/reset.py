bound = 1 / math.sqrt(self.in_features)
for parameter in self.parameters():
    torch.nn.init.uniform_(parameter, 0, bound)
