"""The test harness for stages: everything a stage must pass, on every device and dtype that it supports.

`check_stage(2)` runs it for a stage and returns a row per check. Most checks are cases: calls that must agree with
the reference. The others, in `CHECKS`, are functions of a `Subject` that raise AssertionError with a message for the
learner.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from .. import stages
from ..build import modules, targets
from ..cell.case import GRADS, INPUTS, LAYOUTS, Case, Cell, difference, fresh_seed, input_gradients, outputs
from ..errors import UserError

__all__ = ["CHECKS", "Case", "Result", "Subject", "agreement_cases", "check_stage", "check_subject"]

# B, I, S: a single row, a single unit, sizes that are no multiple of a warp, more units than a block has threads,
# more rows than the 65535 blocks that a grid may have in y, and an empty batch.
CHECKED_SIZES = ((3, 5, 70), (1, 4, 33), (5, 3, 1), (2, 1, 1025), (65537, 1, 2), (0, 4, 8), (16, 32, 128))
SMALL_SIZE = (3, 5, 70)


@dataclass(frozen=True)
class Subject:
    """The subject of a check: one stage's cell, on one device, in one dtype."""

    stage: int
    target: str
    device: str
    dtype: torch.dtype
    lltm: Cell
    seed: int

    def case(self, B: int, I: int, S: int, **changes: object) -> Case:
        """A case of this subject's device and dtype."""
        return Case(B, I, S, **{"dtype": self.dtype, "device": self.device, "seed": self.seed, **changes})

    def agree(self, case: Case) -> None:
        """Raises AssertionError if outputs or gradients differ from the reference."""
        message = difference(case, outputs(self.lltm, case))
        assert message is None, message


@dataclass(frozen=True)
class Result:
    """One row of a check: `outcome` is "passed", "failed" or "not run"; `message` says why when not passed."""

    stage: int
    target: str
    device: str
    dtype: str
    name: str
    outcome: str
    message: str
    seconds: float


def sizes_for(subject: Subject) -> list[tuple[int, int, int]]:
    """All sizes. On the emulator, the two largest are for float32 alone; other dtypes use smaller sizes instead.

    One dtype is enough to show that a kernel handles more rows than a grid has blocks in y (65535) and more units
    than the largest block has threads (1024). The dtypes differ in how many units a block covers, at most 256: 32
    lanes with vectors of 8.
    """
    if subject.target != "emulator" or subject.dtype == torch.float32:
        return list(CHECKED_SIZES)
    return [(min(B, 100), I, min(S, 257)) for B, I, S in CHECKED_SIZES]


def size_cases(subject: Subject) -> list[Case]:
    """A case for each size. On the emulator, d_weights of more than 1024 units is left to a smaller size.

    It has 3 S (S + I) numbers, which take the emulator seconds. The kernels that a stage may have for it divide it
    into tiles of far fewer units than 257, so they do at 257 what they do at 1025.
    """
    cases = []
    for B, I, S in sizes_for(subject):
        if subject.target == "emulator" and S > 1024:
            others = tuple(name for name in INPUTS if name != "weights")
            cases += [subject.case(B, I, S, requires_grad=others), subject.case(B, I, 257)]
        else:
            cases.append(subject.case(B, I, S))
    return cases


def agreement_cases(subject: Subject) -> dict[str, list[Case]]:
    """The calls whose outputs and gradients must agree with the reference, by the name of what they test."""
    wanted = [(name,) for name in INPUTS] + [("weights", "bias"), ()]
    return {
        "sizes": size_cases(subject),
        "layouts of inputs and gradients": [subject.case(*SMALL_SIZE, layout=layout) for layout in LAYOUTS],
        "gradients for some outputs": [subject.case(*SMALL_SIZE, grads=grads) for grads in GRADS],
        "gradients of some inputs": [subject.case(*SMALL_SIZE, requires_grad=names) for names in wanted],
        "saturated gates": [subject.case(*SMALL_SIZE, bias_shift=1e4)],
    }


