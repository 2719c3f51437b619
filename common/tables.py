"""Generated tables: what stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->` in the pages.

To add a table, write a function that takes the page's path and returns Markdown, and name it in `GENERATORS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from . import console, results, stages
from .errors import UserError
from .results import device_name, is_stale, kernel_cells, select, size_in_memory, size_of, unique
from .stages import ROOT, Stage

Generator = Callable[[Path], str]

NOTHING = (
    "Nothing recorded yet: `make bench` measures a machine, and docs/results/README.md says how to add its file."
)
LADDER = "Microseconds of one call; in brackets the multiple of eager's time in the same run, so below one is faster."
AGAINST = "Microseconds of one call, and the stage's time as a multiple of each peer's: below one is faster."
KERNELS = (
    "Kernel time of the pointwise part alone (median and quartiles), the cache flushed before each call. GB/s count "
    "the bytes that the stage's kernel has to read and write, and their share of a copy's speed in the same run is "
    "what the least possible time is of the measured one; a little above 100 % is possible for a kernel that reads "
    "more than it writes. Registers and occupancy where one kernel does it all."
)
GRADS = {"all": "all inputs", "parameters": "weights and bias"}
PASSES = ("forward", "forward+backward")
NOISE = 0.03  # a ratio this close to one is no difference
BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end: (?P<end>[\w-]+) -->)", re.DOTALL)


def tables(check: bool = False) -> int:
    """Rewrites every generated table; with `check`, changes nothing and returns 1 when one is out of date."""
    outdated = []
    for page in pages():
        old = page.read_text()
        new = filled(old, page)
        if new != old:
            outdated.append(page)
            if not check:
                page.write_text(new)
    for page in outdated:
        name = results.shown(page)
        console.say(f"{name} is out of date: python -m common tables" if check else f"{name} rewritten")
    if not outdated:
        console.say("every generated table is up to date")
    return int(check and bool(outdated))


def pages() -> list[Path]:
    """The pages that may hold generated tables."""
    return [p for pattern in ("README.md", "stages/*/README.md", "docs/**/*.md") for p in sorted(ROOT.glob(pattern))]


def filled(text: str, page: Path) -> str:
    """The text of a page with every block written anew. Raises `UserError` for one that nothing can write."""

    def block(found: re.Match) -> str:
        name = found["name"]
        if found["end"] != name:
            raise UserError(f"{results.shown(page)}: 'generated: {name}' is closed by 'end: {found['end']}'")
        return f"{found[1]}\n{generator(name, page)(page).strip()}\n\n{found[4]}"

    if text.count("<!-- generated:") != len(BLOCK.findall(text)):
        raise UserError(f"{results.shown(page)}: a generated block is not closed by '<!-- end: NAME -->'")
    return BLOCK.sub(block, text)


def generator(name: str, page: Path) -> Generator:
    """The function that writes the block of that name."""
    if name in GENERATORS:
        return GENERATORS[name]
    if number := re.fullmatch(r"stage-(\d+)", name):
        return partial(stage_table, stages.find(int(number[1])))
    known = ", ".join([*GENERATORS, "stage-N"])
    raise UserError(f"{results.shown(page)}: nothing generates {name!r}; known are {known}")


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table whose first `left` columns are aligned to the left, the others to the right."""
    rule = ["---" if k < left else "---:" for k in range(len(header))]
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, rule, *rows])


# What can be generated ----------------------------------------------------------------------------------------


def stages_table(page: Path) -> str:
    """The table of stages; those that are not written yet are said to be."""
    rows = []
    for stage in stages.STAGES:
        link = Path(os.path.relpath(stage.folder, page.parent)).as_posix()
        title = f"[{stage.title}]({link})" if stage.is_here else stage.title
        state = f"`make stage-{stage.number}`" if stage.is_here else "not here yet"
        rows.append([str(stage.number), title, stage.kind, ", ".join(stage.targets), state])
    return markdown(["stage", "what", "kind", "runs on", ""], rows, left=5)


def ladder(page: Path, grads: Sequence[str] = ("all",)) -> str:
    """For each recorded machine and device a table: time of each contender, as a multiple of eager's too."""
    parts = [
        ladder_of(result, device, kind)
        for result in results.recorded()
        for device in unique(result["rows"], "device")
        for kind in grads
        if select(result, device=device, grads=kind)
    ]
    return "\n\n".join([LADDER, *parts]) if parts else NOTHING


def ladder_of(result: dict, device: str, grads: str) -> str:
    """The ladder of one machine: microseconds, in brackets the multiple of eager's time in the same run."""
    rows = select(result, device=device, grads=grads)
    sizes = unique(rows)
    header = ["", *(f"{size}<br>{name}" for size in sizes for name in PASSES), f"saved for backward<br>{sizes[-1]}"]
    lines = []
    for name in unique(rows, "name"):
        found = {(size_of(row), row["pass"]): row for row in rows if row["name"] == name}
        cells = [timed(found.get((size, p))) for size in sizes for p in PASSES]
        largest = found.get((sizes[-1], "forward"))
        lines.append([shown_name(next(iter(found.values())), result), *cells, size_in_memory(largest)])
    return f"{place(result, rows)}, gradients for {GRADS[grads]}\n\n{markdown(header, lines)}"


