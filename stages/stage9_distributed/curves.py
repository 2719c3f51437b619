"""The history of a training as a picture."""

import json
from pathlib import Path


def write_history(folder, history, title):
    """Writes `history.json` and the picture `loss.svg` to a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "history.json").write_text(json.dumps(history, indent=1) + "\n")
    plot_history(history, title).savefig(folder / "loss.svg")


def plot_history(history, title):
    """A figure of the losses on the training and the test samples, and of the share of correct answers, by step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.2), layout="constrained")
    losses, accuracies = figure.subplots(1, 2)
    steps = [row["step"] for row in history]
    losses.plot(steps, [row["loss"] for row in history], label="training")
    losses.plot(steps, [row["test_loss"] for row in history], label="test")
    losses.set_yscale("log")
    losses.set_ylabel("mean loss")
    losses.legend(frameon=False)
    accuracies.plot(steps, [row["accuracy"] for row in history])
    accuracies.set_ylim(0, 1)
    accuracies.set_ylabel("correct answers on the test samples")
    for axes in (losses, accuracies):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left")
    return figure
