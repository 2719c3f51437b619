"""Prints, as JSON, how many numbers are read and written for each unit. Usage: measure.py FOLDER_OF_PARTS."""

import json
import sys

import torch
import torch._inductor.config as settings
from torch._inductor import metrics
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

sys.path.insert(0, sys.argv[1])
import parts


class Moved(TorchDispatchMode):
    """Counts the operations of eager mode, except views, and the numbers that they read and write."""

    numbers = operations = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if not function.is_view:
            tensors = [one for one in tree_leaves((arguments, result)) if isinstance(one, torch.Tensor)]
            self.numbers += sum(one.numel() for one in tensors)
            self.operations += 1
        return result


B, S, K = 16, 128, 256
z, old_cell = torch.randn(B, 3 * S), torch.randn(B, S)
with Moved() as eager:
    parts.pointwise(z, old_cell)
settings.cpp_cache_precompile_headers = False  # not worth it for one kernel
torch._logging.set_logs(inductor_metrics=True)  # without it bytes are not counted
torch.compile(parts.pointwise, fullgraph=True)(z, old_cell)
kernels, compiled = metrics.generated_kernel_count, metrics.num_bytes_accessed // z.element_size()
a, b = torch.randn(K, K), torch.randn(K, K)
with Moved() as product:
    parts.product(a, b)
least = a.numel() + b.numel() + K * K
print(
    json.dumps(
        {
            "eager_kernels": eager.operations,
            "eager": eager.numbers // (B * S),
            "kernels": kernels,
            "compiled": compiled // (B * S),
            "product": (product.numbers - least) // (K * K),
        }
    )
)
