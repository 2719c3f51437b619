import torch

from common.cell.case import input_gradients
from common.exercises.judge import Failure, LearnerError, agree, no_idle, on_current_stream, require
from common.exercises.judging.launches import a_block_for_each_row

EMPTY = "An empty grid is an error, so do not launch if there is nothing to do"
TALL = "A grid has at most 65535 blocks in y; the kernels loop over the rows"
WAITS = (
    "a launcher waits for its kernel, and the host with it. Only report whether the launch was accepted: an error of "
    "the running kernel is reported by the next call that waits"
)
NONE = "Is there a block for every unit, even if the last block is not full?"
LOST = "a launch that the device rejected went unnoticed: return the error of cudaGetLastError() to the caller"


SIZES = ((3, 5, 70), (1, 4, 33), (5, 3, 1), (2, 1, 1025), (2, 1, 512))


def check(work):
    for size in SIZES:
        check_launch(work, work.case(*size), NONE)
    check_launch(work, work.case(0, 4, 8), EMPTY)
    shapes = (3, 5), (0, 5), (0,), (3, 0), (3, 0)  # S=0
    inputs = [torch.ones(shape, device=work.device, requires_grad=True) for shape in shapes]
    try:
        results = work.cell()(*inputs)
        torch.autograd.grad(results, inputs, [torch.ones_like(one) for one in results])
    except LearnerError as error:
        raise Failure(f"B=3, I=5, S=0: {first(error)}\n{EMPTY}") from None
    for rows in (65536, 65537):
        check_launch(work, work.case(rows, 1, 1), TALL, gradients=False)
    work.by_kernels()
    without_a_gradient(work)
    height_of_the_grid(work)
    full_blocks(work)
    require("Synchronize" not in work.code("csrc/lltm_kernel.cu"), WAITS)
    if work.target == "emulator":  # its grids can be limited to fewer blocks than the launchers expect
        work.restart(EMULATOR_DEVICE="maxGridSize.y=2", EMULATOR_CHECKS="-launch")
        for which in ("forward", "backward"):
            try:
                call_with_large_grid(work, which)
            except LearnerError:
                continue
            raise Failure(f"{which}: {LOST}")


def without_a_gradient(work):
    """Checks that the backward launch uses the stream when one of its gradients is missing, too."""
    for grads in ("h only", "cell only"):
        case = work.case(3, 5, 70, grads=grads)
        inputs = case.inputs()
        results = work.cell()(*inputs.values())
        with work.counting() as counted:
            input_gradients(results, inputs, case.gradients())
        on_current_stream(counted.kernels, f"backward, gradient of {grads}")


def height_of_the_grid(work):
    """Checks that the grid is as high as the batch, if a grid may be that high."""
    case = work.case(300, 1, 3)
    with work.counting() as counted:
        work.cell()(*case.inputs().values())
    a_block_for_each_row(counted.kernels, case, f"{TALL}, but up to that limit each row gets a block of its own")


def full_blocks(work):
    """Checks that units that fill exactly two blocks get no third block, whatever the block size."""
    threads = 256
    for _ in range(2):
        inputs = work.case(2, 1, 2 * threads).inputs()
        with work.counting() as counted:
            work.cell()(*inputs.values())
        if not counted.kernels:
            return  # on a GPU
        threads = counted.kernels.launches[0].block[0]
    no_idle(counted.kernels, f"S={2 * threads}", "blocks")


def check_launch(work, case, question, gradients=True):
    """Checks the cell; if it raises an error, the message ends with a question."""
    try:
        agree(work.cell(), [case], gradients)
    except LearnerError as error:
        if "the emulator found" in str(error):
            raise
        raise Failure(f"{case}: {first(error)}\n{question}") from None


def call_with_large_grid(work, which):
    """Makes a call whose grid has one block more in y than the device allows."""
    ones, extension = torch.ones(3, 7, device=work.device), work.load("_C")
    if which == "forward":
        extension.forward(ones, ones.new_ones(21, 14), ones.new_ones(21), ones, ones)
    else:
        extension.backward(ones, ones, ones.new_ones(21, 14), ones.new_ones(3, 14), ones.new_ones(3, 21), ones,
                           [True] * 5)  # fmt: skip


def first(error):
    return str(error).partition("\n")[0]