def stage_table(stage: Stage, page: Path) -> str:
    """What a stage gains on each recorded machine, and where it loses, in a table and in words."""
    parts = []
    for result in results.recorded():
        for device in unique(select(result, stage=stage.number), "device"):
            rows = select(result, device=device)
            table, mine = against_peers(stage, rows)
            stale = ""
            if any(is_stale(row, result) for row in mine):
                stale = "Stale: the sources have changed since this was measured.\n\n"
            parts.append(f"{place(result, rows)}\n\n{stale}{table}\n\n{chr(10).join(verdicts(mine, rows))}")
    return "\n\n".join([AGAINST, *parts]) if parts else NOTHING


def against_peers(stage: Stage, rows: Sequence[dict]) -> tuple[str, list[dict]]:
    """A line for each size, gradients and pass: the peers' microseconds, the stage's, and its ratios to theirs."""
    peers = [name for name in unique(rows, "name") if not name.startswith("stage ")]
    mine = [row for row in rows if row["stage"] == stage.number]
    lines = []
    for row in mine:
        others = [same_case(rows, row, name) for name in peers]
        ratios = [f"{ratio(row, other):.2f}" if other else "not run" for other in others]
        lines.append(
            [size_of(row), GRADS[row["grads"]], row["pass"], *map(microseconds, others), microseconds(row), *ratios]
        )
    header = ["size", "gradients for", "pass", *peers, f"stage {stage.number}", *(f"to {peer}" for peer in peers)]
    return markdown(header, lines, left=3), mine


def verdicts(mine: Sequence[dict], rows: Sequence[dict]) -> Iterator[str]:
    """Where the stage is slower and faster than each peer, and what it keeps in memory, a sentence each."""
    for peer in (name for name in unique(list(rows), "name") if not name.startswith("stage ")):
        pairs = [(row, other) for row in mine if (other := same_case(rows, row, peer))]
        slower = [(row, other) for row, other in pairs if ratio(row, other) > 1 + NOISE]
        faster = [row for row, other in pairs if ratio(row, other) < 1 - NOISE]
        alike = len(pairs) - len(slower) - len(faster)
        lost = "never slower"
        if slower:
            places = ", ".join(unique([row for row, _ in slower]))
            lost = f"**slower in {len(slower)}, by up to {max(ratio(*pair) for pair in slower) - 1:.0%} ({places})**"
        yield f"- Of {len(pairs)} lines against {peer}: faster in {len(faster)}, about the same in {alike}, {lost}."
    row = mine[-1]
    eager = same_case(rows, row, "eager")
    if eager:
        yield (
            f"- Saved for backward at {size_of(row)}, beside inputs and outputs: {size_in_memory(row)}; "
            f"by eager {size_in_memory(eager)}."
        )


def results_table(page: Path) -> str:
    """The recorded files, and all their ladders."""
    recorded = results.recorded()
    if not recorded:
        return NOTHING
    lines = []
    for result in recorded:
        machine, versions = result["machine"], result["versions"]
        hardware = f"{machine['gpu'] or 'no GPU'}; {machine['cpu']}, {machine['cores']} cores"
        link = f"[{result['name']}.json]({result['name']}.json)"
        lines.append([link, hardware, versions["torch"], versions["python"], result["date"][:10]])
    return (
        markdown(["file", "machine", "torch", "Python", "date"], lines, left=5) + "\n\n" + ladder(page, tuple(GRADS))
    )


def kernels_table(page: Path) -> str:
    """The pointwise kernels alone on each recorded GPU: time, speed, registers and occupancy."""
    parts = [kernels_of(result) for result in results.recorded() if result.get("kernels")]
    return "\n\n".join([KERNELS, *parts]) if parts else NOTHING


def kernels_of(result: dict) -> str:
    """The kernels of one machine, a line for each contender, size and pass."""
    header = ["", "size", "pass", "kernels", "microseconds", "GB/s", "of a copy's", "registers", "occupancy"]
    lines = []
    for row in sorted(result["kernels"], key=lambda row: (-row["B"] * row["S"], row["pass"] != "forward")):
        cells = [kernel_name(row, result), f"B{row['B']} S{row['S']}", row["pass"], *kernel_cells(row)]
        facts = ["" if row["registers"] is None else str(row["registers"])]
        facts.append("" if row["occupancy"] is None else f"{row['occupancy']:.0%}")
        lines.append(cells + facts)
    row = result["kernels"][0]
    copy, total = (
        " and ".join(sorted({f"{row[f'{kind}_gb_per_second']:,.0f}" for row in result["kernels"]}))
        for kind in ("copy", "sum")
    )
    torch = result["versions"]["torch"].partition("+")[0]
    return (
        f"**{device_name(result, 'cuda')}**, {row['dtype']}, torch {torch}, {result['date'][:10]}; "
        f"in the same run a copy: {copy} GB/s, a sum of two tensors into a third: {total} GB/s\n\n"
        f"{markdown(header, lines, left=3)}"
    )


