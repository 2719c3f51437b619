"""What a check.py works with: `Work`, the learner's side, and comparisons that say what is wrong.

from common.exercises.judge import Failure, agree, cases, same

def check(work):
agree(work.cell(), cases(work))
"""

from __future__ import annotations

import configparser
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor

from .. import build, counts, emulate, reference
from ..case import Case, backward, expected, tolerance
from ..check import fresh_seed
from ..errors import UserError
from . import diagnosis, process
from .exercise import Exercise
from .process import LearnerError, Process, Stopped
from .variants import ANSWERS, read_answers

__all__ = ["Case", "Failure", "LearnerError", "Stopped", "Work", "agree", "cases", "refused", "require", "same"]

SMALL = (3, 5, 70)  # B, I, S: two warps and a rest
SIZES = (SMALL, (1, 4, 33), (5, 3, 1), (2, 1, 300))


class Failure(AssertionError):
    """The exercise is not solved, and this is what the learner is told."""


@dataclass
class Counts:
    """What was counted between `with work.counting() as counted:` and its end."""

    calls: dict[str, int] = field(default_factory=dict)  # of ATen, by name, those from C++ too
    saved: int = 0  # bytes of the storages that autograd keeps for backward
    kernels: counts.Counted | None = None  # on the emulator: common/counts.py

    @property
    def all_calls(self) -> int:
        """How often ATen was called, views aside."""
        views = ("view", "t", "slice", "split", "chunk", "narrow", "expand", "detach", "select", "unsqueeze", "alias",
                 "transpose", "as_strided", "_unsafe_view", "squeeze", "permute")  # fmt: skip
        return sum(number for name, number in self.calls.items() if name.partition(".")[0] not in views)


@dataclass(frozen=True)
class Ran:
    """A program that was run: its status (None when its time was up), what it printed, and what it counted."""

    status: int | None
    output: str
    counted: counts.Counted | None = None


