x = torch.randn(4, 5, dtype=torch.float64)
return all(gradcheck(function, g.requires_grad_(), rtol=1e-5, atol=1e-6, raise_exception=False) for g in (x, x.t()))