def not_finite(subject: Subject) -> None:
    """NaN and infinity appear in the same places as with stage 1's equations, forward and backward."""
    equations = modules.load_stage(1).equations
    for bad in (float("nan"), float("inf"), -float("inf")):
        for name in INPUTS:
            seen = [_kinds(cell, subject, name, bad) for cell in (equations, subject.lltm)]
            for key in seen[0]:
                assert torch.equal(seen[0][key], seen[1][key]), (
                    f"{bad} in {name}: {key} is not NaN or infinite in the same places as with stage 1's equations"
                )


def _kinds(cell: Cell, subject: Subject, name: str, bad: float) -> dict[str, Tensor]:
    """For each output and gradient: 0 where finite, 1 where NaN, 2 and 3 where plus and minus infinity."""
    case = subject.case(*SMALL_SIZE)
    inputs = case.inputs()
    inputs[name].data.view(-1)[1] = bad
    results = cell(*inputs.values())
    got = dict(zip(("new_h", "new_cell"), results, strict=True)) | input_gradients(results, inputs, case.gradients())
    return {key: t.isnan().int() + 2 * t.isposinf().int() + 3 * t.isneginf().int() for key, t in got.items()}


def gradcheck(subject: Subject) -> None:
    """torch.autograd.gradcheck in float64: compares the gradient with finite differences."""
    for size, layout in (((2, 3, 4), "contiguous"), ((3, 1, 5), "transposed"), ((1, 2, 1), "sliced")):
        case = subject.case(*size, dtype=torch.float64, layout=layout)
        try:
            torch.autograd.gradcheck(subject.lltm, tuple(case.inputs().values()))
        except GradcheckError as error:
            first = str(error).strip().partition("\n")[0]
            raise AssertionError(f"gradcheck ({case}): {first}") from None


def second_derivatives(subject: Subject) -> None:
    """Second derivatives are right, or refused with an error; never silently wrong."""
    inputs = tuple(subject.case(2, 3, 4, dtype=torch.float64).inputs().values())
    results = subject.lltm(*inputs)
    # The results are squared, so that grad_h and grad_cell require gradients: once_differentiable tests only these.
    loss = sum(result.square().sum() for result in results)
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    try:
        sum(gradient.square().sum() for gradient in first).backward()
    except RuntimeError as error:
        assert "once_differentiable" in str(error), f"second derivatives fail with an unclear error: {error}"
        return
    try:
        torch.autograd.gradgradcheck(subject.lltm, inputs)
    except GradcheckError:
        raise AssertionError(
            "second derivatives are silently wrong; make them right or refuse them with once_differentiable"
        ) from None


def refusals(subject: Subject) -> None:
    """Invalid arguments are refused with an error that names the argument."""
    B, I, S = SMALL_SIZE
    good = {name: tensor.detach() for name, tensor in subject.case(*SMALL_SIZE).inputs().items()}
    other_dtype = torch.float32 if subject.dtype == torch.float64 else torch.float64
    wrong_shapes = {
        "input": (B, I + 1), "weights": (3 * S, S), "bias": (1,), "old_h": (B + 1, S), "old_cell": (1, S)
    }  # fmt: skip
    for name, tensor in good.items():
        # An input of another width does not match the weights; the error may name either of the two.
        names = ("input", "weights") if name == "input" else (name,)
        _refused(subject, {**good, name: tensor.new_zeros(wrong_shapes[name])}, names, "shape")
        _refused(subject, {**good, name: tensor[None]}, (name,), "shape")
        names = tuple(good) if name == "input" else (name,)  # then all others differ from the input
        _refused(subject, {**good, name: tensor.to(other_dtype)}, names, "dtype")
        _refused(subject, {**good, name: tensor.to("meta")}, names, "is on")
    _refused(subject, {name: tensor.long() for name, tensor in good.items()}, tuple(good), "dtype")


def _refused(subject: Subject, arguments: dict[str, Tensor], names: tuple[str, ...], what: str) -> None:
    given = ", ".join(f"{name} {t.dtype} {tuple(t.shape)} on {t.device}" for name, t in arguments.items())
    try:
        subject.lltm(*arguments.values())
    except RuntimeError as error:
        message = str(error).partition("\n")[0]
        assert what in message, f"{message!r} does not say {what!r}; given {given}"
        assert any(f"lltm: {name} " in message for name in names), f"{message!r} names none of {names}"
        return
    raise AssertionError(f"not refused: {given}")


