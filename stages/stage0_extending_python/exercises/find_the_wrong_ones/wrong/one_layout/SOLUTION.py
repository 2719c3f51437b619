x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
return all(test(function, x, rtol=1e-5, atol=1e-6, raise_exception=False) for test in (gradcheck, gradgradcheck))
