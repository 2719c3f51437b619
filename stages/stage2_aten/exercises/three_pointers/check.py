from pathlib import Path

import torch

from common.exercises.judge import CALLS, LearnerError, require, same

N, M = 48, 65  # copies of more than a kilobyte, so that the pattern fills the freed memory


def check(work):
    work.restart(MALLOC_PERTURB_="170")  # fills freed memory with this byte
    extension = work.load("_C")
    numbers = work.numbers()
    row_sums(extension.row_sums, numbers)
    doubled(extension.doubled, numbers)
    corners(extension.corners, numbers)
    no_copy(work, numbers)
    nothing_left(work.beside(Path(__file__).with_name("after_call.py")), numbers)
    for name in ("row_sums", "doubled", "corners"):
        require(refuses(getattr(extension, name)), f"{name} reads float64 as float32: do not remove check(x)")


def layouts(numbers):
    """Tensors of the same shape in seven layouts, by name."""
    x = torch.randn(M, N, generator=numbers)
    return {
        "contiguous": torch.randn(N, M, generator=numbers),
        "transposed": x.t(),
        "a slice": torch.randn(N + 2, 2 * M, generator=numbers)[1:-1, 1 : M + 1],
        "every other column": torch.randn(N, 2 * M, generator=numbers)[:, ::2],
        "expanded": torch.randn((), generator=numbers).expand(N, M),
        "an expanded row": torch.randn(M, generator=numbers).expand(N, M),
        "an expanded column": torch.randn(N, 1, generator=numbers).expand(N, M),
    }


def row_sums(function, numbers):
    freed = M * torch.tensor([170] * 4, dtype=torch.uint8).view(torch.float32)
    for name, x in layouts(numbers).items():
        got = function(x)
        if isinstance(got, torch.Tensor) and got.shape == (N,):
            late = ((got / freed - 1).abs() < 1e-3).sum()
            require(
                late < N // 2,
                f"row_sums(x) is wrong (x {name}): `numbers` points into a copy that was freed before it was read",
            )
        same("row_sums(x)", got, x.double().sum(1), f"x {name}", torch.float32, 1e-4)


def doubled(function, numbers):
    for name, x in layouts(numbers).items():
        got = function(x)
        raw = 2 * x.as_strided((N, M), (M, 1)).double() if name == "transposed" else None
        suspects = {} if raw is None else {"this reads the elements in memory order, but x has other strides": raw}
        same("doubled(x)", got, 2 * x.double(), f"x {name}", torch.float32, suspects=suspects)
        require(
            got.is_contiguous(), f"doubled(x) has strides {got.stride()} for x {name}, expected a contiguous result"
        )


def corners(function, numbers):
    for name, x in layouts(numbers).items():
        want = [x[0, 0].item(), x[-1, -1].item()]
        got = list(function(x))
        require(
            got == want,
            f"corners(x) is {got} for x {name}, expected {want}; x has storage_offset {x.storage_offset()}, and "
            "data_ptr already points to the first element of x",
        )


def no_copy(work, numbers):
    """corners reads two elements of x, so nothing has to be allocated."""
    for name, x in layouts(numbers).items():
        made = work.beside(CALLS).allocations("_C", "corners", x)
        # An element that ATen selects is a view of x; only new memory counts.
        require(
            not made, f"corners copies x to read two of its elements (x {name}): it calls ATen's {', '.join(made)}"
        )


def nothing_left(after_call, numbers):
    """A call must not change x, which belongs to the caller, or keep memory."""
    for function in ("row_sums", "doubled", "corners"):
        for name, x in layouts(numbers).items():
            require(
                after_call.is_argument_unchanged(function, x),
                f"{function}(x) changes the memory or the strides of x itself (x {name}). It is the caller's: make a "
                "second tensor instead",
            )
        for name, is_transposed in (("contiguous", False), ("transposed", True)):
            require(
                after_call.is_memory_free(function, N, M, is_transposed),
                f"after {function}(x), memory of x or of its copy is never freed (x {name}): a static or global "
                "variable still holds it. A local variable holds it until the function returns, which is enough",
            )


def refuses(function):
    try:
        function(torch.ones(3, 4, dtype=torch.float64))
    except LearnerError:
        return True
    return False
