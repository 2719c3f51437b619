"""The operator's autocast rule, in Python, because the stable ABI does not include autocast."""

import torch

from . import _C


def pointwise(z, old_cell):
    # Both arguments are cast to autocast's dtype, as in torch's own lstm_cell on CUDA; float64 is never cast.
    device = z.device.type
    dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        cast = [given if given.dtype == torch.float64 else given.to(dtype) for given in (z, old_cell)]
        return getattr(torch.ops, _C.NAMESPACE).pointwise(*cast)


for key in ("AutocastCPU", "AutocastCUDA"):
    torch.library.impl(f"{_C.NAMESPACE}::pointwise", key, pointwise)
