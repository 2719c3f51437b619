"""The sweep of sequences as a picture: at each size, which implementation is fastest and how it compares with cuDNN.

`python -m common.studies.sequence.sweep_chart` writes docs/pictures/sequence_sweep_CELL_NUMBERS.svg for each cell and
kind of numbers in the record: bfloat16, TF32, or float32 in IEEE arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...errors import UserError
from ...figures.plots import BLUE, GREEN, ORANGE, SKY, STYLE, VERMILION, WIDTH
from ...paths import ROOT, display_path
from ...results.formatting import PASSES
from ...results.rows import unique
from . import STUDY

PICTURES = ROOT / "docs" / "pictures"
COLOURS = {
    "cuDNN": "#b3b3b3",
    "stage 7, loop": SKY,
    "stage 7, graph": ORANGE,
    "stage 7, grid": GREEN,
    "stage 7, cluster": VERMILION,
    "stage 7": BLUE,
}


def rows_of(record: dict, cell: str = "lstm", dtype: str = "bfloat16", maths: str = "IEEE") -> list[dict]:
    """The rows of one cell and kind of numbers. `maths` is how products of float32 are computed."""
    return [row for row in record["rows"] if (row["cell"], row["dtype"], row["maths"]) == (cell, dtype, maths)]


def plot_sweep(record: dict, cell: str = "lstm", dtype: str = "bfloat16", maths: str = "IEEE") -> Figure:
    """A panel for each number of steps and each pass: batch by state.

    The colour is the fastest implementation by its name (stage 7's rungs and cuDNN), the number how many times as
    fast as cuDNN stage 7 is with the rung that it chooses itself.
    """
    rows = rows_of(record, cell, dtype, maths)
    if not rows:
        raise UserError(f"the sweep has no {cell} in {dtype} ({maths})")
    steps, batches, states = (sorted(unique(rows, size)) for size in "TBS")
    with pyplot.rc_context(STYLE | {"axes.grid": False}):
        figure = pyplot.figure(figsize=(WIDTH, 2.9 * len(PASSES) + 0.9), layout="constrained")
        axes = figure.subplots(len(PASSES), len(steps), sharex=True, sharey=True, squeeze=False)
    pyplot.close(figure)  # otherwise a notebook would show it twice
    for line, name in zip(axes, PASSES, strict=True):
        for axis, T in zip(line, steps, strict=True):
            draw_panel(axis, [row for row in rows if row["T"] == T and row["pass"] == name], batches, states)
            axis.set_title(f"{name}, {T} steps", loc="left")
    for axis in axes[-1]:
        axis.set_xlabel("state size S")
    for axis in axes[:, 0]:
        axis.set_ylabel("batch size B")
    facts = record["machine"]["gpu"], f"torch {record['versions']['torch'].partition('+')[0]}"
    numbers = f"float32 ({maths})" if dtype == "float32" else dtype
    figure.suptitle(
        f"{cell.upper()}, {numbers}, as many inputs as units: how many times as fast as cuDNN stage 7 is\n"
        f"{', '.join(facts)}, {record['date'][:10]}",
        x=0.01, ha="left",
    )  # fmt: skip
    fastest = {colour_of(fastest_rung(group)) for group in by_size(rows)}
    keys = [Patch(color=colour, label=f"fastest: {name}") for name, colour in COLOURS.items() if colour in fastest]
    figure.legend(handles=keys, loc="outside lower left", frameon=False, ncols=len(keys))
    return figure


def draw_panel(axis: Axes, rows: Sequence[dict], batches: list[int], states: list[int]) -> None:
    """The sizes of one number of steps and one pass as coloured squares, with stage 7's speed-up in each.

    The panels share their axes: those of all batches and states, also of sizes that were not measured here.
    """
    for group in by_size(rows):
        x, y = states.index(group[0]["S"]), batches.index(group[0]["B"])
        axis.add_patch(pyplot.Rectangle((x - 0.5, y - 0.5), 1, 1, fc=colour_of(fastest_rung(group)), ec="white"))
        if (speedup := speedup_over_cudnn(group)) is not None:
            axis.text(x, y, f"{speedup:.1f}" if speedup < 10 else f"{speedup:.0f}", ha="center", va="center")
    axis.set_xticks(range(len(states)), [f"{S}" for S in states])
    axis.set_yticks(range(len(batches)), [f"{B}" for B in batches])
    axis.set_xlim(-0.5, len(states) - 0.5)
    axis.set_ylim(-0.5, len(batches) - 0.5)
    axis.tick_params(length=0)


def colour_of(row: dict) -> str:
    """The colour of an implementation."""
    return COLOURS["cuDNN" if is_cudnn(row) else row["name"]]


def is_cudnn(row: dict) -> bool:
    """Whether a row is cuDNN's, of any cell."""
    return row["name"].startswith("cuDNN")


def by_size(rows: Sequence[dict]) -> list[list[dict]]:
    """The rows of one cell and kind of numbers in groups of one size and pass."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["T"], row["B"], row["S"], row["pass"]), []).append(row)
    return list(groups.values())


def fastest_rung(group: Sequence[dict]) -> dict:
    """The fastest row of a size, among cuDNN and the rungs by name: stage 7's own choice is one of these."""
    named = [row for row in group if row["name"] != "stage 7"]
    return min(named or group, key=lambda row: row["median"])


def speedup_over_cudnn(group: Sequence[dict]) -> float | None:
    """How many times as fast as cuDNN stage 7 is, with the rung that it chooses; None if one of them did not run."""
    ours = [row["median"] for row in group if row["name"] == "stage 7"]
    cudnn = [row["median"] for row in group if is_cudnn(row)]
    return cudnn[0] / ours[0] if ours and cudnn else None


def main() -> None:
    """Draws every cell and kind of numbers of which more than one size was measured."""
    if not (record := STUDY.read_record("sweep")):
        raise UserError(f"there is no {display_path(STUDY.record('sweep'))}; `make sequence-sweep` measures it")
    kinds = dict.fromkeys((row["cell"], row["dtype"], row["maths"]) for row in record["rows"])
    for cell, dtype, maths in kinds:
        if len({(row["T"], row["B"], row["S"]) for row in rows_of(record, cell, dtype, maths)}) > 1:
            picture = PICTURES / f"sequence_sweep_{cell}_{'tf32' if maths == 'TF32' else dtype}.svg"
            with pyplot.rc_context({"svg.hashsalt": picture.stem}):  # the same names of parts in every run
                plot_sweep(record, cell, dtype, maths).savefig(picture, metadata={"Date": None})
            print(display_path(picture))


if __name__ == "__main__":
    main()
