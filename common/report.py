"""The last measurement as one page that opens offline: out/report.html."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from html import escape

from matplotlib.figure import Figure

from . import console, counts, heat, plots, results, stages
from .errors import UserError
from .results import THIS_MACHINE, device_name, select, size_in_memory, size_of, unique
from .stages import ROOT, STAGES
from .tables import GRADS, LADDER, PASSES, recorded_rows, shown_name, timed

PAGE = ROOT / "out" / "report.html"
CHECKED = ROOT / "out" / "check.json"
COUNTED = (
    "Counted on the emulator at B64 S512 in float32. A request is one warp's; lanes, sectors of 32 bytes and bank "
    "conflicts are per request. Ideal is how many sectors the same bytes would take without gaps."
)

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; padding-bottom: .2rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: .5rem 0 1rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: bottom; }
td { white-space: nowrap; } .words td { white-space: normal; }
th:first-child, td:first-child, .words th, .words td { text-align: left; vertical-align: top; }
.scroll { overflow-x: auto; }
img { max-width: 100%; height: auto; } figure { margin: 1rem 0; } figcaption { color: #444; font-size: .9rem; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def report() -> int:
    """Writes out/report.html. Raises `UserError` when nothing has been measured yet."""
    result = results.measured()
    if result is None:
        raise UserError(f"{results.shown(results.MEASURED)} is not there: `make bench` or `make tour` writes it")
    checked = json.loads(CHECKED.read_text()) if CHECKED.exists() else []
    with console.step("draw the report"):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(result, results.recorded(), checked))
    console.say(f"  {results.shown(PAGE)} opens in any browser, offline too")
    return 0


def page(result: dict, recorded: Sequence[dict], checked: Sequence[dict]) -> str:
    """The whole page as HTML, with every picture inside it."""
    parts = [
        "<h1>The LLTM, stage by stage</h1>",
        f"<p>Measured on {escape(result['date'][:10])} (UTC). "
        "Times are medians of one call; each contender was held against the float64 reference before and after.</p>",
        *machine(result),
        *what_ran(result, checked),
        *checks(checked),
        *measurements(result),
        *kernels(result, recorded),
        *emulated(checked),
        *counted(checked),
        *beside(result, recorded),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>The LLTM, stage by stage</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def machine(result: dict) -> Iterator[str]:
    """The machine and the versions."""
    facts, versions = result["machine"], result["versions"]
    clocks = facts["gpu_clocks_mhz"]
    rows = [
        ["processor", f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB of memory"],
        ["GPU", facts["gpu"] or "none that torch can use"],
    ]
    if clocks:
        sm, memory = (clock(clocks[kind], clocks[f"{kind}_max"]) for kind in ("sm", "memory"))
        rows.append(["GPU's clocks", f"multiprocessors {sm}, memory {memory}, at the end of the run"])
    rows += [[name, value] for name, value in versions.items() if value]
    yield "<h2>Machine</h2>"
    yield table(["", ""], rows, words=True)


def clock(now: int | None, most: int | None) -> str:
    """A clock as the GPU's driver gave it; it may keep one or the other to itself."""
    return ("unknown" if now is None else f"{now}") + (f" of at most {most} MHz" if most else " MHz")


def what_ran(result: dict, checked: Sequence[dict]) -> Iterator[str]:
    """What was measured, and what was not, with the reason."""
    measured = {row["stage"] for row in result["rows"]}
    yield "<h2>What ran, and what did not</h2>"
    rows = []
    for stage in STAGES:
        where = unique(select(result, stage=stage.number), "device")
        if stage.number in measured:
            state = "measured on " + " and ".join(f"{device.upper()} tensors" for device in where)
        elif not stage.is_here:
            state = "not here yet"
        else:
            state = "not measured" if stage.kind == "cell" else "not a cell: nothing to time beside eager"
            if any(entry["stage"] == stage.number and entry["target"] == "emulator" for entry in checked):
                state = "checked on the emulator, where nothing is timed"
        rows.append([f"stage {stage.number}", stage.title, state])
    yield table(["stage", "what it is", "state"], rows, words=True)
    if result["not_run"]:
        rows = [[e["name"], e["device"].upper(), e["what"], e["reason"]] for e in result["not_run"]]
        yield table(["not run", "tensors", "what", "reason"], rows, words=True)


def checks(checked: Sequence[dict]) -> Iterator[str]:
    """The outcomes of the correctness checks: counts, and each one that did not pass."""
    if not checked:
        return
    yield "<h2>Correctness</h2>"
    groups: dict[tuple, list[dict]] = {}
    for entry in checked:
        groups.setdefault(tuple(entry[k] for k in ("stage", "target", "device", "dtype")), []).append(entry)
    rows = []
    for (stage, target, device, dtype), entries in groups.items():
        count = [sum(e["outcome"] == outcome for e in entries) for outcome in ("passed", "failed", "not run")]
        seconds = sum(e["seconds"] for e in entries)
        rows.append([f"stage {stage}", target, device.upper(), dtype, *map(str, count), f"{seconds:.1f} s"])
    yield table(["", "target", "tensors", "dtype", "passed", "failed", "not run", "time"], rows)
    rest = [e for e in checked if e["outcome"] != "passed"]
    if rest:
        keys = ("name", "device", "dtype", "outcome")
        rows = [[f"stage {e['stage']}", *(str(e[key]) for key in keys), e.get("message", "")] for e in rest]
        yield table(["", "check", "tensors", "dtype", "outcome", "why"], rows, words=True)


