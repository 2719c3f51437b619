"""Two pictures of one step of a persistent recurrence: who computes which units, and where its time goes."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from ...figures.plots import BLUE, GREEN, INK, ORANGE, SKY, STYLE, VERMILION, WIDTH
from .sweep_chart import rows_of

# The step that is drawn, of an LSTM in bfloat16: chains of 16 blocks and 8 rows, with 512 bytes from each block.
BATCH, STATE, BLOCKS, BYTES = 32, 512, 16, 512


def plot_exchange(blocks: int = 4) -> Figure:
    """Blocks with their slices of the weights, and h, which goes from every block to every block in each step."""
    with pyplot.rc_context(STYLE | {"axes.grid": False}):
        figure, axis = pyplot.subplots(figsize=(WIDTH, 4.2), layout="constrained")
    pyplot.close(figure)  # otherwise a notebook would show it twice
    colours = (SKY, ORANGE, GREEN, VERMILION)
    for k in range(blocks):
        x, fill = 2.5 * k, colours[k % len(colours)]
        axis.add_patch(Rectangle((x, 2.3), 2, 1.5, fc=fill, alpha=0.35, ec=INK))
        axis.text(x + 1, 3.5, f"block {k}", ha="center", va="center", weight="bold")
        axis.text(x + 1, 2.9, f"weights of\nslice {k} of the units\n(on chip, all steps)", ha="center", va="center")
        for part in range(blocks):  # the whole h of the next step, in this block
            width = 2 / blocks
            axis.add_patch(
                Rectangle((x + part * width, 0), width, 0.5, fc=colours[part % len(colours)], alpha=0.6, ec=INK)
            )
            start, end = (2.5 * part + 1, 2.3), (x + (part + 0.5) * width, 0.52)
            colour = colours[part % len(colours)]
            axis.add_patch(
                FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=colour, linewidth=1.3)
            )
        axis.text(x + 1, -0.3, "all of h, for the next step", ha="center", va="center")
    axis.set_xlim(-0.1, 2.5 * blocks - 0.4)
    axis.set_ylim(-0.6, 4)
    axis.axis("off")
    return figure


def parts_of_step(sweep: dict, limits: dict) -> dict[str, float]:
    """Microseconds of a step of the rung `cluster`, from the records of the sweep and of the limits of a step.

    The whole step is the difference between 512 and 128 steps, so that the launch does not count.
    """
    times = {
        row["T"]: row["median"]
        for row in rows_of(sweep)
        if (row["B"], row["S"], row["name"], row["pass"]) == (BATCH, STATE, "stage 7, cluster", "forward")
    }
    product = limit_of(limits, "product", columns=STATE)
    exchange = limit_of(limits, "exchange by asynchronous stores", blocks=BLOCKS, bytes=BYTES)
    step = (times[512] - times[128]) / (512 - 128)
    return {"product": product, "gates, loads and stores": step - product - exchange, "exchange": exchange}


def limit_of(limits: dict, name: str, **parameters: int) -> float:
    """A time of the record of limits, in microseconds."""
    (found,) = (row["ns"] for row in limits["rows"] if row["name"] == name and parameters.items() <= row.items())
    return found / 1e3


def plot_step(sweep: dict, limits: dict) -> Figure:
    """The parts of one step of the cluster rung, and the two barriers that others would need."""
    with pyplot.rc_context(STYLE | {"axes.grid": False}):
        figure, axis = pyplot.subplots(figsize=(WIDTH, 2.6), layout="constrained")
    pyplot.close(figure)
    start = 0.0
    for (name, time), colour in zip(parts_of_step(sweep, limits).items(), (BLUE, GREEN, ORANGE), strict=True):
        axis.barh(2, time, left=start, color=colour, ec="white")
        axis.text(start + time / 2, 2, f"{name}\n{time:.2f}", ha="center", va="center", color="white")
        start += time
    barriers = (
        limit_of(limits, "barrier of a cluster after stores to global memory", blocks=BLOCKS),
        limit_of(limits, "barrier by a counter in global memory", blocks=BLOCKS),
    )
    for y, time in zip((1, 0), barriers, strict=True):
        axis.barh(y, time, color=VERMILION, ec="white")
        axis.text(time / 2, y, f"{time:.2f}", ha="center", va="center", color="white")
    axis.set_yticks(
        [2, 1, 0],
        ["a step of the rung cluster", "a barrier of a cluster", "a barrier by a counter\nin global memory"],
    )
    step_gpu, limits_gpu = (record["machine"]["gpu"].removeprefix("NVIDIA ").split()[0] for record in (sweep, limits))
    axis.set_xlabel(
        f"microseconds (LSTM, bfloat16, B{BATCH} S{STATE}; the whole step on an {step_gpu},\n"
        f"product, exchange and barriers alone on an {limits_gpu})"
    )
    axis.spines[["top", "right"]].set_visible(False)
    return figure
