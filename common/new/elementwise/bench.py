"""Times the operator and reference.py, eager and compiled: `python bench.py`; or `python bench.py 1000` elements."""

import sys

import built
import torch
from torch.utils.benchmark import Timer

built.demand()

import reference  # noqa: E402
from softsign import softsign  # noqa: E402

SIZES = [int(size) for size in sys.argv[1:]] or [2**12, 2**18, 2**24]  # elements
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IMPLEMENTATIONS = {
    "eager": reference.softsign,
    "torch.compile": torch.compile(reference.softsign),
    "softsign": softsign,
}


def gradient(function, x):
    """Forward and backward; x itself serves as the upstream gradient."""
    return torch.autograd.grad(function(x), x, x.detach())[0]


def microseconds(statement, **names):
    """The median time of a statement. On a GPU, the timer waits for the kernels."""
    timer = Timer(statement, globals={"gradient": gradient, **names}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange().median * 1e6


print(f"torch {torch.__version__}, {DEVICE}, float32, microseconds")
for n in SIZES:
    x = torch.randn(n, device=DEVICE, requires_grad=True)
    print(f"\n{n} elements             forward  forward+backward")
    for name, function in IMPLEMENTATIONS.items():
        torch.testing.assert_close(function(x), reference.softsign(x))  # wrong code is not timed
        torch.testing.assert_close(gradient(function, x), gradient(reference.softsign, x))
        forward = microseconds("f(x)", f=function, x=x.detach())
        both = microseconds("gradient(f, x)", f=function, x=x)
        print(f"  {name:<24}{forward:10.1f}{both:18.1f}")
