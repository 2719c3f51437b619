"""Stage 9's trainings as a picture: what each cell learns, and how long each stage takes for it.

`python -m common.studies.distributed.training_chart` writes docs/pictures/training.svg.
"""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ...figures.diagrams.cell_diagram import write_svg
from ...figures.plots import BLUE, GREEN, STYLE, VERMILION, WIDTH
from ...paths import ROOT, display_path
from . import STUDY

PICTURE = ROOT / "docs" / "pictures" / "training.svg"
CELLS = {"lltm": ("LLTM", BLUE), "lstm": ("LSTM", VERMILION), "gru": ("GRU", GREEN)}
TASKS = {
    "rows": "Handwritten digits, read row by row (8 steps)",
    "digits": "Handwritten digits, read pixel by pixel (64 steps)",
    "adding": "The adding problem with 50 steps",
}


def plot_training(record: dict) -> Figure:
    """Left, the accuracy by step, a line for each stage in the colour of its cell. Right, the seconds of each."""
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(WIDTH, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
    pyplot.close(figure)  # otherwise a notebook would show it twice
    for row in record["rows"]:
        _, colour = CELLS[row["cell"]]
        history = row["history"]
        left.plot([one["step"] for one in history], [one["accuracy"] for one in history], color=colour, alpha=0.6)
    left.set_title("correct answers on the test samples, a line for each stage", loc="left")
    left.set_xlabel("step")
    left.yaxis.set_major_formatter(PercentFormatter(1.0))
    left.grid(axis="both")
    names = [f"{CELLS[row['cell']][0]}, {describe_stage(row['stage'])}" for row in record["rows"]]
    seconds = [row["seconds"] for row in record["rows"]]
    right.barh(range(len(names)), seconds, color=[CELLS[row["cell"]][1] for row in record["rows"]])
    right.set_yticks(range(len(names)), names)
    right.set_ylim(len(names) - 0.5, -0.5)
    for y, row in enumerate(record["rows"]):
        text = f" {row['seconds']:.1f} s, {row['history'][-1]['accuracy']:.1%} correct"
        right.text(row["seconds"], y, text, va="center")
    right.set_xlim(0, 1.8 * max(seconds))
    right.set_title(f"time of {record['steps']:,} steps", loc="left")
    right.set_xlabel("seconds")
    where = record["machine"]["gpu"] or f"{record['machine']['cpu']}, {record['threads']} threads"
    version = record["versions"]["torch"].partition("+")[0]
    figure.suptitle(f"{TASKS[record['task']]}, 64 units\n{where}, torch {version}", x=0.01, ha="left")
    return figure


def describe_stage(stage: str) -> str:
    """A stage as the label of a bar."""
    return "torch.nn" if stage == "nn" else f"stage {stage}"


def main() -> int:
    """Writes the picture."""
    write_svg(plot_training(STUDY.read_record("training")), PICTURE)
    print(f"{display_path(PICTURE)} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
