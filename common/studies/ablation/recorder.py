"""`make ablation`: what each optimisation of stage 6 gains in time and memory, left out of the stage and by itself.

Every variant is checked against the reference before and after it is timed, in the same run as eager and the stage.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import ModuleType

from ... import console
from ...build import targets
from ...emulator import collect_counts
from ...errors import UserError
from ...gpu_tools import ncu_tool
from ...measure import stage_counts
from ...paths import ROOT, display_path
from ...results import records
from ...results.rows import size_label
from . import ABLATION_PARTS, STUDY, variants
from .variants import BARE, WHOLE, Variant

DEVICES = ("cuda", "cpu")
ABLATION_OUTPUT = ROOT / "out" / "ablation.json"
ABLATION_SIZES = ((4096, 1024), (64, 128))  # B, S
POINTWISE_OPTIMISATIONS = ("recomputed", "packs", "units", "bias")
# The variants whose accesses are counted; the others move the same bytes.
COUNTED_VARIANTS = [WHOLE, BARE, *map(variants.without, ("recomputed", "packs", "bias", "small"))]
COUNTED_POINTWISE, COUNTED_CELL = (64, 512), (16, 32, 128)  # B, S; B, I, S
COUNTED_KERNELS = ("forward_kernel", "backward_kernel", "cell_kernel", "products_kernel")

Libraries = dict[tuple[str, str], Path]
Around = Callable[[dict], AbstractContextManager]


def measure_ablation(out: str | None = None, only: Sequence[str] = ()) -> int:
    """Measures the variants and writes the result to `out`: all `ABLATION_PARTS` that can run here, or `only` some.

    The file's results of other parts are kept if they are from the same sources, versions and machine.
    """
    from ...measure import bench

    reason = targets.why_unavailable("cuda")
    target, possible = ("host", ("cpu", "counts")) if reason else ("cuda", ABLATION_PARTS)
    if refused := [part for part in only if part not in possible]:
        raise UserError(f"{refused[0]} cannot be measured here: {reason}")
    parts, path = only or possible, Path(out) if out else ABLATION_OUTPUT
    record = resume_record(path)
    emulated = COUNTED_VARIANTS if "counts" in parts else []
    wanted = variants_to_time(parts) + (emulated if target == "cuda" else [])  # ncu counts them
    with console.step(f"build {len(set(wanted))} variants for {target}, {len(emulated)} for the emulator"):
        libraries = variants.build_variants(dict.fromkeys(wanted), target, emulated)
    for device in (part for part in parts if part in DEVICES):
        rows, record["not_run"][device] = bench.run_in_process(measure_variants, libraries, target, device)
        record["rows"] = [row for row in record["rows"] if row["device"] != device] + rows
        records.save(record, path)
    if "kernels" in parts:
        record["kernels"], record["not_run"]["kernels"] = bench.run_in_process(measure_variant_kernels, libraries)
        records.save(record, path)
    if "counts" in parts:
        with console.step("count on the emulator"):
            found, _ = bench.run_in_process(count_variants, libraries)
        with console.step("count with ncu"):
            record["counts"] = add_ncu_counts(found)
        records.save(record, path)
    for entry in (entry for entries in record["not_run"].values() for entry in entries):
        console.say(f"  not run: {entry['name']}, {entry['what']} ({entry['device']}): {entry['reason']}")
    console.say(f"\nWritten to {display_path(path.absolute())}.")
    return 0


def variants_to_time(parts: Sequence[str]) -> list[Variant]:
    """The variants that are timed for these parts."""
    timed = [variant for device in DEVICES if device in parts for variant in variants.variants_for_device(device)]
    return timed + (variants.variants_of(POINTWISE_OPTIMISATIONS) if "kernels" in parts else [])


# The cell, and its kernels alone -----------------------------------------------------------------------------------


def measure_variants(libraries: Libraries, target: str, device: str) -> tuple[list[dict], list[dict]]:
    """The rows of eager and all variants at the benchmark's sizes, and what could not be measured."""
    from ...cell.case import Case
    from ...measure import bench, cell_times
    from ...measure.implementations import Implementation, baselines

    plan = cell_times.Plan(bench.FULL.sizes, ("all",), modes=None, rounds=25, block_seconds=0.005)
    implementations = baselines(device, modes=None)
    for variant in variants.variants_for_device(device):
        module = variants.load_variant(variant, libraries[variant.name, target], target)
        implementations.append(Implementation(variant.name, module.lltm))
    rows, not_run = [], []
    with cell_times.ieee_float32():
        for size in plan.sizes[device]:
            measured, missed = cell_times.measure_cell_at(implementations, Case(*size, device=device), plan)
            console.say(f"\n{cell_times.format_rows(measured)}{cell_times.warn_if_disturbed(measured)}\n")
            rows += measured
            not_run += missed
    return rows, not_run