def kernel_name(row: dict, result: dict) -> str:
    """A contender's name, marked when the sources of its kernels have changed since."""
    stale = row["stage"] is not None and is_stale(row, result)
    return f"{row['name']} (stale: sources changed since)" if stale else row["name"]


def sanitizer_table(page: Path) -> str:
    """What compute-sanitizer says of every kernel and shape class."""
    from .sanitizer import markdown as sanitizer

    return sanitizer()


def checks_table(page: Path) -> str:
    """Who finds which of the mistakes in tests/checks."""
    from .finders import markdown as checks

    return checks()


def ncu_table(page: Path) -> str:
    """The emulator's counts beside Nsight Compute's."""
    from .ncu_table import markdown as ncu

    return ncu(page)


def decision_table(page: Path) -> str:
    """What C++ gained over what needs none: the whole cell."""
    from .decision import whole_cell

    return whole_cell()


def pointwise_decision_table(page: Path) -> str:
    """The same of the pointwise part alone."""
    from .decision import pointwise

    return pointwise()


def ablation_table(page: Path) -> str:
    """What each idea of stage 6 is worth."""
    from .ablation import recorded, table

    return table(recorded())


def wheels_table(page: Path) -> str:
    """Which wheel runs on which Python and torch."""
    from .wheels import markdown as wheels

    return wheels()


def recorded_times(stage: Stage) -> str:
    """The recorded times of a stage on GPUs, as text for a machine that cannot time it."""
    title, rows = f"Stage {stage.number} runs on the emulator here, where times mean nothing.", recorded_rows(stage)
    if not rows:
        return f"{title} On a GPU: nothing recorded yet."
    table = console.table(["", "machine", "size", *PASSES], rows)
    return f"{title} Recorded on GPUs, in microseconds\n(in brackets the multiple of eager's):\n{table}"


def recorded_rows(stage: Stage) -> list[list[str]]:
    """A stage's name, machine, size, and times of both passes, for each size that is recorded on CUDA tensors."""
    lines = []
    for result in results.recorded():
        for row in select(result, stage=stage.number, device="cuda", grads="all"):
            if row["pass"] == "forward":
                both = same_case(result["rows"], row | {"pass": "forward+backward"}, row["name"])
                cells = [shown_name(row, result), device_name(result, "cuda"), size_of(row), timed(row), timed(both)]
                lines.append(cells)
    return lines


def syllabus_table(page: Path) -> str:
    """What is taught, tested and practised."""
    from .syllabus import markdown as syllabus

    return syllabus()


def exercises_table(page: Path) -> str:
    """The exercises of the stage that the page belongs to."""
    from .exercises.table import of_stage

    return of_stage(page)


def wrong_answers_table(page: Path) -> str:
    """Every exercise's wrong answers, and what is said to them."""
    from .exercises.table import wrong_answers

    return wrong_answers(page)


GENERATORS: dict[str, Generator] = {
    "stages": stages_table,
    "ladder": ladder,
    "results": results_table,
    "kernels": kernels_table,
    "sanitizer": sanitizer_table,
    "checks": checks_table,
    "ncu": ncu_table,
    "wheels": wheels_table,
    "ablation": ablation_table,
    "syllabus": syllabus_table,
    "decision": decision_table,
    "pointwise-decision": pointwise_decision_table,
    "exercises": exercises_table,
    "wrong-answers": wrong_answers_table,
}


# The words and numbers in them --------------------------------------------------------------------------------


def place(result: dict, rows: Sequence[dict]) -> str:
    """Where rows were measured, in bold, and how."""
    row = rows[0]
    threads = f", {row['threads']} threads" if row["threads"] else ""
    torch = result["versions"]["torch"].partition("+")[0]
    return (
        f"**{device_name(result, row['device'])}**, {row['device'].upper()} tensors{threads}, {row['dtype']} "
        f"({row['maths']}), torch {torch}, {result['date'][:10]}"
    )


def shown_name(row: dict, result: dict) -> str:
    """A contender's name, marked when its sources have changed since."""
    return f"{row['name']} (stale: sources changed since)" if is_stale(row, result) else row["name"]


def same_case(rows: Sequence[dict], row: dict, name: str) -> dict | None:
    """The row of another contender in the same run at the same size, pass and gradients."""
    facts = ("B", "I", "S", "pass", "grads", "device")
    return next((r for r in rows if r["name"] == name and all(r[f] == row[f] for f in facts)), None)


def ratio(row: dict, other: dict) -> float:
    """The time of a row as a multiple of another's; both were paired with eager, round by round."""
    return row["ratio"] / other["ratio"]


def microseconds(row: dict | None) -> str:
    """A median; one decimal below ten."""
    if row is None:
        return "not run"
    return f"{row['median']:.1f}" if row["median"] < 10 else f"{row['median']:,.0f}"


def timed(row: dict | None) -> str:
    """A median with its multiple of eager's."""
    return "not run" if row is None else f"{microseconds(row)} ({row['ratio']:.2f})"
