"""The pointwise part alone on a GPU: how long its kernels run, and how near to a copy's speed they come.

Durations are those of the kernels themselves, as torch.profiler (CUPTI) reports them: no Python, no launch and no gap
is in them. Before every pass a copy of half a GiB goes through. It leaves nothing of the pass before in the cache,
its turn separates one pass from the next in the profile, and its own duration gives the speed to be compared with.
A copy reads as much as it writes; a kernel that reads more can be faster, for memory reads faster than it writes. So
a sum of two such tensors into a third is timed as well: nothing is faster than the faster of the two.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from . import console, reference, results
from .build import load
from .case import Case, nan_in_fresh_memory, tensor_difference, tolerance
from .contenders import WrongResult, triton_module
from .errors import UserError
from .stages import Stage
from .trace import events_of, occupancy_of, split

SIZES = ((8192, 4096), (4096, 1024))  # B, S
PASSES = ("forward", "backward")
WARM_UP_ROUNDS, ROUNDS = 10, 30
COPIED = 2**29  # bytes: many times any cache
ATEN = torch.ops.aten


@dataclass(frozen=True)
class Given:
    """What one call gets: z (B, 3S), and old_cell, grad_h and grad_cell, (B, S) each; and its case, for messages."""

    case: Case
    z: Tensor
    old_cell: Tensor
    grad_h: Tensor
    grad_cell: Tensor


@dataclass(frozen=True)
class Pointwise:
    """The pointwise part of a contender. `forward(given)` returns new_h, new_cell and what `backward` wants to have.

    `backward(given, forward's result)` returns d_z and d_old_cell.
    """

    name: str
    forward: Callable[[Given], tuple[Tensor, ...]]
    backward: Callable[[Given, tuple[Tensor, ...]], tuple[Tensor, Tensor]]
    stage: Stage | None = None


# Who is measured ----------------------------------------------------------------------------------------------


def pointwise(z: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The part of the cell behind the matrix product, as stage 1 writes it."""
    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_g) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def peers() -> list[Pointwise]:
    """Eager PyTorch, the same function under torch.compile, and Triton where it is there."""

    def differentiated(name: str, function: Callable) -> Pointwise:
        def forward(given: Given) -> tuple[Tensor, ...]:
            z, old_cell = given.z.detach().requires_grad_(), given.old_cell.detach().requires_grad_()
            return *function(z, old_cell), z, old_cell

        def backward(given: Given, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            new_h, new_cell, *leaves = results
            return torch.autograd.grad((new_h, new_cell), leaves, (given.grad_h, given.grad_cell))

        return Pointwise(name, forward, backward)

    compiled = torch.compile(pointwise, dynamic=False)
    found = [differentiated("eager", pointwise), differentiated("torch.compile", compiled)]
    return [*found, of_triton(module)] if (module := triton_module()) else found


def of_triton(module: ModuleType) -> Pointwise:
    """The kernels in Triton, which keep z where stages 3 to 5 keep the gates."""

    def forward(given: Given) -> tuple[Tensor, ...]:
        return module.pointwise(given.z, given.old_cell)

    def backward(given: Given, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        return module.pointwise_backward(given.grad_h, given.grad_cell, given.z, results[1])

    return Pointwise("Triton", forward, backward)


class WithoutProducts(TorchDispatchMode):
    """Answers the cell's matrix products with tensors that are there already, so that only its kernels are left."""

    def __init__(self, X: Tensor, z: Tensor) -> None:
        super().__init__()
        self.answers = {ATEN.cat.default: X, ATEN.addmm.default: z, ATEN.mm.default: X}
        self.asked: dict[object, tuple] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in self.answers:
            self.asked[function] = args
            return self.answers[function]
        return function(*args, **(kwargs or {}))


def pointwise_of(stage: Stage, target: str = "cuda") -> Pointwise:
    """The kernels of a stage: its operators, or the forward and backward of its binding."""
    module = load(stage.number, target)
    if hasattr(module, "operators"):
        return of_operators(f"stage {stage.number}", module.operators, stage)
    return of_binding(stage, module._C)


def of_operators(name: str, operators: ModuleType, stage: Stage | None = None, needs_bias: bool = False) -> Pointwise:
    """The operators for the pointwise part, as they are, with the sum for the bias where it is asked for.

    Where gates are an output of the first, they are an input of the second, or else z is.
    """
    keeps_gates = len(operators.pointwise.default._schema.returns) == 3
    asked = [argument.name for argument in operators.pointwise_backward.default._schema.arguments]
    needs = ((needs_bias, True),) if "needs" in asked else ()  # of d_bias and d_old_cell

    def forward(given: Given) -> tuple[Tensor, ...]:
        return operators.pointwise(given.z, given.old_cell)

    def backward(given: Given, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        new_cell, saved = results[1], results[2] if keeps_gates else given.z
        d_z, *_, d_old_cell = operators.pointwise_backward(given.grad_h, given.grad_cell, saved, new_cell, *needs)
        return d_z, d_old_cell

    return Pointwise(name, forward, backward, stage)


def small_cell_of(stage: Stage, target: str = "cuda") -> Pointwise:
    """The whole cell of a stage that has kernels for small ones, as the two passes of a `Pointwise`.

    Two columns of z are the input, grad_h is old_h; weights and bias are numbers between -1 and 1.
    """
    operators = load(stage.number, target).operators

    def arguments(given: Given) -> tuple[Tensor, ...]:
        S, like = given.old_cell.size(1), {"device": given.z.device, "dtype": given.z.dtype}
        weights = torch.linspace(-1, 1, 3 * S * (S + 2), **like).reshape(3 * S, S + 2)
        return given.z[:, :2], weights, torch.linspace(-1, 1, 3 * S, **like), given.grad_h

    def forward(given: Given) -> tuple[Tensor, ...]:
        return operators.cell(*arguments(given), given.old_cell)

    def backward(given: Given, results: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (_, new_cell, z), (input, weights, _, old_h) = results, arguments(given)
        return operators.cell_backward(given.grad_h, given.grad_cell, input, weights, old_h, new_cell, z, [True] * 5)

    return Pointwise(f"stage {stage.number}, small", forward, backward, stage)


def launcher_of(stage: Stage, names: Sequence[str], target: str) -> Pointwise:
    """Who launches these two kernels of a stage: its pointwise part, or a small cell."""
    return (small_cell_of if tuple(names) == stage.small_kernels else pointwise_of)(stage, target)


def of_binding(stage: Stage, binding: ModuleType) -> Pointwise:
    """What is left of a binding's forward and backward without their matrix products."""

    def placeholders(given: Given) -> tuple[Tensor, ...]:
        """Input, weights, bias, old_h and X of one feature: right in shape, with a number that nobody reads."""
        (B, S), one = given.old_cell.shape, given.z.new_empty(())
        return tuple(one.expand(shape) for shape in ((B, 1), (3 * S, S + 1), (3 * S,), (B, S), (B, S + 1)))

    def forward(given: Given) -> tuple[Tensor, ...]:
        *arguments, X = placeholders(given)
        with WithoutProducts(X, given.z):
            new_h, new_cell, _, gates = binding.forward(*arguments, given.old_cell)
        return new_h, new_cell, gates

    def backward(given: Given, results: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        _, weights, _, _, X = placeholders(given)
        _, new_cell, gates = results
        with WithoutProducts(X, given.z) as products:
            needs = (True, False, False, False, True)  # the product for d_input is how d_z comes to light
            *_, d_old_cell = binding.backward(given.grad_h, given.grad_cell, weights, X, gates, new_cell, needs)
        d_z, _ = products.asked[ATEN.mm.default]
        return d_z, d_old_cell

    return Pointwise(f"stage {stage.number}", forward, backward, stage)


def given_sets(B: int, S: int, device: str, count: int = 3) -> list[Given]:
    """A few sets of inputs of one size, which the calls take in rotation."""
    sets = []
    for seed in range(count):
        numbers = torch.Generator(device).manual_seed(seed)
        shapes = ((B, 3 * S), (B, S), (B, S), (B, S))
        tensors = [torch.randn(shape, generator=numbers, device=device) for shape in shapes]
        sets.append(Given(Case(B, 0, S, device=device, seed=seed), *tensors))
    return sets


def check(
    contender: Pointwise, given: Given, results: Sequence[Tensor], gradients: Sequence[Tensor], when: str
) -> None:
    """Raises `WrongResult` unless both passes agree with the float64 reference."""
    wanted = (
        *reference.pointwise_forward(given.z, given.old_cell),
        *reference.pointwise_backward(given.grad_h, given.grad_cell, given.z, given.old_cell),
    )
    names, got = ("new_h", "new_cell", "d_z", "d_old_cell"), (*results[:2], *gradients)
    for name, tensor, want in zip(names, got, wanted, strict=True):
        problem = tensor_difference(name, tensor.detach(), want, given.case, tolerance(given.case))
        if problem:
            raise WrongResult(f"{contender.name} is not timed: {when}, {problem} (pointwise part, {given.case})")


# How long they run --------------------------------------------------------------------------------------------


def measure(wanted: Sequence[Stage]) -> tuple[list[dict], list[dict]]:
    """The rows of every size, printed as they come, and what could not be measured."""
    rows, not_run = [], []
    contenders = peers()
    for stage in wanted:
        try:
            contenders.append(pointwise_of(stage))
        except UserError as error:
            not_run.append(missing(f"stage {stage.number}", "all sizes", error))
    for B, S in SIZES:
        measured, missed = measure_size(contenders, B, S)
        console.say("\n" + as_table(measured) + "\n")
        rows += measured
        not_run += missed
    return rows, not_run


def measure_size(contenders: Sequence[Pointwise], B: int, S: int) -> tuple[list[dict], list[dict]]:
    """The rows of one size; a smaller batch is taken, and named, where the memory of the GPU calls for it."""
    rows_of_batch = B
    while rows_of_batch:
        try:
            with console.step(f"kernels of the pointwise part at B{rows_of_batch} S{S}"):
                rows, not_run = profiled(contenders, rows_of_batch, S)
        except WrongResult:
            raise
        except torch.cuda.OutOfMemoryError:
            rows_of_batch //= 2
        except Exception as error:  # a profiler's troubles must not cost what was measured before
            return [], [missing("every contender", f"B{B} S{S}", error)]
        else:
            if rows_of_batch != B:
                reason = f"the GPU's memory is too small; measured with B{rows_of_batch} instead"
                not_run.append(missing("every contender", f"B{B} S{S}", reason))
            return rows, not_run
        gc.collect()  # outside the handler: there the exception still holds the tensors
        torch.cuda.empty_cache()
    return [], [missing("every contender", f"B{B} S{S}", "not even B1 fits the GPU's memory")]


def missing(name: str, size: str, reason: object) -> dict[str, str]:
    """An entry of the list of what did not run."""
    first, *_ = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    return {"name": name, "device": "cuda", "what": f"kernels alone, {size}", "reason": first[:200]}


def profiled(contenders: Sequence[Pointwise], B: int, S: int) -> tuple[list[dict], list[dict]]:
    """Checks, profiles and checks again: the rows of all contenders at one size, and those that it refuses."""
    torch._dynamo.reset()
    sets = given_sets(B, S, "cuda")
    source = torch.ones(COPIED, dtype=torch.uint8, device="cuda")
    copy, third = torch.empty_like(source), torch.empty_like(source)
    last = {}

    def passes(contender: Pointwise, given: Given) -> None:
        copy.copy_(source)
        found = contender.forward(given)
        copy.copy_(source)
        last[contender.name] = given, found, contender.backward(given, found)

    able, not_run = [], []
    for contender in contenders:
        try:
            for given in sets:
                passes(contender, given)  # torch.compile compiles
                with nan_in_fresh_memory() if contender.stage else nullcontext():
                    passes(contender, given)
                check(contender, *last.pop(contender.name), "before it is timed")
        except (WrongResult, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            if contender.stage or contender.name == "eager":
                raise
            not_run.append(missing(contender.name, f"B{B} S{S}", error))
        else:
            able.append(contender)
    for rounds in (WARM_UP_ROUNDS, ROUNDS):  # the first ones under the profiler too, which settles as well
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for k in range(rounds):
                copy.copy_(source)
                torch.add(*(tensor.view(torch.float32) for tensor in (source, copy)), out=third.view(torch.float32))
                for contender in able:
                    passes(contender, sets[k % len(sets)])
            torch.cuda.synchronize()
    for contender in able:
        check(contender, *last.pop(contender.name), "after it was timed")

    copies, work = split(events_of(profiler), COPIED)
    of_round = 1 + 2 * len(able)
    expected = ROUNDS * of_round
    if len(work) != expected:
        raise UserError(f"torch.profiler reports {len(work)} passes on the GPU and {expected} were made")
    sums = [sum(event["dur"] for event in events) for events in work[::of_round]]
    # Bytes in a microsecond, in GB/s.
    speeds = 2 * COPIED / statistics.median(copies) / 1e3, 3 * COPIED / statistics.median(sums) / 1e3
    rows = []
    for k, contender in enumerate(able):
        for j, name in enumerate(PASSES):
            row = row_of(contender, name, sets[0].case, work[1 + 2 * k + j :: of_round], *speeds)
            try:
                results.possible(row)
            except UserError as error:
                not_run.append(missing(f"{row['name']}, {name}", f"B{B} S{S}", error))
            else:
                rows.append(row)
    return rows, not_run


def row_of(
    contender: Pointwise, name: str, case: Case, passes: Sequence[Sequence[dict]], copy: float, total: float
) -> dict:
    """The row of one contender and pass; `passes` are the events of each sample, the speeds those of copy and sum.

    Registers and occupancy are given where the pass is one kernel.
    """
    if not all(passes):
        raise UserError(f"torch.profiler reports no kernel for the {name} pass of {contender.name}")
    samples = [sum(event["dur"] for event in events) for events in passes]
    q1, median, q3 = (round(value, 3) for value in statistics.quantiles(samples, n=4, method="inclusive"))
    launch = passes[0][0]["args"] if len(passes[0]) == 1 else {}
    threads = block[0] * block[1] * block[2] if (block := launch.get("block")) else None
    tensors = contender.stage.pointwise_tensors[PASSES.index(name)] if contender.stage else None
    return {
        "name": contender.name,
        "stage": contender.stage.number if contender.stage else None,
        "pass": name,
        "dtype": str(case.dtype).removeprefix("torch."),
        "B": case.B,
        "S": case.S,
        "kernels": len(passes[0]),
        "median": median,
        "q1": q1,
        "q3": q3,
        "samples": len(samples),
        "bytes": tensors * case.B * case.S * case.dtype.itemsize if tensors else None,
        "copy_gb_per_second": round(copy, 1),
        "sum_gb_per_second": round(total, 1),
        "registers": launch.get("registers per thread"),
        "threads_per_block": threads,
        "occupancy": occupancy_of(launch, threads) if threads and "registers per thread" in launch else None,
    }


def as_table(rows: Sequence[dict]) -> str:
    """The rows of one size as a table for the terminal."""
    header = ["pointwise part alone", "pass", "kernels", "microseconds", "GB/s", "of a copy's"]
    return console.table(header, [[row["name"], row["pass"], *results.kernel_cells(row)] for row in rows])
