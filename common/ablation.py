"""`make ablation`: what each idea of stage 6 is worth, left out of the stage and alone, in time, memory and bytes.

Every variant is checked against the reference before and after it is timed, in the same run as eager and the stage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timezone
from pathlib import Path
from types import ModuleType

from . import build, console, counts, ncu, results, variants
from .errors import UserError
from .stages import ROOT
from .variants import BARE, WHOLE, Variant

PARTS = ("cuda", "cpu", "kernels", "counts")
DEVICES = ("cuda", "cpu")
MEASURED = ROOT / "out" / "ablation.json"
POINTWISE_SIZES = ((4096, 1024), (64, 128))  # B, S
IN_POINTWISE = ("recomputed", "packs", "units", "bias")
# What is counted: these without the others, which move the same bytes.
COUNTED = [WHOLE, BARE, *map(variants.without, ("recomputed", "packs", "bias", "small"))]
COUNTED_POINTWISE, COUNTED_CELL = (64, 512), (16, 32, 128)  # B, S; B, I, S
KERNELS = ("forward_kernel", "backward_kernel", "cell_kernel", "products_kernel")

Libraries = dict[tuple[str, str], Path]
Around = Callable[[dict], AbstractContextManager]


def ablation(out: str | None = None, only: Sequence[str] = ()) -> int:
    """Measures and writes the result to `out`: all of `PARTS` that can run here, or `only` some.

    What the file has of other parts is kept where it is of the same sources, versions and machine.
    """
    from . import bench

    reason = build.unavailable("cuda")
    target, possible = ("host", ("cpu", "counts")) if reason else ("cuda", PARTS)
    if refused := [part for part in only if part not in possible]:
        raise UserError(f"{refused[0]} cannot be measured here: {reason}")
    parts, path = only or possible, Path(out) if out else MEASURED
    record = begun(path)
    emulated = COUNTED if "counts" in parts else []
    wanted = wanted_for(parts) + (emulated if target == "cuda" else [])  # ncu counts them
    with console.step(f"build {len(set(wanted))} variants for {target}, {len(emulated)} for the emulator"):
        libraries = variants.build(dict.fromkeys(wanted), target, emulated)
    for device in (part for part in parts if part in DEVICES):
        rows, record["not_run"][device] = bench.in_a_process(measure_cell, libraries, target, device)
        record["rows"] = [row for row in record["rows"] if row["device"] != device] + rows
        write(record, path)
    if "kernels" in parts:
        record["kernels"], record["not_run"]["kernels"] = bench.in_a_process(measure_kernels, libraries)
        write(record, path)
    if "counts" in parts:
        with console.step("count on the emulator"):
            found, _ = bench.in_a_process(emulated_counts, libraries)
        with console.step("count with ncu"):
            record["counts"] = with_ncu(found)
        write(record, path)
    for entry in (entry for entries in record["not_run"].values() for entry in entries):
        console.say(f"  not run: {entry['name']}, {entry['what']} ({entry['device']}): {entry['reason']}")
    console.say(f"\nWritten to {results.shown(path.absolute())}.")
    return 0


def wanted_for(parts: Sequence[str]) -> list[Variant]:
    """The variants that are timed for these parts."""
    timed = [variant for device in DEVICES if device in parts for variant in variants.of_device(device)]
    return timed + (variants.variants(IN_POINTWISE) if "kernels" in parts else [])


# The cell, and its kernels alone -----------------------------------------------------------------------------------


def measure_cell(libraries: Libraries, target: str, device: str) -> tuple[list[dict], list[dict]]:
    """The rows of eager and all variants at the benchmark's sizes, and what could not be measured."""
    from . import bench
    from .case import Case
    from .contenders import Contender, peers

    plan = bench.Plan(bench.FULL.sizes, ("all",), modes=None, rounds=25, block_seconds=0.005)
    contenders = peers(device, modes=None)
    for variant in variants.of_device(device):
        module = variants.load(variant, libraries[variant.name, target], target)
        contenders.append(Contender(variant.name, module.lltm))
    rows, not_run = [], []
    with bench.ieee():
        for size in plan.sizes[device]:
            measured, missed = bench.measure_size(contenders, Case(*size, device=device), plan)
            console.say(f"\n{bench.as_table(measured)}{bench.disturbed(measured)}\n")
            rows += measured
            not_run += missed
    return rows, not_run


def measure_kernels(libraries: Libraries) -> tuple[list[dict], list[dict]]:
    """The rows of the pointwise kernels alone on a GPU, with what makes the bias's gradient."""
    from . import kernels

    contenders = []
    for variant in variants.variants(IN_POINTWISE):
        module = variants.load(variant, libraries[variant.name, "cuda"], "cuda")
        contenders.append(kernels.of_operators(variant.name, module.operators, needs_bias=True))
    rows, not_run = [], []
    for B, S in POINTWISE_SIZES:
        measured, missed = kernels.measure_size(contenders, B, S)
        console.say(f"\n{kernels.as_table(measured)}\n")
        rows += measured
        not_run += missed
    return rows, not_run


