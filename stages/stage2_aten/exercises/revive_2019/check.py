import re

import torch

from common.exercises.judge import require, same

# What builds and runs today, and should not be there any more: the file, a pattern, and what to say of it.
OUTDATED = [
    ("setup.py", r"-std=", "torch's own build says which C++ it needs; a flag of yours stands in its way"),
    ("csrc/softsign.cpp", r"torch/torch\.h", "that is the C++ frontend; an extension for Python includes others"),
    ("csrc/softsign.cpp", r"\.data<", "data<T>() is deprecated: const_data_ptr<T>() and mutable_data_ptr<T>()"),
    ("csrc/softsign.cpp", r"\.type\(\)", "type() is deprecated: scalar_type(), is_cpu(), options()"),
    ("csrc/softsign.cpp", r"AT_ASSERT", "AT_ASSERT asks the caller to report a bug to PyTorch: TORCH_CHECK"),
    ("softsign.py", r"saved_variables", "saved_variables is deprecated: saved_tensors"),
]


def check(work):
    softsign = work.load("softsign").softsign
    numbers = work.numbers()
    for dtype in (torch.float32, torch.float64):
        for name, x in layouts(numbers, dtype).items():
            for kind in ("fresh", "transposed", "of a sum"):
                compare(softsign, x, gradient(numbers, x, kind), f"x {name}, gradient {kind}, {dtype}")
    with work.counting() as counted:
        softsign(torch.randn(3, 4, generator=numbers))
    require(
        not {"div", "abs", "softsign"} & {name.partition(".")[0] for name in counted.calls},
        "softsign.py computes with torch's operations; what is to be revived is the C++ that it calls",
    )
    for file, pattern, why in OUTDATED:
        code = work.code(file, strings=file == "setup.py")  # flags are strings there
        require(not re.search(pattern, code), f"it works, and {file} is still of 2019: {why}")


def layouts(numbers, dtype):
    wide = torch.randn(9, 14, generator=numbers, dtype=dtype)
    return {"contiguous": wide, "transposed": wide.t(), "a slice": wide[2:, 1::3], "of no dimension": wide[3, 4]}


def gradient(numbers, x, kind):
    """What may arrive for a result of x's shape."""
    if kind == "of a sum":
        return torch.randn((), generator=numbers, dtype=x.dtype).expand(x.shape)
    if kind == "transposed" and x.dim() == 2:
        return torch.randn(x.shape[::-1], generator=numbers, dtype=x.dtype).t()
    return torch.randn(x.shape, generator=numbers, dtype=x.dtype)


def compare(softsign, x, grad, name):
    x = x.detach().requires_grad_()
    y = softsign(x)
    exact = x.detach().double()
    size = 1 + exact.abs()
    same("softsign(x)", y.detach(), exact / size, name, x.dtype)
    (d_x,) = torch.autograd.grad(y, x, grad)
    same("the gradient of x", d_x, grad.double() / size**2, name, x.dtype)