class Work:
    """A learner's folder while it is checked. The learner's code runs in a process of its own (process.py)."""

    def __init__(
        self,
        exercise: Exercise,
        folder: Path,
        target: str | None = None,
        seconds: float | None = None,
        seed: int | None = None,
        confine: process.Confine | None = None,
    ) -> None:
        self.exercise, self.folder, self.confine = exercise, folder, confine
        self.seconds = seconds or exercise.seconds
        self.seed = fresh_seed() if seed is None else seed
        self.target = target or default_target(exercise)
        self.process: Process | None = None
        self.loaded = False
        self.built: Path | None = None
        self.printed = ""

    # A module ------------------------------------------------------------------------------------------------

    def cell(self, module: str = "lltm", name: str = "lltm") -> Function:
        """The learner's cell, called like any stage's: gradients go through the learner's backward."""
        return getattr(self.load(module), name)

    def load(self, module: str = "lltm") -> Module:
        """A module of the folder, such as `lltm`, or `_C` for the extension itself; C++ is built first."""
        self.start()
        if not self.loaded:
            library = str(self.library()) if self.has_cpp else None
            try:
                self.process.ask("load", library=library)
            except LearnerError as error:  # a symbol that nothing defines shows only now
                said = build.readable(str(error)).replace(f"{library}: ", "")
                raise BuildFailure(f"your code builds, but does not load: {said}") from None
            self.loaded = True
        return Module(self, module)

    @property
    def has_cpp(self) -> bool:
        """Whether there is anything to build."""
        return (self.folder / "setup.py").exists()

    def library(self) -> Path:
        """The built extension. Raises `BuildFailure` with the compiler's words."""
        if self.built is None:
            place = build.BUILD / "exercises" / self.target
            try:
                self.built = build.build_folder(self.folder, self.target, place, "your code", quick=True).path
            except UserError as error:
                raise BuildFailure(str(error)) from None
        return self.built

    def start(self) -> None:
        """Starts the learner's process, which imports torch while the compiler runs."""
        if self.process is None:
            self.process = Process(self.folder, self.seconds, self.confine)

    def restart(self) -> None:
        """A fresh process: nothing that was remembered in the old one is there."""
        self.close()
        self.process, self.loaded = None, False

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the learner's process."""
        if self.process:
            self.process.close()
            self.printed = "\n".join(filter(None, [self.printed, self.process.printed.text]))

    @contextlib.contextmanager
    def counting(self) -> Iterator[Counts]:
        """Counts ATen's calls, bytes saved for backward and what kernels ask of memory, in the learner's process."""
        counted = Counts()
        self.load()
        self.process.ask("count")
        yield counted
        found = self.process.ask("counted")
        counted.calls, counted.saved = found["calls"], found["saved"]
        if found["kernels"]:
            counted.kernels = counts.Counted()
            counts.fill(counted.kernels, json.loads(found["kernels"]), self.folder)

    def ours(self) -> Work:
        """The same for the stage's own sources, in another process: to measure, or to time beside. Close it after."""
        return Work(self.exercise, self.exercise.source.folder, self.target, self.seconds, self.seed)

    def case(self, B: int, I: int, S: int, **changes: object) -> Case:
        """A call of the cell with fresh numbers, on the device of this target."""
        return Case(B, I, S, **{"seed": self.seed, "device": self.device, **changes})

    @property
    def device(self) -> str:
        """Where tensors live."""
        return "cuda" if self.target == "cuda" else "cpu"

    def numbers(self) -> torch.Generator:
        """A generator with this check's seed, for fresh values of one's own."""
        return torch.Generator().manual_seed(self.seed)

    # Programs ------------------------------------------------------------------------------------------------

    def program(self, file: str, *arguments: str, counting: bool = False, **variables: str) -> Ran:
        """Builds a CUDA program with its own `main` for the emulator and runs it. Its report follows its output."""
        with tempfile.TemporaryDirectory(prefix="program-", dir=_made(build.BUILD)) as work:
            try:
                program = emulate.build(file, Path(work), self.folder)
            except UserError as error:
                raise BuildFailure(str(error)) from None
            path = Path(work) / "counts.json"
            variables |= {"EMULATOR_TIMEOUT": "0"} | ({"EMULATOR_COUNTS": str(path)} if counting else {})
            command = [str(program), *arguments]
            status, output = process.run(command, self.folder, self.seconds, self.confine, **variables)
            counted = counts.read(path, self.folder) if path.exists() else None
        return Ran(status, output, counted)

    def python(self, *arguments: str, **variables: str) -> Ran:
        """Runs `python ARGUMENTS` in the learner's folder."""
        return Ran(*process.run([sys.executable, *arguments], self.folder, self.seconds, self.confine, **variables))

    # Answers -------------------------------------------------------------------------------------------------

    def text(self, file: str) -> str:
        """A file of the folder. Raises `Failure` when it is not there."""
        try:
            return (self.folder / file).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}. `make reset` gives you a fresh one and keeps yours") from None

    def answers(self) -> dict[str, str]:
        """What the learner wrote in answers.ini, by question. Raises `Failure` for one that is open."""
        try:
            found = read_answers(self.text(ANSWERS))
        except configparser.Error as error:
            raise Failure(f"{ANSWERS} cannot be read: {str(error).splitlines()[0]}") from None
        for question in self.exercise.questions:
            if not found.get(question.name.lower()):
                raise Failure(f"{question.name} has no answer yet: write one behind its = sign in {ANSWERS}")
        return found

    def number(self, name: str) -> int:
        """The answer to a question, which is a whole number."""
        said = self.answers()[name.lower()]
        try:
            return int(said.replace(",", "").replace("_", ""))
        except ValueError:
            raise Failure(f"{name} = {said}: a whole number is wanted") from None


class BuildFailure(Failure):
    """The learner's code does not build."""


class Module:
    """A module in the learner's process: `module.function(...)` calls there."""

    def __init__(self, work: Work, name: str) -> None:
        self._work, self._name = work, name

    def __getattr__(self, name: str) -> Function:
        return Function(self._work, self._name, name)

    def __dir__(self) -> list[str]:
        return self._work.process.ask("names", module=self._name)


class Function:
    """A function in the learner's process. What it returns is here; gradients are asked of its backward there."""

    def __init__(self, work: Work, module: str, name: str) -> None:
        self.work, self.module, self.name = work, module, name
        self.may_change_arguments = False
        self.same: list[int | None] = []  # for each tensor of the last result: which argument it is, if one

    @property
    def doc(self) -> str:
        """Its docstring; pybind11 puts the signature there."""
        return self.work.process.ask("doc", module=self.module, name=self.name)

    def __call__(self, *arguments: object, **keywords: object) -> object:
        tensors = [one for one in _flat([list(arguments), list(keywords.values())]) if isinstance(one, Tensor)]
        found = self.work.process.ask(
            "call",
            module=self.module,
            name=self.name,
            arguments=list(arguments),
            keywords=keywords,
            may_change=self.may_change_arguments,
        )
        if found["changed"]:
            which = ", ".join(f"number {k + 1}" for k in found["changed"])
            raise Failure(
                f"{self.name} changes what it is given (tensor {which} of its arguments): others still need it"
            )
        self.same = found["same"]
        value = found["value"]
        needing = [one for one in tensors if one.requires_grad]
        if found["graph"] is None or not needing or not torch.is_grad_enabled():
            return _map(value, lambda tensor: tensor.detach())
        outputs = [one for one in _flat(value) if isinstance(one, Tensor)]
        attached = iter(_Attach.apply(self.work.process, found["graph"], outputs, *needing))
        return _map(value, lambda tensor: next(attached))


