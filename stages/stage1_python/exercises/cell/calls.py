"""Calls of the cell, in the learner's process."""

import torch


def lltm_under_no_grad(*arguments):
    """new_h and new_cell."""
    from .lltm import lltm

    with torch.no_grad():
        return lltm(*arguments)


def lltm_before_another_call(*arguments):
    """new_h and new_cell under no_grad, as they are after a later call with other numbers."""
    from .lltm import lltm

    with torch.no_grad():
        results = lltm(*arguments)
        lltm(*[-one for one in arguments])
    return results