def side_stream(subject: Subject) -> None:
    """The work runs on the current stream, so it waits for inputs that are written late on a side stream."""
    case = subject.case(*SMALL_SIZE)
    inputs = case.inputs()
    late = {name: torch.zeros_like(tensor).requires_grad_() for name, tensor in inputs.items()}
    torch.cuda.synchronize(subject.device)
    with torch.cuda.device(subject.device), torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(100_000_000)  # about 50 ms in which a kernel on another stream would read zeros
        for name, tensor in late.items():
            tensor.data.copy_(inputs[name].data)
        results = subject.lltm(*late.values())
        got = dict(zip(("new_h", "new_cell"), results, strict=True)) | input_gradients(
            results, late, case.gradients()
        )
        torch.cuda.current_stream().synchronize()
    message = difference(case, got)
    assert message is None, f"on a side stream: {message}"


def second_device(subject: Subject) -> None:
    """Tensors on GPU 1 while GPU 0 is the current one."""
    elsewhere = replace(subject, device="cuda:1")
    with torch.cuda.device(0):
        elsewhere.agree(elsewhere.case(*SMALL_SIZE))


CHECKS: tuple[Callable[[Subject], None], ...] = (
    not_finite,
    gradcheck,
    second_derivatives,
    refusals,
    side_stream,
    second_device,
)


def cannot_run(check: Callable[[Subject], None], subject: Subject) -> str | None:
    """Why a check cannot run on this machine or target; None if it can."""
    on_gpu = subject.device.startswith("cuda")
    if check is side_stream and not on_gpu:
        return "only CUDA tensors use streams"
    if check is second_device and not (on_gpu and torch.cuda.device_count() > 1):
        return "needs CUDA tensors and two GPUs"
    return None


def make_subject(number: int, target: str, device: str, dtype: torch.dtype, seed: int | None = None) -> Subject:
    """One stage's cell, built and loaded. Without a seed, each call draws one; failures name it."""
    seed = fresh_seed() if seed is None else seed
    return Subject(number, target, device, dtype, modules.load_stage(number, target).lltm, seed)


def make_subjects(number: int, target: str | None = None, seed: int | None = None) -> list[Subject]:
    """Every device and dtype of a stage on a target, by default the best that this machine has.

    They share one seed: the given one, or a new one.
    """
    stage = stages.get_stage(number)
    if stage.kind != "cell":
        raise UserError(f"stage {number} is not a cell; there is nothing for this harness to check")
    target = targets.choose_target(stage, target)
    devices = targets.devices_of(stage, target)
    seed = fresh_seed() if seed is None else seed
    dtypes = [getattr(torch, name) for name in stage.dtypes]
    return [make_subject(number, target, device, dtype, seed) for device in devices for dtype in dtypes]


def check_stage(number: int, target: str | None = None) -> list[Result]:
    """Runs every check on every subject of a stage; returns one row for each."""
    return [result for one in make_subjects(number, target) for result in check_subject(one)]


def check_subject(subject: Subject) -> list[Result]:
    """Runs every check on one subject; returns one row for each."""

    def agree(group: list[Case]) -> Callable[[], None]:
        return lambda: [subject.agree(case) for case in group]

    rows = [_row(subject, name, agree(group)) for name, group in agreement_cases(subject).items()]
    for one in CHECKS:
        name = one.__name__.replace("_", " ")
        rows.append(_row(subject, name, partial(one, subject), cannot_run(one, subject)))
    return rows


def _row(subject: Subject, name: str, run: Callable[[], None], reason: str | None = None) -> Result:
    """Runs one check; with a `reason` not to run it, returns a row with that reason."""
    outcome, message, start = "passed", "", time.perf_counter()
    if reason:
        outcome, message = "not run", reason
    else:
        try:
            run()
        except AssertionError as error:
            outcome, message = "failed", str(error)
        except Exception as error:  # any exception counts as a failure of the stage
            outcome, message = "failed", f"{type(error).__name__}: {error}"
    dtype = str(subject.dtype).removeprefix("torch.")
    seconds = time.perf_counter() - start
    return Result(subject.stage, subject.target, subject.device, dtype, name, outcome, message, seconds)
