"""Stage 9's scaling as a picture: the time of a step beside the ideal, and the communication in one step.

`python -m common.studies.distributed.scaling_chart` writes docs/pictures/scaling.svg.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...figures.diagrams.cell_diagram import write_svg
from ...figures.plots import BLUE, GREEN, INK, PURPLE, SKY, STYLE, VERMILION, WIDTH
from ...paths import ROOT, display_path
from . import STUDY
from .traces import TRACE_KINDS, ideal_step, intersect, merge, select

PICTURE = ROOT / "docs" / "pictures" / "scaling.svg"
COLOURS = {"weak": BLUE, "strong": PURPLE}


def plot_scaling(record: dict) -> Figure:
    """Left, the time of a step for each number of GPUs. Right, a step with the same batch on most GPUs."""
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(WIDTH, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
    pyplot.close(figure)  # otherwise a notebook would show it twice
    plot_steps(left, record["rows"])
    most = max(row["processes"] for row in record["rows"])
    plot_trace(right, record["traces"][f"strong {most}"])
    right.set_title(f"one step on {most} GPUs, batch {record['plan']['strong_batch']}", loc="left")
    plan, version = record["plan"], record["versions"]["torch"].partition("+")[0]
    network = f"stage 7's LLTM, {plan['layers']} layers of {plan['state']} units, sequences of {record['steps']}"
    where = f"{record['machine']['gpu']}, torch {version}"
    figure.suptitle(f"A training step of {network}\n{where}", x=0.01, ha="left")
    return figure


def plot_steps(axes: Axes, rows: Sequence[dict]) -> None:
    """A bar for each measurement, with a mark where the ideal would be."""
    for y, row in enumerate(rows):
        ideal = ideal_step(row, rows)
        axes.barh(y, row["step"] / 1e3, color=COLOURS[row["scaling"]])
        axes.plot([ideal / 1e3] * 2, [y - 0.4, y + 0.4], color=INK, linestyle=":", linewidth=2)
        share = f", efficiency {ideal / row['step']:.0%}" if row["processes"] > 1 else ""
        axes.text(row["step"] / 1e3, y, f"  {row['step'] / 1e3:.1f} ms{share}", va="center")
    axes.set_yticks(range(len(rows)), [describe_row(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, 1.6 * max(row["step"] for row in rows) / 1e3)
    axes.set_title("time of a step; dotted: the ideal", loc="left")
    axes.set_xlabel("milliseconds")


def describe_row(row: dict) -> str:
    """A measurement as the label of a bar."""
    gpus = "1 GPU" if row["processes"] == 1 else f"{row['processes']} GPUs"
    return f"{row['scaling']}, {gpus}, batch {row['batch']}"


def plot_trace(axes: Axes, trace: Sequence[tuple[str, float, float]]) -> None:
    """When a GPU computed, and when NCCL's kernels exchanged gradients, alone or while others computed."""
    compute, communication = (merge(select(trace, kind)) for kind in TRACE_KINDS)
    bars = (
        (0, compute, GREEN, None),
        (1, communication, VERMILION, "nothing else runs"),
        (1, intersect(communication, compute), SKY, "hidden by computing"),
    )
    for y, intervals, colour, label in bars:
        spans = [(start / 1e3, (end - start) / 1e3) for start, end in intervals]
        axes.broken_barh(spans, (y - 0.3, 0.6), color=colour, label=label)
    axes.set_yticks([0, 1], ["computing", "exchanging\ngradients"])
    axes.set_ylim(2.1, -0.5)
    axes.legend(loc="lower left", frameon=False)
    axes.set_xlabel("milliseconds since the first kernel of the step")


def main() -> int:
    """Writes the picture."""
    write_svg(plot_scaling(STUDY.read_record("scaling")), PICTURE)
    print(f"{display_path(PICTURE)} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
