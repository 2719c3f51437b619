import torch

from common.exercises.judge import require

QUESTIONS = ("stride", "address", "transposed", "expanded", "largest")
HINTS = {
    "address": "the distance is in bytes, and each float32 has four",
    "transposed": "its rows do not follow one another in memory: t() exchanges the strides and moves nothing",
    "expanded": "all of its elements are the same number, in four bytes of memory",
    "largest": "count all three gates of each row; with one more row, there must be more than 2**31 - 1 elements",
}


def check(work):
    said = {name: work.number(name) for name in QUESTIONS}
    for name, found in measured().items():
        look = HINTS.get(name, "from one row to the next, there are three gates")
        require(said[name] == found, f"{name} = {said[name]} is not what the tensors give: {look}")


def measured():
    """The right answers, from tensors of these shapes."""
    gates = torch.empty(16, 3, 128)
    old_cell = torch.randn(128, 16).t()
    grad_h = torch.ones(()).expand(16, 128)
    rows = torch.iinfo(torch.int32).max // gates.new_empty(1, 3, 1024).numel()
    found = (gates.stride(0), bytes_between(gates, 2, 1, 37), bytes_between(old_cell, 2, 37) // 4)
    return dict(zip(QUESTIONS, (*found, bytes_between(grad_h, 2, 37) // 4, rows), strict=True))


def bytes_between(tensor, *index):
    """The distance of an element from the first one, in bytes."""
    return tensor[index].data_ptr() - tensor.data_ptr()
