"""The last measurement as one page that opens offline: out/report.html."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

from .. import console, stages
from ..emulator import COLUMNS, format_counts
from ..errors import UserError
from ..figures import plots, source_heatmap
from ..figures.ladder_chart import LadderChart
from ..measure import stage_counts
from ..paths import ROOT, display_path
from ..results import records
from ..results.formatting import (
    GRADS_LABELS,
    PASSES,
    format_stage_time,
    format_time_and_speedup,
    marked_name,
    recorded_rows,
)
from ..results.records import THIS_MACHINE
from ..results.rows import DISTURBED, device_name, is_disturbed, select, size_in_memory, size_label, unique
from ..stages import STAGES
from .html import folded, html_figure, html_heading, html_page, html_table, inline_svg
from .sequence_section import by_configuration, sequence_section, sequence_table
from .tables.ladder import LADDER

PAGE = ROOT / "out" / "report.html"
CHECKED = ROOT / "out" / "check.json"
FAR = "\u2020"  # marks a time whose quartiles lie far apart
COUNTS_TEXT = (
    "Counted on the emulator at B64 S512 in float32. A request is one warp's; lanes, sectors of 32 bytes and bank "
    "conflicts are per request. Ideal is how many sectors the same bytes would take without gaps."
)


def write_report() -> int:
    """Writes out/report.html. Raises `UserError` when nothing has been measured yet."""
    result = records.read_measured()
    if result is None:
        raise UserError(f"{display_path(records.MEASURED)} does not exist: `make bench` or `make tour` writes it")
    checked = json.loads(CHECKED.read_text()) if CHECKED.exists() else []
    with console.step("draw the report"):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(render_page(result, records.read_recorded(), checked))
    console.say(f"  {display_path(PAGE)} opens in any browser, offline too")
    return 0


def render_page(result: dict, recorded: Sequence[dict], checked: Sequence[dict]) -> str:
    """The whole page as HTML, with every picture inside it."""
    parts = [
        *measurement_sections(result),
        *sequence_section(result),
        *kernels_section(result, recorded),
        *other_machines_section(result, recorded),
        *emulator_section(checked, recorded),
        *counts_section(checked),
        *checks_section(checked),
        *coverage_section(result, checked),
        *machine_section(result),
    ]
    return html_page("The LLTM, stage by stage", [*answer_section(result), *failures(checked)], parts)


def answer_section(result: dict) -> Iterator[str]:
    """Which stage is the fastest here and by how much, in one sentence and one chart; then how it was measured."""
    device = "cuda" if select(result, device="cuda", grads="all") else "cpu"
    rows = [row for row in select(result, device=device, grads="all") if row["pass"] == "forward+backward"]
    sizes = unique(rows)
    steps = [row for row in rows if row["stage"] is not None and size_label(row) == sizes[0]]
    if steps:
        best = min(steps, key=lambda row: row["ratio"])
        times = "; ".join(format_stage_time(row, rows) for row in rows if row["name"] == best["name"])
        title = stages.find_stage(best["stage"]).title
        yield (
            f"<p><strong>The fastest stage here is stage {best['stage']} ({escape(title)}).</strong> Forward and "
            f"backward of one call on {device.upper()} tensors take {escape(times)}.</p>"
        )
        yield f"<figure>{inline_svg(LadderChart(result, device))}</figure>"
    yield (
        f"<p>Measured on {escape(result['date'][:10])} (UTC). Times are medians of one call. Each implementation was "
        "compared with the float64 reference before and after it was timed.</p>"
    )


def machine_section(result: dict) -> Iterator[str]:
    """The machine and the versions."""
    facts, versions = result["machine"], result["versions"]
    clocks = facts["gpu_clocks_mhz"]
    rows = [
        ["processor", f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB of memory"],
        ["GPU", facts["gpu"] or "none that torch can use"],
    ]
    if clocks:
        sm, memory = (format_clock(clocks[kind], clocks[f"{kind}_max"]) for kind in ("sm", "memory"))
        rows.append(["GPU's clocks", f"multiprocessors {sm}, memory {memory}, at the end of the run"])
    rows += [[name, value] for name, value in versions.items() if value]
    yield html_heading("Machine")
    yield html_table(["", ""], rows, words=True)


def format_clock(now: int | None, most: int | None) -> str:
    """A clock as the GPU's driver gave it; it may keep one or the other to itself."""
    return ("unknown" if now is None else f"{now}") + (f" of at most {most} MHz" if most else " MHz")