# Counts ------------------------------------------------------------------------------------------------------------


def launch_all(modules: dict[str, ModuleType], device: str, around: Around = nullcontext) -> None:
    """Both passes of the pointwise part and of a small cell, of each variant, each pass inside of `around(pass)`."""
    from . import kernels
    from .case import Case

    (B, S), small = COUNTED_POINTWISE, Case(*COUNTED_CELL, device=device, requires_grad=())
    given = counts.given(B, S, device=device)
    arguments, gradients = small.inputs(), small.gradients()
    needs = [True] * len(arguments)
    for name, module in modules.items():
        operators = module.operators
        pointwise = kernels.of_operators(name, operators, needs_bias=True)
        with around({"name": name, "what": f"pointwise part, B{B} S{S}", "pass": "forward"}):
            found = pointwise.forward(given)
        with around({"name": name, "what": f"pointwise part, B{B} S{S}", "pass": "backward"}):
            pointwise.backward(given, found)
        what = f"cell, {results.size_of(vars(small))}"
        with around({"name": name, "what": what, "pass": "forward"}):
            _, new_cell, saved = operators.cell(*arguments.values())
        with around({"name": name, "what": what, "pass": "backward"}):
            input, weights, _, old_h, _ = arguments.values()
            operators.cell_backward(*gradients, input, weights, old_h, new_cell, saved, needs)


def emulated_counts(libraries: Libraries) -> tuple[list[dict], list[dict]]:
    """The emulator's counts of each kernel in the order of the launches; one row a launch."""
    modules = {v.name: variants.load(v, libraries[v.name, "emulator"], "emulator") for v in COUNTED}
    rows = []

    @contextmanager
    def around(pass_: dict) -> Iterator[None]:
        with counts.of(modules[pass_["name"]]) as counted:
            yield
        for launch in counted.launches:
            kernel = launch.kernel.partition("<")[0]
            found = ncu.of_kernel(counted, kernel)
            for space in found:
                found[space]["bytes"] = counted.total("bytes", kernel, space)
            rows.append(pass_ | {"kernel": kernel, "emulator": found})

    launch_all(modules, "cpu", around)
    return rows, []


def with_ncu(rows: Sequence[dict]) -> list[dict]:
    """The rows with the tool's counts of the same launches, or why there are none."""
    if reason := ncu.lacking():
        return [row | {"ncu": None, "refused": reason} for row in rows]
    launches = [ncu.Case(row["kernel"], k) for k, row in enumerate(rows)]  # told apart by their place alone
    said = ncu.answers(launches, ncu.profile([sys.executable, "-m", "common.ablation"], KERNELS))
    return [row | dict(zip(("ncu", "refused"), said[launch], strict=True))
            for row, launch in zip(rows, launches, strict=True)]  # fmt: skip


# The record --------------------------------------------------------------------------------------------------------


def begun(path: Path) -> dict:
    """What a file holds of the same sources and machine, under today's date; or a record of nothing."""
    from . import machine

    now = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine.machine(),
        "versions": machine.versions() | {"ncu": ncu.version() if ncu.tool() else None},
        "sources": variants.source_hash(),
    }
    nothing = {"rows": [], "kernels": [], "counts": [], "not_run": {}}
    old = read(path) if path.exists() else None
    same = old and origin(old) == origin(now)
    return now | ({part: old[part] for part in nothing} if same else nothing)


def origin(record: dict) -> tuple:
    """What the parts of one record have in common."""
    return record["sources"], record["versions"], record["machine"]["cpu"], record["machine"]["gpu"]


def write(record: dict, path: Path) -> None:
    """Writes a record; a later part may be refused, and what was measured must not be lost."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def read(path: Path) -> dict:
    """A record. Raises `UserError` for a file that is none."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{results.shown(path)}: {error}") from error
    fields = ("date", "machine", "versions", "sources", "rows", "kernels", "counts", "not_run")
    if missing := [field for field in fields if not isinstance(record, dict) or field not in record]:
        raise UserError(f"{results.shown(path)} has no {', '.join(missing)}: measure again with `make ablation`")
    return record


def recorded() -> dict:
    """What docs/results/ablation.json holds."""
    return read(results.ABLATED)


def table(record: dict) -> str:
    """A record as Markdown."""
    from .ablation_table import markdown

    return markdown(record)


if __name__ == "__main__":  # what ncu looks at
    built = variants.build(COUNTED, "cuda")
    launch_all({v.name: variants.load(v, built[v.name, "cuda"], "cuda") for v in COUNTED}, "cuda")
