"""What the operator does under autocast: in Python, since the stable ABI knows nothing of autocast."""

import torch

from . import _C


def pointwise(z, old_cell):
    # Both arguments take autocast's dtype, as those of torch's own lstm_cell do on CUDA.
    device = z.device.type
    dtype = torch.get_autocast_dtype(device)
    with torch.autocast(device, enabled=False):
        return getattr(torch.ops, _C.NAMESPACE).pointwise(z.to(dtype), old_cell.to(dtype))


for key in ("AutocastCPU", "AutocastCUDA"):
    torch.library.impl(f"{_C.NAMESPACE}::pointwise", key, pointwise)