def coverage_section(result: dict, checked: Sequence[dict]) -> Iterator[str]:
    """What was measured, and what was not, with the reason."""
    every = [*result["rows"], *result.get("sequences", [])]
    measured = {row["stage"] for row in every}
    yield html_heading("What ran, and what did not")
    rows = []
    for stage in STAGES:
        where = unique([row for row in every if row["stage"] == stage.number], "device")
        if stage.number in measured:
            state = "measured on " + " and ".join(f"{device.upper()} tensors" for device in where)
        elif not stage.is_here:
            state = "not here yet"
        else:
            state = "not measured" if stage.is_timed else "not a cell: nothing to time beside eager"
            if any(entry["stage"] == stage.number and entry["target"] == "emulator" for entry in checked):
                state = "checked on the emulator, where nothing is timed"
        rows.append([f"stage {stage.number}", stage.title, state])
    yield html_table(["stage", "what it is", "state"], rows, words=True)
    missing = [(e["reason"], f"{e['name']} on {e['device'].upper()} tensors") for e in result["not_run"]]
    yield from not_run_table(missing)


def not_run_table(missing: Sequence[tuple[str, str]]) -> Iterator[str]:
    """What did not run, from pairs of a reason and a name: a line for each reason."""
    names: dict[str, dict[str, None]] = {}
    for reason, name in missing:
        names.setdefault(reason, {})[name] = None
    if names:
        rows = [[reason, ", ".join(found)] for reason, found in names.items()]
        yield html_table(["not run, because", "what"], rows, words=True)


def failures(checked: Sequence[dict]) -> Iterator[str]:
    """How many checks passed, and each one that failed."""
    failed = [entry for entry in checked if entry["outcome"] == "failed"]
    passed = sum(entry["outcome"] == "passed" for entry in checked)
    if failed:
        count = "1 check" if len(failed) == 1 else f"{len(failed)} checks"
        yield f"<p><strong>{count} failed</strong>, and {passed} passed.</p>"
        rows = [[f"stage {e['stage']}", *(e[key] for key in ("name", "device", "dtype", "message"))] for e in failed]
        yield html_table(["", "failed check", "tensors", "dtype", "why"], rows, words=True)
    elif checked:
        yield f"<p>All {passed} checks of the stages passed before anything was timed.</p>"


def checks_section(checked: Sequence[dict]) -> Iterator[str]:
    """The outcomes of the correctness checks: a line for each stage and, folded, for each of its dtypes."""
    if not checked:
        return
    yield html_heading("Correctness")
    yield checks_table(checked, ("stage", "target"))
    yield folded("Each device and dtype", [checks_table(checked, ("stage", "target", "device", "dtype"))])
    yield from not_run_table(
        [(e["message"], f"stage {e['stage']}: {e['name']}") for e in checked if e["outcome"] == "not run"]
    )


def checks_table(checked: Sequence[dict], facts: Sequence[str]) -> str:
    """A line for each group of checks that agree in these facts: how many passed, failed and did not run."""
    groups: dict[tuple, list[dict]] = {}
    for entry in checked:
        groups.setdefault(tuple(entry[fact] for fact in facts), []).append(entry)
    rows = []
    for (stage, *others), entries in groups.items():
        count = [sum(e["outcome"] == outcome for e in entries) for outcome in ("passed", "failed", "not run")]
        seconds = sum(e["seconds"] for e in entries)
        others = [fact.upper() if fact in ("cpu", "cuda") else fact for fact in others]
        rows.append([f"stage {stage}", *others, *map(str, count), f"{seconds:.1f} s"])
    header = {"stage": "", "target": "target", "device": "tensors", "dtype": "dtype"}
    return html_table([*(header[fact] for fact in facts), "passed", "failed", "not run", "time"], rows)


def measurement_sections(result: dict) -> Iterator[str]:
    """For each device and choice of gradients: the ladder and its pictures."""
    for device in unique(result["rows"], "device"):
        yield html_heading(f"{device.upper()} tensors: {device_name(result, device)}")
        yield f"<p>{LADDER}</p>"
        for grads in unique(select(result, device=device), "grads"):
            yield ladder_html(result, device, grads)
            yield html_figure(plots.plot_times(result, device, grads), "Time of one call, with quartiles")
            yield html_figure(plots.plot_speedups(result, device, grads), "Speed-up against eager in the same run")
            yield html_figure(plots.plot_saved_bytes(result, device, grads), "Memory saved for backward")


