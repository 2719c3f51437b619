"""How many requests in a second the servers of stage 8's record answer.

`python -m common.studies.serving.chart` writes docs/pictures/serving.svg.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot
from matplotlib.figure import Figure

from ...figures.diagrams.cell_diagram import write_svg
from ...figures.plots import BLUE, STYLE, WIDTH
from ...paths import ROOT, display_path
from . import STUDY

PICTURE = ROOT / "docs" / "pictures" / "serving.svg"


def draw_requests(record: dict) -> Figure:
    """A bar for each server, with as many clients at once as the record has."""
    clients = max(row["clients"] for row in record["rows"])
    rows = [row for row in record["rows"] if row["clients"] == clients][::-1]
    with pyplot.rc_context(STYLE | {"axes.grid": False}):
        figure = pyplot.figure(figsize=(WIDTH, 0.5 * len(rows) + 1.1), layout="constrained")
        axes = figure.subplots()
    pyplot.close(figure)  # otherwise a notebook would show it twice
    bars = axes.barh([row["name"] for row in rows], [row["per_second"] for row in rows], color=BLUE)
    labels = [f"{row['per_second']:,} (median {row['p50_ms']:.1f} ms, 99 %: {row['p99_ms']:.1f} ms)" for row in rows]
    axes.bar_label(bars, labels, padding=4)
    axes.set_xlim(0, 1.7 * max(row["per_second"] for row in rows))
    axes.set_xlabel("requests in a second")
    facts = record["machine"]["cpu"], f"{record['machine']['cores']} cores", record["date"][:10]
    axes.set_title(
        f"{clients} clients at once, sequences of {record['steps']} steps ({', '.join(facts)})", loc="left"
    )
    return figure


def write_chart(path: Path = PICTURE) -> Path:
    """Writes the picture of the recorded times; returns its path."""
    return write_svg(draw_requests(STUDY.read_record()), path)


if __name__ == "__main__":
    print(display_path(write_chart()))
