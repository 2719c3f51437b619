NAMES = {"matmul", "mm", "linear", "__matmul__", "__rmatmul__"}


class Counting(torch.Tensor):
    """A tensor whose matrix products are counted."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in NAMES:
            left = args[0] if args else kwargs["input"]
            multiplications[0] += result.numel() * left.shape[-1]
        results = result if isinstance(result, tuple) else (result,)
        made = [one.as_subclass(cls) if type(one) is torch.Tensor else one for one in results]
        return type(result)(made) if isinstance(result, tuple) else made[0]