def measurements(result: dict) -> Iterator[str]:
    """For each device and choice of gradients: the ladder and its pictures."""
    for device in unique(result["rows"], "device"):
        yield f"<h2>{device.upper()} tensors: {escape(device_name(result, device))}</h2>"
        yield f"<p>{LADDER}</p>"
        for grads in unique(select(result, device=device), "grads"):
            yield ladder(result, device, grads)
            yield picture(plots.times(result, device, grads), "Time of one call, with quartiles")
            yield picture(plots.speedups(result, device, grads), "Speed-up against eager in the same run")
            yield picture(plots.saved(result, device, grads), "Memory saved for backward")


def ladder(result: dict, device: str, grads: str) -> str:
    """A line for each contender: its times at each size, and what it keeps at the largest."""
    rows = select(result, device=device, grads=grads)
    sizes = unique(rows)
    header = ["", *(f"{size}\n{name}" for size in sizes for name in PASSES), f"saved for backward\n{sizes[-1]}"]
    lines = []
    for name in unique(rows, "name"):
        found = {(size_of(row), row["pass"]): row for row in rows if row["name"] == name}
        cells = [timed(found.get((size, p))) for size in sizes for p in PASSES]
        kept = size_in_memory(found.get((sizes[-1], "forward")))
        lines.append([shown_name(next(iter(found.values())), result), *cells, kept])
    return table(header, lines, caption=f"Gradients for {GRADS[grads]}")


def kernels(result: dict, recorded: Sequence[dict]) -> Iterator[str]:
    """The pointwise kernels alone: this machine's if it has measured them, and the recorded ones."""
    pictures = [(one["name"], figure) for one in [result, *recorded] if (figure := plots.kernels(one))]
    if pictures:
        yield "<h2>The pointwise kernels alone</h2>"
    for name, figure in pictures:
        yield picture(figure, f"Share of a copy's speed ({name})")


def emulated(checked: Sequence[dict]) -> Iterator[str]:
    """The recorded times of the stages that ran on the emulator here."""
    numbers = sorted({entry["stage"] for entry in checked if entry["target"] == "emulator"})
    if not numbers:
        return
    yield "<h2>Stages on the emulator</h2>"
    yield "<p>An emulator's times mean nothing. Recorded on GPUs, in microseconds (multiple of eager's):</p>"
    rows = [row for number in numbers for row in recorded_rows(stages.find(number))]
    here = {row[0] for row in rows}
    yield table(["", "machine", "size", *PASSES], rows) if rows else ""
    for name in (f"stage {number}" for number in numbers):
        if not any(name in first for first in here):
            yield f"<p>{name.capitalize()}: nothing recorded yet.</p>"


def counted(checked: Sequence[dict]) -> Iterator[str]:
    """What each line of the kernels that ran on the emulator asks of memory: pictures and numbers."""
    numbers = sorted({entry["stage"] for entry in checked if entry["target"] == "emulator"})
    wanted = [stages.find(number) for number in numbers if stages.find(number).pointwise_tensors]
    if not wanted:
        return
    yield "<h2>What the kernels ask of memory</h2>"
    yield f"<p>{COUNTED}</p>"
    for stage in wanted:
        found = counts.stage(stage.number)
        for launch in found.launches:
            yield picture(heat.source(found, launch.kernel), f"Stage {stage.number}: {launch.kernel} line by line")
            rows = [[f"line {row.line}", row.space, *counts.numbers(row)] for row in found.of(launch.kernel)]
            yield table(counts.HEADER, rows, caption=f"Stage {stage.number}: {launch.kernel}, {launch.grid} blocks")


def beside(result: dict, recorded: Sequence[dict]) -> Iterator[str]:
    """This machine beside those that others have recorded."""
    everything = [result, *recorded]
    yield "<h2>Beside other machines</h2>"
    if not recorded:
        yield "<p>No other machine is recorded yet; docs/results/README.md says how to add one.</p>"
    yield picture(plots.machines(everything), f"{THIS_MACHINE.capitalize()} and the recorded ones")
    figure = plots.builds(everything)
    if figure:
        yield picture(figure, "Seconds to build each stage")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], words: bool = False, caption: str = "") -> str:
    """An HTML table; `words` aligns every column to the left."""
    head = "".join(f'<th scope="col">{escape(cell).replace(chr(10), "<br>")}</th>' for cell in header)
    head = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    kind = ' class="words"' if words else ""
    return f'<div class="scroll"><table{kind}>{title}{head}<tbody>{body}</tbody></table></div>'


def picture(figure: Figure, caption: str) -> str:
    """A figure inside the page; its title, which says what and where, is the text for who cannot see it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150)
    data = base64.b64encode(file.getvalue()).decode()
    title = figure.get_suptitle()
    text = escape(f"{caption}. {title}{'. ' * bool(title)}The numbers are in the tables of this page.", quote=True)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
