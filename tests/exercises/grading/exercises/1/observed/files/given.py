from .answer import double


def doubles():
    return double(2) == 4
