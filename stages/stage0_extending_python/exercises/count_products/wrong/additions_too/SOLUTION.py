PRODUCTS = {torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, F.linear}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if func in PRODUCTS:
            a, b = [one for one in [*args, *(kwargs or {}).values()] if getattr(one, "ndim", 0) == 2][:2]
            multiplications[0] += 2 * math.isqrt(a.numel() * b.numel() * result.numel())
        return result