class _Attach(torch.autograd.Function):
    """Ties results of the learner's process to the arguments here, so that backward is asked for there."""

    @staticmethod
    def forward(ctx, process, graph, outputs, *inputs):
        ctx.process, ctx.graph = process, graph
        ctx.set_materialize_grads(False)
        results = tuple(output.detach() for output in outputs)
        ctx.mark_non_differentiable(*(r for r, o in zip(results, outputs, strict=True) if not o.requires_grad))
        return results

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        return None, None, None, *ctx.process.ask("backward", graph=ctx.graph, gradients=list(gradients))


# Comparisons ------------------------------------------------------------------------------------------------------


def cases(work: Work, sizes: Iterable[tuple[int, int, int]] = SIZES) -> list[Case]:
    """Calls of the cell that together find what goes wrong: sizes, both dtypes, layouts, gradients, extremes."""
    found = [work.case(*size, dtype=dtype) for size in sizes for dtype in (torch.float32, torch.float64)]
    found += [work.case(*SMALL, dtype=torch.float64, layout=layout) for layout in ("transposed", "sliced", "offset")]
    found += [work.case(*SMALL, dtype=torch.float64, grads=grads) for grads in ("h only", "cell only", "expanded")]
    found.append(work.case(*SMALL, bias_shift=1e4))
    # Other numbers in each, so that a result that was kept from the one before is wrong.
    return [replace(case, seed=case.seed + 10 * k) for k, case in enumerate(found)]


def agree(cell: Callable[..., tuple[Tensor, Tensor]], these: Iterable[Case], gradients: bool = True) -> None:
    """Raises `Failure`, with what it looks like, when outputs or gradients of a case are not the reference's."""
    before: dict[str, Tensor] = {}
    for case in these:
        inputs, grads = case.inputs(), case.gradients()
        results = cell(*inputs.values())
        if not (isinstance(results, tuple | list) and len(results) == 2):
            raise Failure(f"the cell returns {_brief(results)}, expected the pair (new_h, new_cell)")
        got, want = dict(zip(("new_h", "new_cell"), results, strict=True)), expected(case)
        _all_same(case, got, {name: want[name] for name in got}, before)
        if gradients:
            for name, result, grad in zip(("new_h", "new_cell"), results, grads, strict=True):
                if grad is not None and not result.requires_grad:
                    raise Failure(f"{name} has no gradient: autograd does not know how it was computed ({case})")
            got |= backward(results, inputs, grads)
            _all_same(case, got, {name: want[name] for name in GRADIENTS if name in want}, before)
        before = {name: tensor for name, tensor in got.items() if tensor is not None}


# The one that says most comes first: what reaches the others went through it.
GRADIENTS = ("d_old_cell", "d_bias", "d_weights", "d_old_h", "d_input")


def _all_same(
    case: Case, got: Mapping[str, object], want: Mapping[str, Tensor], before: Mapping[str, Tensor]
) -> None:
    """Raises `Failure` for the first of `want` that differs, with a word on the others."""
    wrong = [name for name in want if diagnosis.difference("", got[name], want[name], case.dtype, tolerance(case))]
    if not wrong:
        return
    name, others = wrong[0], wrong[1:]
    try:
        same(name, got[name], want[name], case, suspects=suspects(case, name, before))
    except Failure as failure:
        lines = [str(failure)]
        if name == "d_bias" and case.S > 1:
            lines += _thirds(got[name], want[name], tolerance(case))
        right = [one for one in want if one not in wrong]
        lines += [f"Wrong too: {', '.join(others)}"] if others else []
        lines += [f"Right: {', '.join(right)}"] if right else []
        raise Failure("\n".join(lines)) from None


