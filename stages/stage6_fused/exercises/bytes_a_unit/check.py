import math

from common import stages
from common.cell.case import input_gradients
from common.exercises.judge import OPERATORS, SMALL, Failure, require

FLOAT = 4  # bytes
WITHIN = {"least": 5, "instructions": 10, "small": 1}
LOOK = {
    "kept_forward": "it reads z and old_cell; besides the two results it writes what it saves for backward",
    "forward": "it reads z and old_cell, and writes new_h and new_cell",
    "backward": "it reads z, new_cell and two gradients, and writes d_z and d_old_cell",
    "h_unused": "a missing gradient is not read",
    "saved": "arguments and results exist anyway; look for tensors that are neither",
    "least": "divide the bytes by the bytes per second",
    "instructions": "divide the instructions per second by the units per second",
    "small": "divide the bytes by the bytes per second; a launch takes thousands of nanoseconds, whatever it moves",
}
WHY = {
    ("forward", 9): "that was the number when the gates were saved",
    ("forward", 4): "that is what it reads, but it also writes",
    ("backward", 13): "the gates are not read: they are computed from z, which is saved instead of them",
    ("h_unused", 10): "no zeros are read for a missing gradient: its pointer is null",
    ("saved", 3): "that is how many numbers are saved; each float32 number has 4 bytes",
    ("least", 32): "that is the time for a single number of each unit",
}
GPU = {"multiprocessors": 132, "threads": 4 * 32, "clock": 1.98e9, "copy": 4202e9}  # as in the questions


def check(work):
    names = [question.name for question in work.exercise.questions]
    said = {name: work.number(name, whole=name not in WITHIN) for name in names}
    for name in WITHIN:
        require(math.isfinite(said[name]), f"{name} = {said[name]}: write a number")
    measured = counted(work) | calculated()
    for name, number in measured.items():
        if abs(said[name] - number) > WITHIN.get(name, 0):
            way = "larger" if said[name] < number else "smaller"
            raise Failure(
                f"{name} = {said[name]}: the right number is {way}; {WHY.get((name, said[name]), LOOK[name])}"
            )


def counted(work):
    """What the emulator counts, in numbers for each unit, and what autograd saves."""
    found = {}
    with work.ours(stages.get_stage(3).folder) as three:
        cell, case = three.cell(), three.case(*SMALL)
        with three.counting() as counts:
            cell(*case.inputs().values())
        found["kept_forward"] = numbers(counts, "forward_kernel", case)
    with work.ours() as six:
        probe, case = six.beside(OPERATORS), six.case(*SMALL)
        z, old_cell = six.case(case.B, 1, 3 * case.S).inputs()["old_h"].detach(), case.inputs()["old_cell"].detach()
        with six.counting() as counts:
            _, new_cell = probe.call("pointwise", z, old_cell)
        found["forward"] = numbers(counts, "forward_kernel", case)
        grad_h, grad_cell = case.gradients()
        for name, above in (("backward", grad_h), ("h_unused", None)):
            with six.counting() as counts:
                probe.call("pointwise_backward", above, grad_cell, z, new_cell, [False, True])
            found[name] = numbers(counts, "backward_kernel", case)
        found["saved"] = kept(six, case) // (case.B * case.S)
    return found


def numbers(counts, kernel, case):
    """How many numbers a kernel moves for each unit."""
    moved, units = counts.kernels.total("bytes", kernel, "global"), case.B * case.S * FLOAT
    require(moved > 0 and moved % units == 0, f"{kernel} moves {moved} bytes for {units // FLOAT} units")
    return moved // units


def kept(six, case):
    """Bytes saved for backward that are neither arguments of the cell nor its results."""
    inputs, cell = case.inputs(), six.cell()
    with six.counting() as counts:
        results = cell(*inputs.values())
    input_gradients(results, inputs, case.gradients())
    of_others = [inputs["input"], inputs["weights"], inputs["old_h"], results[1]]
    return counts.saved - sum(tensor.nbytes for tensor in of_others)


def calculated():
    """Times in microseconds and nanoseconds, and instructions for each unit, at the speed of a copy."""
    copy, bytes_a_unit = GPU["copy"], 6 * FLOAT
    issued = GPU["multiprocessors"] * GPU["threads"] * GPU["clock"]
    return {
        "least": 8192 * 4096 * bytes_a_unit / copy * 1e6,
        "instructions": issued * bytes_a_unit / copy,
        "small": 16 * 128 * bytes_a_unit / copy * 1e9,
    }
