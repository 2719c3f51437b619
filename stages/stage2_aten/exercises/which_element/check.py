import ctypes

import torch

from common.exercises.judge import require


def check(work):
    for name, (found, why) in measured().items():
        said = work.number(name, whole=False)  # x has floats, so 21.0 is right, too
        require(said == found, f"{name} = {said:g}: the number measured just now is different. {why}")


def measured():
    """The answer to each question, and a hint for a wrong answer."""
    x = torch.arange(24.0).view(4, 6)
    view = x[1:, 2:4].t()
    start = view.data_ptr()
    return {
        "offset": (view.storage_offset(), "view begins at row 1, column 2 of x. How many numbers come before that?"),
        "bytes": (start - x.data_ptr(), "The offset counts elements, and a float32 has four bytes"),
        "element": (int(view[1, 2]), f"The strides of view are {view.stride()}, since t() exchanged them"),
        "raw": (read(start, 3), "A raw pointer reads one element after the other in memory and ignores the strides"),
        "added": (
            read(start, view.storage_offset()),
            "data_ptr already includes the offset, so it is added twice here",
        ),
        "sum": (arriving(torch.sum), "The derivative of a sum is 1 for each element: one number, expanded"),
        "mean": (arriving(torch.mean), "A division turns the expanded tensor into a full one"),
    }


def read(address, k):
    """The k-th float from an address on, as C++ would read it."""
    return int(ctypes.c_float.from_address(address + 4 * k).value)


def arriving(loss):
    """The size in bytes of the storage of the gradient that a loss sends to a (2, 3) tensor."""
    seen = []
    y = 1 * torch.ones(2, 3, requires_grad=True)
    y.register_hook(lambda grad: seen.append(grad.untyped_storage().nbytes()))
    loss(y).backward()
    return seen[0]
