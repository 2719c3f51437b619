import torch

from common.cell import reference
from common.exercises.judge import OPERATORS, agree, cases, require, same

SIZES = (1, 2, 3, 5, 7, 8, 9, 31, 64, 130)  # around vectors of 2, 4 and 8 units
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
VECTOR = 16  # bytes
ROWS = 5


def check(work):
    agree(work.cell(), cases(work))
    probe, source = work.beside(OPERATORS), (work.numbers(), work.device)
    for dtype in DTYPES:
        for S in SIZES:
            tensors = fresh(S, dtype, *source)
            compare(probe, tensors, f"S={S}, {short(dtype)}")
            compare(probe, [apart(one, S % 3 + 2) for one in tensors], f"S={S}, {short(dtype)}, strided units")
        for by in range(1, VECTOR // dtype.itemsize):
            tensors = fresh(64, dtype, *source)
            for k in range(len(tensors)):
                given = [moved(one, by) if j == k else one for j, one in enumerate(tensors)]
                what = (
                    f"S=64, {short(dtype)}, {NAMES[k]} begins {by * dtype.itemsize} bytes past a multiple of {VECTOR}"
                )
                compare(probe, given, what)
    for dtype in DTYPES:
        for S in (64, 130):
            z, *others = fresh(S, dtype, *source)
            count(work, probe, [z, *others], f"S={S}, {short(dtype)}")
            count(work, probe, [z, *(apart(one, 2) for one in others)], f"S={S}, {short(dtype)}, strided units")
        z, *others = fresh(64, dtype, *source)
        what = f"S=64, {short(dtype)}, old_cell and grad_h begin one number past a multiple of {VECTOR} bytes"
        count(work, probe, [z, moved(others[0], 1), moved(others[1], 1), others[2]], what)


NAMES = ("z", "old_cell", "grad_h", "grad_cell")


def fresh(S, dtype, numbers, device):
    """z (B, 3S), old_cell, grad_h and grad_cell (B, S)."""
    return [torch.randn(ROWS, width, generator=numbers).to(device, dtype) for width in (3 * S, S, S, S)]


def moved(tensor, by):
    """The same numbers, beginning `by` elements after an aligned address."""
    storage = tensor.new_full((tensor.numel() + by,), torch.nan)
    return storage[by:].view(tensor.shape).copy_(tensor)


def apart(tensor, stride):
    """The same numbers, `stride` elements from one to the next, with NaN between them."""
    return tensor.new_full((*tensor.shape, stride), torch.nan)[..., 0].copy_(tensor)


def short(dtype):
    return str(dtype).removeprefix("torch.")


def compare(probe, tensors, what):
    """Compares both operators with the equations in float64."""
    z, old_cell, grad_h, grad_cell = tensors
    got = probe.call("pointwise", z, old_cell)
    new_cell = got[1]
    want = reference.pointwise_forward(z, old_cell)
    tolerance = 8 * torch.finfo(z.dtype).eps
    for name, one, right in zip(("new_h", "new_cell"), got, want, strict=True):
        same(name, one, right, what, z.dtype, tolerance)
    new_cell = laid_out_as(old_cell, new_cell)
    d_z, _, d_old_cell = probe.call("pointwise_backward", grad_h, grad_cell, z, new_cell, [True, True])
    # Backward gets the rounded new_cell, so the reference takes the old_cell for which the equations give exactly it.
    z_i, _, z_g = z.double().chunk(3, 1)
    exact = new_cell.double() - torch.nn.functional.elu(z_g) * z_i.sigmoid()
    want = reference.pointwise_backward(grad_h, grad_cell, z, exact)
    for name, one, right in zip(("d_z", "d_old_cell"), (d_z, d_old_cell), want, strict=True):
        same(name, one, right, what, z.dtype, tolerance)


def laid_out_as(other, tensor):
    """The same numbers with the strides and the beginning of another tensor."""
    if other.is_contiguous() and not other.storage_offset():
        return tensor
    storage = tensor.new_full((other.untyped_storage().nbytes() // other.element_size(),), torch.nan)
    return storage.as_strided(other.shape, other.stride(), other.storage_offset()).copy_(tensor)


def count(work, probe, tensors, what):
    """Each number is accessed once, and in vectors wherever one is full and begins at a multiple of 16 bytes."""
    z, old_cell, grad_h, grad_cell = tensors
    with work.counting() as counted:
        _, new_cell = probe.call("pointwise", z, old_cell)
        probe.call("pointwise_backward", grad_h, grad_cell, z, new_cell, [False, True])
    if not counted.kernels:
        return  # on a GPU
    for kernel, space, tensors in (
        ("forward_kernel", "global load", (z, old_cell)),
        ("forward_kernel", "global store", (new_cell, new_cell)),  # and new_h
        ("backward_kernel", "global load", (z, new_cell, grad_h, grad_cell)),
        ("backward_kernel", "global store", (z, new_cell)),  # d_z and d_old_cell
    ):
        size, accesses = (counted.kernels.total(of, kernel, space) for of in ("bytes", "lanes"))
        needed = sum(one.nbytes for one in tensors)
        enough = sum(fewest(one, new_cell.size(1)) for one in tensors)
        where = f"{what}: the {space.partition(' ')[2]}s of {kernel}"
        require(size == needed, f"{where} move {size:,} bytes, expected {needed:,}")
        require(
            accesses <= enough or not old_cell.is_contiguous(),
            f"{where} are {accesses:,} accesses of its threads; {enough:,} are enough: "
            f"{size / accesses:.3g} bytes at once",
        )


def fewest(tensor, S):
    """The accesses for all vectors of a contiguous tensor of rows of S units: one each, or one for each unit."""
    size = VECTOR // tensor.element_size()
    first = tensor.storage_offset()
    vectors = [(row + unit, min(size, S - unit)) for row in range(0, tensor.numel(), S) for unit in range(0, S, size)]
    return sum(1 if units == size and (first + begin) % size == 0 else units for begin, units in vectors)
