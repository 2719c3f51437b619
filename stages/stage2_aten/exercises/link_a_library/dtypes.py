"""Calls checksum with dtypes that only the learner's process can make: it gets their bytes."""

import torch


def checksum_as(x, dtype):
    """The checksum of the bytes x, taken as elements of another dtype and transposed."""
    from ._C import checksum

    return checksum(x.view(getattr(torch, dtype)).t())
