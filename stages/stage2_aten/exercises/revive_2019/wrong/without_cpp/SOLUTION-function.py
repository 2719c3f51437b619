def softsign(x):
    return x / (1 + x.abs())
