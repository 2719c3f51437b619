import torch

from common.exercises.judge import OPERATORS, SMALL, Failure, LearnerError, Stopped, require, same

ASKED = "at::autocast::get_autocast_dtype returns the dtype that the user asked for"
LOW = (torch.bfloat16, torch.float16)


def check(work):
    probe = work.beside(OPERATORS)
    z, old_cell = given(work)
    for dtype in LOW:
        cast(probe, dtype, z, old_cell)
        gradients(probe, dtype, z, old_cell)
    for given_dtype in LOW:
        cast(probe, torch.bfloat16, z.detach().to(given_dtype), old_cell)
    stays_double(probe, z.detach().double(), old_cell.detach().double())
    only_one_is_double(probe, z.detach(), old_cell.detach())
    for key, where in (("AutocastCPU", "the CPU"), ("AutocastCUDA", "GPUs")):
        require(
            probe.has_kernel("pointwise", key), f"autocast has no rule for {where}: nothing is registered for {key}"
        )
    on_gpu(probe, z, old_cell)
    outside(probe, z, old_cell)


def given(work):
    """z and old_cell in float32."""
    case = work.case(*SMALL)
    z = work.case(case.B, 1, 3 * case.S).inputs()["old_h"]
    return z, case.inputs()["old_cell"]


def cast(probe, dtype, z, old_cell):
    """Under autocast, the results are those for arguments that were cast to that dtype."""
    what = f"under autocast to {dtype}, with z of {z.dtype} and old_cell of {old_cell.dtype}"
    try:
        got = probe.autocast(dtype, "pointwise", z, old_cell)
    except LearnerError as error:
        raise Failure(f"{what}: {str(error).partition(chr(10))[0]}") from None
    except Stopped as stopped:
        raise Failure(
            f"{stopped}\nUnless the rule excludes the Autocast key, the operator that it calls is dispatched to the "
            "rule itself again, until the stack overflows"
        ) from None
    want = probe.call("pointwise", z.detach().to(dtype), old_cell.detach().to(dtype))
    for name, one, right in zip(("new_h", "new_cell", "gates"), got, want, strict=True):
        require(one.dtype == dtype, f"{name} has dtype {one.dtype}, expected {dtype}: {what}. {ASKED}")
        same(name, one, right, what, dtype)


def stays_double(probe, z, old_cell):
    """Autocast leaves float64 as it is."""
    for dtype in LOW:
        found = {one.dtype for one in probe.autocast(dtype, "pointwise", z, old_cell)}
        require(
            found == {torch.float64},
            f"under autocast to {dtype} float64 arguments give results of {', '.join(map(str, found))}, expected "
            "torch.float64: autocast never changes float64. cached_cast leaves it as it is, Tensor.to does not",
        )


def only_one_is_double(probe, z, old_cell):
    """If one argument is of float64, the other one is cast, and the operator refuses the two dtypes."""
    for given in ((z.double(), old_cell), (z, old_cell.double())):
        try:
            found = probe.autocast(torch.bfloat16, "pointwise", *given)[0].dtype
        except LearnerError:
            continue
        kinds = " and old_cell of ".join(str(one.dtype) for one in given)
        raise Failure(
            f"under autocast to torch.bfloat16, z of {kinds} give results of {found}. Expected: the error of "
            "pointwise for arguments of two dtypes, since autocast never changes float64, but casts the other "
            "argument"
        )


def gradients(probe, dtype, z, old_cell):
    """Each gradient has the dtype of its argument."""
    probe.load("lltm")  # registers the gradient
    new_h, new_cell, _ = probe.autocast(dtype, "pointwise", z, old_cell)
    heads = (torch.ones_like(new_h), torch.ones_like(new_cell))
    both = torch.autograd.grad((new_h, new_cell), (z, old_cell), heads)
    for name, found in zip(("z", "old_cell"), both, strict=True):
        require(found.dtype == torch.float32, f"d_{name} has dtype {found.dtype}, but {name} has torch.float32")


def on_gpu(probe, z, old_cell):
    """The rule for GPUs asks for the dtype of GPUs: tensors without data show which kernels are called."""
    probe.load("lltm")  # registers the fake kernel
    for dtype in LOW:
        try:
            found = {described[2] for described in probe.autocast_on_fake_gpu(dtype, "pointwise", z, old_cell)}
        except Stopped as stopped:
            raise Failure(f"{stopped}\nUnder autocast for GPUs: does the rule exclude AutocastCUDA?") from None
        require(
            found == {dtype},
            f"under autocast for GPUs to {dtype}, the results are of {', '.join(map(str, found))}: does the rule for "
            "GPUs use at::kCUDA, for the dtype and in cached_cast?",
        )


def outside(probe, z, old_cell):
    """Without autocast nothing is cast."""
    found = probe.call("pointwise", z, old_cell)[0].dtype
    require(found == torch.float32, f"without autocast new_h has dtype {found}, expected torch.float32")
