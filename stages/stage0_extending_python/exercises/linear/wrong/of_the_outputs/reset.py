bound = 1 / math.sqrt(self.out_features)
for parameter in self.parameters():
    torch.nn.init.uniform_(parameter, -bound, bound)
