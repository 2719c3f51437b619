from itertools import product

import torch

from common.exercises.judge import OPERATORS, SMALL, Failure, LearnerError, agree, require

RESULTS = {"pointwise": ("new_h", "new_cell", "gates"), "pointwise_backward": ("d_z", "d_old_cell")}

CAUSES = {
    "shape": "The real kernels allocate their results in csrc/lltm_cpu.cpp: compare with each at::empty",
    "strides": "The results are always contiguous, but empty_like keeps the strides of its argument",
    "dtype": "The results have the dtype of the arguments: tensor.new_empty uses it, torch.empty does not",
    "device": "The results are on the device of the arguments: tensor.new_empty uses it, torch.empty does not",
}

# What opcheck says about results that share memory, and what it means.
SHARED = {
    "alias_each_other": "Two results share memory, but the real kernel allocates each of its own",
    "alias_inputs": "A result shares memory with an argument, but the real kernel allocates its results",
}


def check(work):
    probe = work.beside(OPERATORS)
    probe.load("lltm")
    for dtype, layout in product((torch.float32, torch.float64, torch.bfloat16), ("contiguous", "transposed")):
        case = work.case(4, 5, 70, dtype=dtype, layout=layout)  # not 3 rows, as there are 3 gates
        z, old_cell, grads = given(work, case)
        truthful(probe, case, "pointwise", z, old_cell)
        _, new_cell, gates = probe.call("pointwise", z, old_cell)
        for heads in (grads, (grads[0], None), (None, None)):
            for saved in ((gates, new_cell), (transposed(gates), transposed(new_cell))):
                truthful(probe, case, "pointwise_backward", *heads, *saved)
    with_opcheck(work, probe)
    compiled(work, probe)


def given(work, case):
    """z, old_cell and two gradients in the layout of a case."""
    old_cell, B, S = case.inputs()["old_cell"].detach(), case.B, case.S
    z = work.case(B, 1, 3 * S, dtype=case.dtype, layout=case.layout).inputs()["old_h"].detach()
    return z, old_cell, tuple(torch.randn_like(old_cell) for _ in range(2))


def transposed(tensor):
    """The same numbers in a layout in which neighbouring rows of the batch are neighbours in memory."""
    return tensor.movedim(0, -1).contiguous().movedim(-1, 0)


def truthful(probe, case, name, *arguments):
    """Raises `Failure` where the fake kernel describes other results than the real one returns, on any device."""
    real = probe.real(name, *arguments)
    for device in ("cpu", "cuda:0", "meta"):
        try:
            fake = probe.fake(name, *arguments, device=device)
        except LearnerError as error:
            if error.kind != "UnsupportedOperatorException":
                raise
            raise Failure(f"{name} has no fake kernel: register one with torch.library.register_fake") from None
        require(len(fake) == len(real), f"the fake {name} returns {len(fake)} tensors, the real one {len(real)}")
        compare(name, case, device, fake, [[*one[:3], device] for one in real])


def compare(name, case, device, fake, real):
    """Raises `Failure` for the first difference; results are on the device of the arguments."""
    for result, said, is_ in zip(RESULTS[name], fake, real, strict=True):
        for what, lie, truth in zip(("shape", "strides", "dtype", "device"), said, is_, strict=True):
            require(
                lie == truth,
                f"the fake {name} is wrong about {result}: it returns {what} {lie}, but the real kernel returns "
                f"{truth} ({case}, arguments on {device}). {CAUSES[what]}",
            )


def with_opcheck(work, probe):
    """opcheck passes, also with symbolic sizes."""
    case = work.case(*SMALL)
    z, old_cell, grads = given(work, case)
    _, new_cell, gates = probe.call("pointwise", z, old_cell)
    arguments = [tensor.requires_grad_() for tensor in (z, old_cell)]
    tests = [("pointwise", test) for test in ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")]
    for name, test in (*tests, ("pointwise_backward", "test_faketensor")):
        said = probe.opcheck(name, test, *(arguments if name == "pointwise" else (*grads, gates, new_cell)))
        shared = [f"\n{meaning}" for words, meaning in SHARED.items() if words in said]
        require(not said, f"opcheck's {test} of {name}: {said}{''.join(shared)}")


def compiled(work, probe):
    """One graph works for every size."""
    for size in (SMALL, (4, 6, 33)):
        try:
            agree(lambda *inputs: probe.compiled("lltm", "lltm", True, *inputs), [work.case(*size)])
        except LearnerError as error:
            if error.kind != "RecompileError":
                raise
            raise Failure(
                "the cell was compiled for all sizes, but works for only one: a fake kernel turns a size into a "
                "Python int. Pass on the symbolic sizes that `shape` returns"
            ) from None
