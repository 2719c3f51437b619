import re

import torch

from common.cell import reference
from common.exercises.judge import Failure, guarded, on_current_stream, require, same, stored_once

# Accessors whose sizes and strides have 32 bits. torch tests the number of elements, but not the strides.
NARROW = r"\b\w*accessor32\w*|\bPackedTensorAccessor32\b|Accessor\w*<[^;]*?\bu?int(?:32_t)?\s*>"
SIZES = ((3, 70), (1, 33), (5, 300))


def check(work):
    for file in ("csrc/step.cpp", "csrc/step_kernel.cu"):
        if narrow := re.search(NARROW, work.code(file, strings=False)):
            raise Failure(
                f"{file} uses {narrow[0]:.60}, whose strides have 32 bits: the element of a tensor with large "
                "strides is another one. The kernel reads any strides with accessors of 64 bits"
            )
    step = work.load("_C").step
    numbers = work.numbers()
    for B, S in SIZES:
        for dtype in (torch.float32, torch.float64):
            for layout, of_z, of_cell in layouts():
                z, old_cell = (
                    laid_out(torch.randn(shape, generator=numbers, dtype=torch.float64).to(work.device, dtype))
                    for laid_out, shape in ((of_z, (B, 3, S)), (of_cell, (B, S)))
                )
                what = f"{layout}, B={B}, S={S}, {str(dtype).removeprefix('torch.')}"
                compare(step(z, old_cell), z, old_cell, what)
    for layout in LAYOUTS:
        check_calls(work, step, layout)
    contiguous(work, step)


def contiguous(work, step):
    """Checks that the results are contiguous, whatever the arguments."""
    B, S = 3, 70
    z, old_cell = (LAYOUTS["transposed"](torch.randn(shape).to(work.device)) for shape in ((B, 3, S), (B, S)))
    for name, got in zip(("new_h", "new_cell"), step(z, old_cell), strict=True):
        require(
            got.is_contiguous(),
            f"{name} has the strides {tuple(got.stride())}, expected {(S, 1)} (transposed, B={B}, S={S}): the "
            "results are contiguous, whatever the strides of the arguments",
        )


def check_calls(work, step, layout):
    """Counts the calls of ATen in a second call of step, which must not reuse anything from the first."""
    z, old_cell = (LAYOUTS[layout](torch.randn(shape).to(work.device)) for shape in ((4, 3, 64), (4, 64)))
    step(z, old_cell)
    with work.counting() as counted:
        results = step(z, old_cell)
    names = ", ".join(f"{number} {name}" for name, number in sorted(counted.calls.items()))
    empty = sum(number for name, number in counted.calls.items() if name.startswith(("empty", "new_empty")))
    require(
        counted.all_calls == empty <= 2,
        f"step calls ATen {counted.all_calls} times with tensors that are {layout}: {names}. Two uninitialised "
        "allocations are enough: the kernel reads any strides and writes every element of its results",
    )
    require(empty > 0, "step allocates nothing: the next call would overwrite the results of this one")
    stored_once(counted.kernels, sum(result.nbytes for result in results), "step")
    on_current_stream(counted.kernels, "step")
    guarded(counted.kernels, "step")


LAYOUTS = {
    "contiguous": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.transpose(0, -1).contiguous().transpose(0, -1),
    "sliced": lambda tensor: torch.stack([tensor, torch.full_like(tensor, torch.nan)], dim=-1)[..., 0],
    "part of wider rows": lambda tensor: torch.nn.functional.pad(tensor, (0, 3), value=torch.nan)[..., :-3],
    "expanded": lambda tensor: tensor.flatten()[0].expand(tensor.shape),
}


def layouts():
    """Each layout for both arguments, and an expanded old_cell with a z whose elements differ."""
    yield from ((name, laid_out, laid_out) for name, laid_out in LAYOUTS.items())
    yield "old_cell expanded", LAYOUTS["contiguous"], LAYOUTS["expanded"]


def compare(results, z, old_cell, what):
    """Compares both results with the reference."""
    B, S = old_cell.shape
    flat_z = z.reshape(B, 3 * S)
    want, words = reference.pointwise_forward(flat_z, old_cell), "old_cell is read as if it were contiguous"
    in_memory = old_cell.untyped_storage().nbytes() >= old_cell.numel() * old_cell.element_size()
    walked = old_cell.as_strided((B, S), (S, 1)) if in_memory else old_cell
    for name, got, right, wrong in zip(
        ("new_h", "new_cell"), results, want, reference.pointwise_forward(flat_z, walked), strict=True
    ):
        same(name, got, right, what, old_cell.dtype, suspects={words: wrong})
