import re

import torch

from common.exercises.judge import LearnerError, require, right_or_refused, same

# Outdated code that still builds and runs today: the file, a pattern, and what the message says about it.
OUTDATED = [
    ("setup.py", r"-std=", "torch's own build selects the C++ standard that it needs; your flag overrides it"),
    (
        "csrc/softsign.cpp",
        r"torch/torch\.h",
        "this is the C++ frontend; an extension for Python includes other headers",
    ),
    ("csrc/softsign.cpp", r"\.data<", "data<T>() is deprecated: use const_data_ptr<T>() or mutable_data_ptr<T>()"),
    ("csrc/softsign.cpp", r"\.type\(\)", "type() is deprecated: use scalar_type(), is_cpu() or options()"),
    ("csrc/softsign.cpp", r"AT_ASSERT", "AT_ASSERT asks the caller to report a bug to PyTorch: use TORCH_CHECK"),
    ("softsign.py", r"saved_variables", "saved_variables is deprecated: use saved_tensors"),
]


def check(work):
    softsign = work.load("softsign").softsign
    numbers = work.numbers()
    for dtype in (torch.float32, torch.float64):
        for name, x in layouts(numbers, dtype).items():
            for kind in ("fresh", "transposed", "of a sum"):
                compare(softsign, x, gradient(numbers, x, kind), f"x {name}, gradient {kind}, {dtype}")
    x = torch.randn(3, 4, generator=numbers, requires_grad=True)
    with work.counting() as counted:
        softsign(x)
    require(
        not {"div", "abs", "softsign"} & {name.partition(".")[0] for name in counted.calls},
        "softsign.py computes with torch's operations; update the C++ that it calls instead",
    )
    require(
        counted.saved >= x.nbytes,
        "softsign.py keeps x without save_for_backward, for example as an attribute of ctx: autograd then does not "
        "notice when x is changed before the backward, and the gradient is wrong without an error",
    )
    for shape, why in (
        ((3, 3), "it reads past the end of the gradient. Replace the check of 2019; do not drop it"),
        ((4, 3), "its elements do not belong to those of x. The check of 2019 compared the shapes"),
    ):
        said = refusal(work.load("_C").backward, torch.randn(shape, generator=numbers), x.detach())
        require(said, f"backward of a gradient {shape} and x (3, 4) raises no error: {why}")
        require(
            "report a bug to PyTorch" not in said,
            f"backward of a gradient {shape} and x (3, 4) raises an internal error, which asks the caller to report "
            "a bug to PyTorch. But the mistake is the caller's: use TORCH_CHECK",
        )
    for file, pattern, why in OUTDATED:
        code = work.code(file, strings=file == "setup.py")  # flags are strings there
        require(
            not re.search(pattern, code), f"the results are right, but {file} still contains code from 2019: {why}"
        )
    x = torch.randn(2, 3, generator=numbers, dtype=torch.float64, requires_grad=True)
    right_or_refused(softsign, lambda x: x / (1 + x.abs()), {"x": x})
    # Here is no GPU's tensor to try it with, and torch itself refuses one of the device meta.
    require(
        re.search(r"(TORCH_CHECK\w*|\bif)\s*\([^,;]*(is_cpu|is_cuda|device)", work.code("csrc/softsign.cpp")),
        "nothing in softsign.cpp checks the device of x: with a tensor on a GPU, the loop reads memory that the host "
        "may not read. Replace the check of 2019; do not drop it",
    )


def refusal(function, *arguments):
    """The message of the error that a call raises; empty if it raises none."""
    try:
        function(*arguments)
    except LearnerError as error:
        return str(error) or error.kind
    return ""


def layouts(numbers, dtype):
    wide = torch.randn(9, 14, generator=numbers, dtype=dtype)
    return {"contiguous": wide, "transposed": wide.t(), "a slice": wide[2:, 1::3], "zero-dimensional": wide[3, 4]}


def gradient(numbers, x, kind):
    """An upstream gradient that may arrive for a result of x's shape."""
    if kind == "of a sum":
        return torch.randn((), generator=numbers, dtype=x.dtype).expand(x.shape)
    if kind == "transposed" and x.dim() == 2:
        return torch.randn(x.shape[::-1], generator=numbers, dtype=x.dtype).t()
    return torch.randn(x.shape, generator=numbers, dtype=x.dtype)


def compare(softsign, x, grad, name):
    x = x.detach().requires_grad_()
    y = softsign(x)
    require(isinstance(y, torch.Tensor), f"softsign(x) returns {y!r:.60}, expected a tensor ({name})")
    exact = x.detach().double()
    size = 1 + exact.abs()
    same("softsign(x)", y.detach(), exact / size, name, x.dtype)
    (d_x,) = torch.autograd.grad(y, x, grad, allow_unused=True)
    same("the gradient of x", d_x, grad.double() / size**2, name, x.dtype)
