"""What the recorded times come to, in a few sentences for the README: each gain is over the strongest peer, too."""

from __future__ import annotations

from collections.abc import Iterator

from ...figures.ladder_chart import NOT_MEASURED
from ...results import records
from ...results.formatting import find_same_case, format_speedups
from ...results.rows import GRAPH_PEERS, is_peer, select, size_label, speedup, unique
from ..sequence_section import by_configuration, describe_numbers
from .ladder import NOTHING
from .sequences_table import OWN

BOTH = "forward+backward"
PEERS = (
    "Blue bars are stages. Grey bars are their *peers*, which need no C++: `torch.compile`, Triton, and *CUDA "
    "graphs*, which replay all kernels of a call at once."
)
WHY_5_IS_SLOWER = (
    "Stage 5 ({:.2f}) is slower than stage 3 ({:.2f}), because torch runs Python code for its registered gradient in "
    "every call; stage 6 moves this code to C++."
)


def headline() -> str:
    """The fastest stage beside eager and its strongest peer, stage 5 beside stage 3, and sequences by their dtype.

    All are of the first recorded GPU.
    """
    recorded = records.read_recorded()
    cells = next((one for one in recorded if select(one, device="cuda", grads="all")), None)
    sequences = next((one for one in recorded if any(map(is_lstm, one.get("sequences", [])))), None)
    parts = [PEERS, " ".join(cell_sentences(cells))] if cells else []
    parts += sequence_sentences(sequences) if sequences else []
    return "\n\n".join(parts) or NOTHING


def cell_sentences(result: dict) -> Iterator[str]:
    """Forward and backward of one call, at the smallest and the largest measured size."""
    rows = [row for row in select(result, device="cuda", grads="all") if row["pass"] == BOTH]
    small, *_, large = unique(rows)
    of_small = {row["stage"]: row for row in rows if size_label(row) == small and row["stage"] is not None}
    best = min(of_small.values(), key=lambda row: row["ratio"])
    at_large = find_same_case(rows, next(row for row in rows if size_label(row) == large), best["name"])
    yield f"**At {small}, stage {best['stage']} is {format_speedups(best, rows)}.**"
    if missing := [name for name in GRAPH_PEERS if find_same_case(rows, best, name) is None]:
        yield f"({' and '.join(missing)}: {NOT_MEASURED}.)"
    if at_large and large != small:
        yield f"At {large}, where the time is that of the matrix products, it is {format_speedups(at_large, rows)}."
    if {3, 5} <= of_small.keys() and of_small[5]["ratio"] > of_small[3]["ratio"]:
        yield WHY_5_IS_SLOWER.format(*(1 / of_small[stage]["ratio"] for stage in (5, 3)))


def is_lstm(row: dict) -> bool:
    """Whether a row is of an LSTM's training step on a GPU, with which stage 7 is compared."""
    return (row["device"], row["cell"], row["pass"]) == ("cuda", "lstm", BOTH)


def sequence_sentences(result: dict) -> Iterator[str]:
    """Stage 7's LSTM in each kind of numbers, at the first size of each, beside the fastest other implementation."""
    gains: dict[str, str] = {}
    for group in by_configuration([row for row in result["sequences"] if is_lstm(row)]):
        own = next((row for row in group if row["name"] == OWN), None)
        others = [row for row in group if is_peer(row)]
        if own and others:
            fastest = min(others, key=lambda row: row["ratio"])
            gains.setdefault(describe_numbers(own), f"{speedup(own, fastest):.2f} ({fastest['name']})")
    if gains:
        missing = [f"{numbers} ({NOT_MEASURED})" for numbers in ("bfloat16", "float16") if numbers not in gains]
        listed = ", ".join([*(f"{gain} in {numbers}" for numbers, gain in gains.items()), *missing])
        yield (
            "Stage 7 computes a whole sequence in one call. Forward and backward of an LSTM are this many times as "
            f"fast as the fastest other implementation: {listed}."
        )
