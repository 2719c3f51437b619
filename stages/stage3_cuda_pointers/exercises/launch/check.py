import torch

from common.exercises.judge import Failure, LearnerError, agree, no_idle_block

EMPTY = "An empty grid is an error, so a launch for nothing must not happen"
TALL = "A grid has at most 65535 blocks in y; the kernels loop over the rows"
NONE = "Is there a block for every unit, also for those that fill no whole block?"
LOST = "a launch that the device refused went unnoticed: cudaGetLastError() knows of it, and the caller wants to"


SIZES = ((3, 5, 70), (1, 4, 33), (5, 3, 1), (2, 1, 1025), (2, 1, 512))


def check(work):
    for size in SIZES:
        launched(work, work.case(*size), NONE)
    launched(work, work.case(0, 4, 8), EMPTY)
    nothing = torch.ones(3, 0, device=work.device)
    try:
        work.cell()(nothing.new_ones(3, 5), nothing.new_ones(0, 5), nothing.new_ones(0), nothing, nothing)
    except LearnerError as error:
        raise Failure(f"B=3, I=5, S=0: {first(error)}\n{EMPTY}") from None
    launched(work, work.case(65537, 1, 1), TALL, gradients=False)
    work.by_kernels()
    full_blocks(work)
    if work.target == "emulator":  # can be told to have a smaller grid than its launchers think
        work.restart(EMULATOR_DEVICE="maxGridSize.y=2", EMULATOR_CHECKS="-launch")
        for which in ("forward", "backward"):
            try:
                refused(work, which)
            except LearnerError:
                continue
            raise Failure(f"{which}: {LOST}")


def full_blocks(work):
    """Units that fill two blocks need no third one, whatever the size of a block is."""
    threads = 256
    for _ in range(2):
        inputs = work.case(2, 1, 2 * threads).inputs()
        with work.counting() as counted:
            work.cell()(*inputs.values())
        if not counted.kernels:
            return  # on a GPU
        threads = counted.kernels.launches[0].block[0]
    no_idle_block(counted.kernels, f"S={2 * threads}")


def launched(work, case, question, gradients=True):
    """The cell is right; a launch that is refused is followed by a question."""
    try:
        agree(work.cell(), [case], gradients)
    except LearnerError as error:
        if "the emulator found" in str(error):
            raise
        raise Failure(f"{case}: {first(error)}\n{question}") from None


def refused(work, which):
    """A call whose grid is one block too high for the device."""
    ones, extension = torch.ones(3, 7, device=work.device), work.load("_C")
    if which == "forward":
        extension.forward(ones, ones.new_ones(21, 14), ones.new_ones(21), ones, ones)
    else:
        extension.backward(ones, ones, ones.new_ones(21, 14), ones.new_ones(3, 14), ones.new_ones(3, 21), ones,
                           [True] * 5)  # fmt: skip


def first(error):
    return str(error).partition("\n")[0]
