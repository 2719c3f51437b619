@classmethod
def __torch_function__(cls, func, types, args=(), kwargs=None):
    rates = []

    def bare(one):
        if isinstance(one, Signal):
            if one.rate not in rates:
                rates.append(one.rate)
            return one.tensor
        if isinstance(one, dict):
            return {key: bare(value) for key, value in one.items()}
        return type(one)(map(bare, one)) if isinstance(one, (list, tuple)) else one

    args, kwargs = bare(list(args)), bare(dict(kwargs or {}))
    if len(rates) != 1:
        raise ValueError("the rates differ: " + " and ".join(f"{rate} Hz" for rate in rates))

    def signals(one):
        if isinstance(one, (list, tuple)):
            return type(one)(map(signals, one))
        return cls(one, rates[0]) if torch.is_tensor(one) else one

    return signals(func(*args, **kwargs))
