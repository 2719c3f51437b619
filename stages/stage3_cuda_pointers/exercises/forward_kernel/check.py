import torch

from common.exercises.judge import agree, cases, digits_kept, same, wide_indices
from common.exercises.judging.cell import large_cells, nan_shows
from common.exercises.judging.launches import large_batch


def check(work):
    agree(work.cell(), cases(work), gradients=False)
    for case in cases(work)[:4]:
        inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
        *_, X, gates = work.load("_C").forward(*inputs.values())
        z = X.double() @ inputs["weights"].double().t() + inputs["bias"].double()
        z_i, z_o, z_g = z.chunk(3, dim=1)
        want = torch.cat([z_i.sigmoid(), z_o.sigmoid(), torch.nn.functional.elu(z_g)], dim=1)
        same("gates", gates, want, case, suspects={"this is z, but backward needs the activated gates": z})
    near_zero(work)
    nan_shows(work)
    large_cells(work)
    work.by_kernels()
    large_batch(work, lambda case: agree(work.cell(), [case], gradients=False))
    wide_indices(work.code("csrc/lltm_kernel.cu"), "forward_kernel", "row", "state_size")


def near_zero(work):
    """The candidate cell keeps its digits where z is small."""
    z = -1e-6
    input, weights, bias, old_h, old_cell = (tensor.detach() for tensor in work.case(3, 5, 70).inputs().values())
    gates = work.load("_C").forward(input, weights * 0, bias * 0 + z, old_h, old_cell)[-1]
    digits_kept(gates[:, 140:], z, "elu in lltm_math.h uses expm1")
