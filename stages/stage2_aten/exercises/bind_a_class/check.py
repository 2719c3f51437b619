from pathlib import Path

import torch

from common.exercises.judge import Failure, LearnerError, Stopped, require, same, unchanged

THREADS, CALLS, OBJECTS = 4, 1000, 20  # so many, since two threads seldom meet on busy cores
BINDS_PICKLE = "py::pickle binds the two functions that copy.deepcopy and pickle need"


def check(work):
    unchanged(work, "trial.py", "It shows how the class is used; csrc/statistics.cpp is yours")
    require(
        "RunningMean" in dir(work.load("_C")),
        'the module has no RunningMean: py::class_<RunningMean>(m, "RunningMean") adds it',
    )
    trial, numbers = work.load("trial"), work.numbers()
    for name, kind in (("mean", "Tensor"), ("rows", "int")):
        found = trial.kind(name)
        require(found == kind, f"{name} is of type {found}, expected {kind}: is it bound as a property?")
        require(not trial.can_be_set(name), f"Python can set {name}, which would not change the object's state")
    for S, sizes in ((3, (5,)), (70, (1, 4, 2)), (1, (33, 3))):
        for dtype in (torch.float32, torch.float64):
            batches = [torch.randn(B, S, generator=numbers, dtype=dtype) for B in sizes]
            agree("means", trial.means(batches, S), torch.cat(batches), f"S={S}, {sizes} rows, {dtype}")
    signature = trial.doc().partition("\n")[0]  # which pybind11 writes
    require("x: " in signature, f"help(RunningMean.add) shows {signature}: name its argument")
    require(len(trial.doc().strip().splitlines()) > 1, "help(RunningMean.add) shows no docstring")
    x, more = (torch.randn(rows, 7, generator=numbers, dtype=torch.float64) for rows in (300, 4))
    for how in ("deepcopy", "pickle"):
        copies(trial, how, x, more)
        copies(trial, how, x[:0], more)
        copies(trial, how, torch.empty(2**31, 0), more[:, :0])  # more rows than an int holds, without elements
    threads(work, torch.randn(3000, 7, generator=numbers, dtype=torch.float64))


def threads(work, x):
    """No row is lost when several threads of Python add rows to one object."""
    added_by_threads = work.beside(Path(__file__).with_name("threads.py")).added_by_threads
    advice = "Does add release the GIL? Then two threads change the state at the same time"
    try:
        found = added_by_threads(x, THREADS, CALLS, OBJECTS)
    except Stopped as error:
        raise Failure(f"when several threads add rows to one object, {error}. {advice}") from None
    rows = THREADS * CALLS * len(x)
    for mean, count in found:
        is_lost = count != rows or not torch.allclose(mean, x.mean(0))
        require(not is_lost, f"when several threads add rows to one object, some are lost. {advice}")


def agree(what, found, rows, case):
    """Raises `Failure` unless mean and number of rows are those of all rows [N,S]."""
    require(found["rows"] == len(rows), f"{what}: rows is {found['rows']}, expected {len(rows)} ({case})")
    same(f"mean of {what}", found["mean"], rows.double().mean(0), case)


def copies(trial, how, x, more):
    """A copy has the state of the object, and what is added to it does not change the object."""
    try:
        one, another = trial.copied(x, how, more)
    except LearnerError as error:
        if "pickle" in str(error):
            raise Failure(f"{how}: {str(error).splitlines()[0]}\n{BINDS_PICKLE}") from None
        if len(x) >= 2**31:
            said = f"{how} of an object with {len(x)} rows: {str(error).splitlines()[0]}"
            raise Failure(f"{said}\nrows is an int64_t, and does not fit into an int") from None
        raise
    case = f"an object with {len(x)} rows, {how}, and {len(more)} rows added to the copy"
    for what, found, rows in (("the object", one, x), ("its copy", another, torch.cat([x, more]))):
        if len(rows):  # without rows, the mean is NaN
            agree(what, found, rows, case)
