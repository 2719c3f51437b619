"""The table of recorded sequences: stage 7 beside torch's module, the eager loop and the fastest other."""

from __future__ import annotations

from collections.abc import Sequence

from ...results import records
from ...results.formatting import marked_name
from ...results.rows import device_name, is_peer, speedup, unique
from ..markdown import markdown_table
from ..sequence_section import by_configuration, describe_numbers

FASTEST = ["fastest other", "stage 7", "times as fast", "peak", "peak of stage 7"]
HEADER = ["", "pass", "torch's module", "eager loop", *FASTEST]
OWN = "stage 7"
NONE = "–"


def sequences_table() -> str:
    """A table for each recorded machine and device: a line for each configuration and pass."""
    parts = []
    for result in records.read_recorded():
        rows = result.get("sequences", [])
        for device in unique(rows, "device"):
            groups = by_configuration([row for row in rows if row["device"] == device])
            lines = [line for group in groups for line in configuration_lines(group, result)]
            parts.append(f"{describe_run(result, device)}\n\n{markdown_table(HEADER, lines, left=2)}")
    return "\n\n".join(parts) if parts else "Nothing recorded yet."


def describe_run(result: dict, device: str) -> str:
    """Where (in bold) and when sequences were measured."""
    torch = result["versions"]["torch"].partition("+")[0]
    return f"**{device_name(result, device)}**, {device.upper()} tensors, torch {torch}, {result['date'][:10]}"


def configuration_lines(group: Sequence[dict], result: dict) -> list[list[str]]:
    """The two passes of a configuration, if stage 7 ran."""
    lines = []
    for own in (row for row in group if row["name"] == OWN):
        others = [row for row in group if row["pass"] == own["pass"] and is_peer(row)]
        fastest = min(others, key=lambda row: row["ratio"], default=None)
        size = " ".join(f"{name}{own[name]}" for name in ("T", "B", "I", "S"))
        lines.append([
            f"{own['cell'].upper()} {size}, {describe_numbers(own)}",
            own["pass"],
            milliseconds(next((row for row in others if row["name"].startswith(("cuDNN", "torch.nn"))), None)),
            milliseconds(next((row for row in others if row["name"] == "eager loop"), None)),
            f"{fastest['name']} {milliseconds(fastest)}" if fastest else NONE,
            milliseconds(own) + marked_name(own, result).removeprefix(OWN),
            f"{speedup(own, fastest):.1f}" if fastest else NONE,
            mebibytes(fastest),
            mebibytes(own),
        ])  # fmt: skip
    return lines


def milliseconds(row: dict | None) -> str:
    """A median in milliseconds."""
    return f"{row['median'] / 1e3:,.2f}" if row else NONE


def mebibytes(row: dict | None) -> str:
    """The most memory that a training step has in use."""
    return f"{row['peak_bytes'] / 2**20:,.0f} MiB" if row else NONE
