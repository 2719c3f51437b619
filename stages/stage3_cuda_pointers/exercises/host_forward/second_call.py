"""What a second call of forward does to the results of the first. It runs in the learner's process."""

import torch

NAMES = ("new_h", "new_cell", "X", "gates")


def changed_results(first, second):
    """The names of the results of `forward(*first)` that `forward(*second)` changes."""
    from . import _C

    results = _C.forward(*first)
    before = [one.clone() for one in results]
    _C.forward(*second)
    return [name for name, now, old in zip(NAMES, results, before, strict=True) if not torch.equal(now, old)]
