import torch

from common.exercises.judge import require

QUESTIONS = ("stride", "address", "transposed", "expanded", "largest")
LOOK = {
    "address": "the distance is counted in bytes, and each float32 has four",
    "transposed": "its rows are not behind one another: t() exchanges the strides and moves nothing",
    "expanded": "all of its elements are one and the same, in four bytes of memory",
    "largest": "every gate of every row counts, and nothing above 2**31 - 1 is left over for one row more",
}


def check(work):
    said = {name: work.number(name) for name in QUESTIONS}
    for name, found in measured().items():
        look = LOOK.get(name, "between two rows lie the three gates of one row")
        require(said[name] == found, f"{name} = {said[name]}: looked up just now, it is another number; {look}")


def measured():
    """The right answers, from tensors of these shapes."""
    gates = torch.empty(16, 3, 128)
    old_cell = torch.randn(128, 16).t()
    grad_h = torch.ones(()).expand(16, 128)
    rows = torch.iinfo(torch.int32).max // gates.new_empty(1, 3, 1024).numel()
    found = (gates.stride(0), bytes_between(gates, 2, 1, 37), bytes_between(old_cell, 2, 37) // 4)
    return dict(zip(QUESTIONS, (*found, bytes_between(grad_h, 2, 37) // 4, rows), strict=True))


def bytes_between(tensor, *index):
    """How far an element is from the first one."""
    return tensor[index].data_ptr() - tensor.data_ptr()
