"""x / (1 + |x|) of a matrix, and 0 where it is NaN."""

import ctypes

import torch

from . import _C

functions = ctypes.CDLL(_C.__file__)
functions.threads.restype = ctypes.c_int64


def softsign(x):
    """Shapes: x and the result (B, S), contiguous, float32."""
    out = torch.empty_like(x)
    pointers = (ctypes.c_void_p(tensor.data_ptr()) for tensor in (out, x))
    functions.softsign(*pointers, *(ctypes.c_int64(size) for size in x.shape))
    return out


def threads(B, wanted):
    """How many threads work on B rows when torch is set to use `wanted` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        return functions.threads(ctypes.c_int64(B))
    finally:
        torch.set_num_threads(before)