def ladder_html(result: dict, device: str, grads: str) -> str:
    """A line for each implementation: its times at each size, and what it keeps at the largest."""
    rows = select(result, device=device, grads=grads)
    sizes = unique(rows)
    header = ["", *(f"{size}\n{name}" for size in sizes for name in PASSES), f"saved for backward\n{sizes[-1]}"]
    lines = []
    for name in unique(rows, "name"):
        found = {(size_label(row), row["pass"]): row for row in rows if row["name"] == name}
        cells = [format_cell(found.get((size, p))) for size in sizes for p in PASSES]
        kept = size_in_memory(found.get((sizes[-1], "forward")))
        lines.append([marked_name(next(iter(found.values())), result), *cells, kept])
    note = f"<p>{FAR} {DISTURBED}</p>" if any(map(is_disturbed, rows)) else ""
    return html_table(header, lines, caption=f"Gradients for {GRADS_LABELS[grads]}") + note


def format_cell(row: dict | None) -> str:
    """A time, and how many times as fast as eager it is, marked when its quartiles lie far apart."""
    return format_time_and_speedup(row) + (f" {FAR}" if row and is_disturbed(row) else "")


def kernels_section(result: dict, recorded: Sequence[dict]) -> Iterator[str]:
    """The pointwise kernels alone: this machine's if it has measured them, and the recorded ones."""
    pictures = [(one["name"], figure) for one in [result, *recorded] if (figure := plots.plot_kernels(one))]
    if pictures:
        yield html_heading("The pointwise kernels alone")
    for name, figure in pictures:
        yield html_figure(figure, f"Share of a copy's speed ({name})")


def emulator_section(checked: Sequence[dict], recorded: Sequence[dict]) -> Iterator[str]:
    """The recorded times of the stages that ran on the emulator here."""
    numbers = sorted({entry["stage"] for entry in checked if entry["target"] == "emulator"})
    if not numbers:
        return
    yield html_heading("Stages on the emulator")
    yield "<p>Emulator times say nothing about a GPU. Recorded on GPUs, in microseconds (times as fast as eager):</p>"
    of_stages = {number: recorded_rows(stages.find_stage(number)) for number in numbers}
    rows = [row for found in of_stages.values() for row in found]
    yield html_table(["", "machine", "size", *PASSES], rows) if rows else ""
    missing = [number for number, found in of_stages.items() if not found]
    for result in recorded:
        found = [row for row in result.get("sequences", []) if row["device"] == "cuda"]
        groups = [one for one in by_configuration(found) if any(row["stage"] in numbers for row in one)]
        missing = [number for number in missing if all(row["stage"] != number for row in found)]
        if groups:
            tables = [sequence_table(group, result) for group in groups]
            yield folded(f"Whole sequences, recorded on {device_name(result, 'cuda')}, in milliseconds", tables)
    for number in missing:
        yield f"<p>Stage {number}: nothing recorded yet.</p>"


def counts_section(checked: Sequence[dict]) -> Iterator[str]:
    """What each line of the kernels that ran on the emulator asks of memory: pictures and numbers."""
    numbers = sorted({entry["stage"] for entry in checked if entry["target"] == "emulator"})
    wanted = [stages.find_stage(number) for number in numbers if stages.find_stage(number).pointwise_tensors]
    if not wanted:
        return
    yield html_heading("Memory requests of the kernels")
    yield f"<p>{COUNTS_TEXT}</p>"
    for stage in wanted:
        found = stage_counts.count_stage(stage.number)
        for launch in found.launches:
            yield html_figure(
                source_heatmap.draw_heatmap(found, launch.kernel),
                f"Stage {stage.number}: {launch.kernel} line by line",
            )
            rows = [[f"line {row.line}", row.space, *format_counts(row)] for row in found.of(launch.kernel)]
            title = f"Stage {stage.number}: {launch.kernel}, {launch.grid} blocks"
            yield folded(f"{title}: the numbers", [html_table(COLUMNS, rows)])


def other_machines_section(result: dict, recorded: Sequence[dict]) -> Iterator[str]:
    """This machine beside those that others have recorded."""
    everything = [result, *recorded]
    yield html_heading("Comparison with other machines")
    if not recorded:
        yield "<p>No other machine is recorded yet; docs/results/README.md says how to add one.</p>"
    yield html_figure(plots.plot_machines(everything), f"{THIS_MACHINE.capitalize()} and the recorded ones")
    figure = plots.plot_build_seconds(everything)
    if figure:
        yield html_figure(figure, "Seconds to build each stage")
