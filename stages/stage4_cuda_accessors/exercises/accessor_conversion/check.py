from common.exercises.judge import Failure, LearnerError, agree, cases


def check(work):
    agree(work.cell(), [*cases(work), work.case(0, 5, 70)])
    work.by_kernels()
    if work.target == "emulator":
        a_failed_launch_is_told(work)


def a_failed_launch_is_told(work):
    """A device that has no room for any block refuses every launch: somebody must ask, or nobody hears of it."""
    case = work.case(3, 5, 70)
    inputs = list(case.inputs().values())
    work.restart(EMULATOR_DEVICE="maxThreadsPerBlock=1", EMULATOR_CHECKS="-launch")
    try:
        work.cell()(*inputs)
    except LearnerError as error:
        if "CUDA error" in str(error):
            return
        raise
    raise Failure(
        "on a device that refuses every launch your cell returns as if all were well: nobody asked whether the "
        "launch went wrong"
    )
