from common.exercises.judge import agree, cases
from common.exercises.judging.cell import large_cells, nan_shows
from common.exercises.judging.launches import large_batch, whole_warps


def check(work):
    agree(work.cell(), cases(work), gradients=False)
    agree(work.cell(), cases(work)[:2])
    nan_shows(work)
    large_cells(work)
    work.by_kernels()
    whole_warps(work, "forward_kernel")
    large_batch(work)
