"""The sweep of sequences as a picture: at each size, which implementation is fastest and how it compares with cuDNN.

`python -m common.figures.sequence_sweep` writes docs/pictures/sequence_sweep_DTYPE.svg for each dtype of the record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..errors import UserError
from ..paths import ROOT, display_path
from ..results import records
from ..results.formatting import PASSES
from ..results.rows import unique
from .plots import BLUE, GREEN, ORANGE, SKY, STYLE, VERMILION, WIDTH

PICTURES = ROOT / "docs" / "pictures"
COLOURS = {
    "cuDNN LSTM": "#b3b3b3",
    "stage 7, loop": SKY,
    "stage 7, graph": ORANGE,
    "stage 7, grid": GREEN,
    "stage 7, cluster": VERMILION,
    "stage 7": BLUE,
}


def plot_sweep(record: dict, dtype: str) -> Figure:
    """A panel for each number of steps and each pass: batch by state.

    The colour is the fastest implementation by its name (stage 7's rungs and cuDNN), the number how many times as
    fast as cuDNN stage 7 is with the rung that it chooses itself.
    """
    rows = [row for row in record["rows"] if row["dtype"] == dtype]
    if not rows:
        raise UserError(f"the sweep has no {dtype}")
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
    maths = f" ({rows[0]['maths']})" if dtype == "float32" else ""
    figure.suptitle(
        f"LSTM, {dtype}{maths}, as many inputs as units: how many times as fast as cuDNN stage 7 is\n"
        f"{', '.join(facts)}, {record['date'][:10]}",
        x=0.01, ha="left",
    )  # fmt: skip
    fastest = {fastest_rung(group)["name"] for group in by_size(rows)}
    keys = [Patch(color=colour, label=f"fastest: {name}") for name, colour in COLOURS.items() if name in fastest]
    figure.legend(handles=keys, loc="outside lower left", frameon=False, ncols=len(keys))
    return figure


def draw_panel(axis: Axes, rows: Sequence[dict], batches: list[int], states: list[int]) -> None:
    """The sizes of one number of steps and one pass as coloured squares, with stage 7's speed-up in each.

    The panels share their axes: those of all batches and states, also of sizes that were not measured here.
    """
    for group in by_size(rows):
        x, y = states.index(group[0]["S"]), batches.index(group[0]["B"])
        axis.add_patch(
            pyplot.Rectangle((x - 0.5, y - 0.5), 1, 1, fc=COLOURS[fastest_rung(group)["name"]], ec="white")
        )
        if (speedup := speedup_over_cudnn(group)) is not None:
            axis.text(x, y, f"{speedup:.1f}" if speedup < 10 else f"{speedup:.0f}", ha="center", va="center")
    axis.set_xticks(range(len(states)), [f"{S}" for S in states])
    axis.set_yticks(range(len(batches)), [f"{B}" for B in batches])
    axis.set_xlim(-0.5, len(states) - 0.5)
    axis.set_ylim(-0.5, len(batches) - 0.5)
    axis.tick_params(length=0)


def by_size(rows: Sequence[dict]) -> list[list[dict]]:
    """The rows in groups of one size and pass."""
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
    times = {row["name"]: row["median"] for row in group}
    if "stage 7" not in times or "cuDNN LSTM" not in times:
        return None
    return times["cuDNN LSTM"] / times["stage 7"]


def main(path: Path = records.SWEEP_RECORD) -> None:
    """Draws every dtype of the record."""
    if not path.exists():
        raise UserError(f"there is no {display_path(path)}; `python -m common.studies.sequence.sweep` measures it")
    record = json.loads(path.read_text())
    for dtype in unique(record["rows"], "dtype"):
        picture = PICTURES / f"sequence_sweep_{dtype}.svg"
        plot_sweep(record, dtype).savefig(picture, metadata={"Date": None})
        print(display_path(picture))


if __name__ == "__main__":
    main()
