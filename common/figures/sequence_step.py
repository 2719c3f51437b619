"""Two pictures of one step of a persistent recurrence: who computes which units, and where its time goes."""

from __future__ import annotations

from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from .plots import BLUE, GREEN, INK, ORANGE, SKY, STYLE, VERMILION, WIDTH

# Microseconds on an H100: LSTM, bfloat16, T128 B64 S512, chains of 16 blocks. The product, the exchange and the
# barriers are from common/studies/sequence/step_limits.cu, the pointwise part (about 1 us) from driver.cu beside it.
PRODUCT, POINTWISE, EXCHANGE = 0.35, 1.0, 0.50
CLUSTER_BARRIER, COUNTER_BARRIER = 0.50, 0.87


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


def plot_step() -> Figure:
    """The parts of one step of the cluster rung, and the two barriers that others would need."""
    with pyplot.rc_context(STYLE | {"axes.grid": False}):
        figure, axis = pyplot.subplots(figsize=(WIDTH, 2.6), layout="constrained")
    pyplot.close(figure)
    start = 0.0
    for name, time, colour in (
        ("product", PRODUCT, BLUE),
        ("pointwise", POINTWISE, GREEN),
        ("exchange", EXCHANGE, ORANGE),
    ):
        axis.barh(2, time, left=start, color=colour, ec="white")
        axis.text(
            start + time / 2,
            2,
            f"{name}\n{'about 1' if name == 'pointwise' else f'{time:.2f}'}",
            ha="center",
            va="center",
            color="white",
        )
        start += time
    for y, time in ((1, CLUSTER_BARRIER), (0, COUNTER_BARRIER)):
        axis.barh(y, time, color=VERMILION, ec="white")
        axis.text(time / 2, y, f"{time:.2f}", ha="center", va="center", color="white")
    axis.set_yticks(
        [2, 1, 0],
        ["a step of the rung cluster", "a barrier of a cluster", "a barrier by a counter\nin global memory"],
    )
    axis.set_xlabel("microseconds (H100, LSTM, bfloat16, T128 B64 S512)")
    axis.spines[["top", "right"]].set_visible(False)
    return figure