def measure_variant_kernels(libraries: Libraries) -> tuple[list[dict], list[dict]]:
    """The rows of the pointwise kernels alone on a GPU, including the kernels for the bias's gradient."""
    from ...measure.kernel_times import format_kernel_rows, measure_kernels_at
    from ...measure.pointwise import from_operators

    implementations = []
    for variant in variants.variants_of(POINTWISE_OPTIMISATIONS):
        module = variants.load_variant(variant, libraries[variant.name, "cuda"], "cuda")
        implementations.append(from_operators(variant.name, module.operators, needs_bias=True))
    rows, not_run = [], []
    for B, S in ABLATION_SIZES:
        measured, missed = measure_kernels_at(implementations, B, S)
        console.say(f"\n{format_kernel_rows(measured)}\n")
        rows += measured
        not_run += missed
    return rows, not_run


# Counts ------------------------------------------------------------------------------------------------------------


def launch_variants(modules: dict[str, ModuleType], device: str, around: Around = nullcontext) -> None:
    """Runs both passes of the pointwise part and of a small cell for each variant, each inside `around(pass)`."""
    from ...cell.case import Case
    from ...measure.pointwise import from_operators

    (B, S), small = COUNTED_POINTWISE, Case(*COUNTED_CELL, device=device, requires_grad=())
    given = stage_counts.make_inputs(B, S, device=device)
    arguments, gradients = small.inputs(), small.gradients()
    needs = [True] * len(arguments)
    for name, module in modules.items():
        operators = module.operators
        pointwise = from_operators(name, operators, needs_bias=True)
        with around({"name": name, "what": f"pointwise part, B{B} S{S}", "pass": "forward"}):
            found = pointwise.forward(given)
        with around({"name": name, "what": f"pointwise part, B{B} S{S}", "pass": "backward"}):
            pointwise.backward(given, found)
        what = f"cell, {size_label(vars(small))}"
        with around({"name": name, "what": what, "pass": "forward"}):
            _, new_cell, saved = operators.cell(*arguments.values())
        with around({"name": name, "what": what, "pass": "backward"}):
            input, weights, _, old_h, _ = arguments.values()
            operators.cell_backward(*gradients, input, weights, old_h, new_cell, saved, needs)


def count_variants(libraries: Libraries) -> tuple[list[dict], list[dict]]:
    """The emulator's counts of each kernel, in the order of the launches; one row for each launch."""
    modules = {v.name: variants.load_variant(v, libraries[v.name, "emulator"], "emulator") for v in COUNTED_VARIANTS}
    rows = []

    @contextmanager
    def around(pass_: dict) -> Iterator[None]:
        with collect_counts(modules[pass_["name"]]) as counted:
            yield
        for launch in counted.launches:
            kernel = launch.kernel.partition("<")[0]
            found = ncu_tool.kernel_counts(counted, kernel)
            for space in found:
                found[space]["bytes"] = counted.total("bytes", kernel, space)
            rows.append(pass_ | {"kernel": kernel, "emulator": found})

    launch_variants(modules, "cpu", around)
    return rows, []


def add_ncu_counts(rows: Sequence[dict]) -> list[dict]:
    """The rows with ncu's counts of the same launches, or the reason why there are none."""
    if reason := ncu_tool.missing_requirement():
        return [row | {"ncu": None, "refused": reason} for row in rows]
    launches = [
        ncu_tool.KernelCase(row["kernel"], k) for k, row in enumerate(rows)
    ]  # identified only by their position
    said = ncu_tool.match_launches(
        launches, ncu_tool.run_ncu([sys.executable, "-m", "common.studies.ablation.recorder"], COUNTED_KERNELS)
    )
    return [row | dict(zip(("ncu", "refused"), said[launch], strict=True))
            for row, launch in zip(rows, launches, strict=True)]  # fmt: skip


# The record --------------------------------------------------------------------------------------------------------


def resume_record(path: Path) -> dict:
    """The file's results from the same sources and machine, with today's date; otherwise an empty record."""
    version = ncu_tool.ncu_version() if ncu_tool.find_ncu() else None
    now = records.start_record(variants.hash_ablation(), {"ncu": version})
    nothing = {"rows": [], "kernels": [], "counts": [], "not_run": {}}
    old = read_ablation(path) if path.exists() else None
    same = old and record_origin(old) == record_origin(now)
    return now | ({part: old[part] for part in nothing} if same else nothing)


def record_origin(record: dict) -> tuple:
    """The facts that the parts of a record must share."""
    return record["sources"], record["versions"], record["machine"]["cpu"], record["machine"]["gpu"]


def read_ablation(path: Path) -> dict:
    """A record. Raises `UserError` for an invalid file."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(f"{display_path(path)}: {error}") from error
    fields = ("date", "machine", "versions", "sources", "rows", "kernels", "counts", "not_run")
    if missing := [field for field in fields if not isinstance(record, dict) or field not in record]:
        raise UserError(f"{display_path(path)} has no {', '.join(missing)}: measure again with `make ablation`")
    return record


def read_recorded_ablation() -> dict:
    """The record in docs/results/studies/ablation.json."""
    return read_ablation(STUDY.record())


if __name__ == "__main__":  # the program that ncu runs
    built = variants.build_variants(COUNTED_VARIANTS, "cuda")
    launch_variants(
        {v.name: variants.load_variant(v, built[v.name, "cuda"], "cuda") for v in COUNTED_VARIANTS}, "cuda"
    )