def _thirds(got: object, want: Tensor, tolerance: float) -> list[str]:
    """Which gates' thirds of d_bias, the sum of d_z over the batch, are wrong."""
    if not isinstance(got, Tensor) or got.shape != want.shape:
        return []
    gates = ("input gate", "output gate", "candidate cell")
    parts = zip(gates, got.detach().chunk(3), want.chunk(3), strict=True)
    wrong = [gate for gate, g, w in parts if diagnosis.difference("", g, w, None, tolerance)]
    return (
        [f"Of its thirds, those of the {' and the '.join(wrong)} are wrong, the others right"]
        if len(wrong) < 3
        else []
    )


def suspects(case: Case, name: str, before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What an output or a gradient of the cell might be instead, under what one says then."""
    inputs = {other: tensor.detach() for other, tensor in case.inputs().items()}
    grad_h, grad_cell = (torch.zeros(case.B, case.S) if grad is None else grad for grad in case.gradients())
    found = {f"this is {other}, an argument, unchanged": tensor for other, tensor in inputs.items()}
    found |= {"this is grad_h, unchanged": grad_h, "this is grad_cell, unchanged": grad_cell}
    found |= {f"this should be {other}": tensor for other, tensor in expected(case).items() if other != name}
    if name in before:
        found["this is the result of the call before: a buffer that was not written again"] = before[name]
    for words, order in (
        ("the input gate and the output gate are exchanged", (1, 0, 2)),
        ("the input gate and the candidate cell are exchanged", (2, 1, 0)),
        ("the output gate and the candidate cell are exchanged", (0, 2, 1)),
    ):
        swapped = inputs | {key: torch.cat([inputs[key].chunk(3)[k] for k in order]) for key in ("weights", "bias")}
        found[words] = dict(zip(("new_h", "new_cell"), reference.forward(**swapped), strict=True)).get(name)
    if name.startswith("d_"):
        for words, given in (
            ("grad_cell is not used: new_cell is a result, too", (grad_h, torch.zeros_like(grad_cell))),
            (
                "grad_h is not used: new_cell gets a gradient through new_h, too",
                (torch.zeros_like(grad_h), grad_cell),
            ),
        ):
            found[words] = reference.backward(*given, **inputs)[name]
    return {words: tensor for words, tensor in found.items() if tensor is not None}


def same(
    name: str,
    got: object,
    want: Tensor,
    case: Case | str = "",
    dtype: torch.dtype | None = None,
    tolerance_: float | None = None,
    suspects: Mapping[str, Tensor] | None = None,
) -> None:
    """Raises `Failure` when a tensor is not what it should be: where, by how much, and what it looks like.

    `case` says what was called: sizes, dtype. `suspects`: see `diagnosis.difference`.
    """
    if isinstance(case, Case):
        dtype, tolerance_ = case.dtype, tolerance_ or tolerance(case)
    message = diagnosis.difference(name, got, want, dtype, tolerance_, suspects)
    if message:
        first, *others = message.splitlines()
        raise Failure("\n".join([f"{first} ({case})" if str(case) else first, *others]))


def require(condition: bool, message: str) -> None:
    """Raises `Failure` with the message unless the condition holds."""
    if not condition:
        raise Failure(message)


def refused(function: Callable, *arguments: object, names: Sequence[str] = (), **keywords: object) -> str:
    """The message with which arguments are refused. Raises `Failure` when they are not, or `names` are not in it."""
    given = ", ".join(_brief(one) for one in [*arguments, *keywords.values()])
    try:
        function(*arguments, **keywords)
    except LearnerError as error:
        said = str(error).partition("\n")[0]
        if names and not any(name in said for name in names):
            raise Failure(f"{given} is refused, but the message {said!r} names none of {', '.join(names)}") from None
        return said
    raise Failure(f"not refused: {given}")


def default_target(exercise: Exercise) -> str:
    """What this machine builds the exercise's stage for: a GPU if there is one, else the emulator; host for C++."""
    return build.choose(exercise.source, None)


def _brief(value: object) -> str:
    """A value in few words."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value!r:.60}"


def _flat(value: object) -> list:
    """The leaves of a tree."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in _flat(one)] if isinstance(value, list | tuple) else [value]


def _map(value: object, change: Callable[[Tensor], Tensor]) -> object:
    """The tree with each tensor changed."""
    if isinstance(value, dict):
        return {key: _map(one, change) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map(one, change) for one in value)
    return change(value) if isinstance(value, Tensor) else value


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
