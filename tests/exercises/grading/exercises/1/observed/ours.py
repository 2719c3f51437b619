import torch

from .answer import double


def doubles():
    x = torch.randn(3)
    return torch.equal(double(x), 2 * x)
