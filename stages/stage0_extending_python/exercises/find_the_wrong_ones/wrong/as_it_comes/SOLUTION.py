x = torch.randn(4, 5, dtype=torch.float64)
return all(test(function, g.requires_grad_(), raise_exception=False)
           for g in (x, x.t()) for test in (gradcheck, gradgradcheck))
