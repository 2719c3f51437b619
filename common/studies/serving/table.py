"""The times of stage 8's server beside those of the same model in Python."""

from __future__ import annotations

import json

from ...pages.markdown import markdown_table
from ...results.rows import unique
from .recorder import hash_sources, record_path

NOTHING = "Nothing is recorded yet: `make serving`."
STALE = "\n\nStale: the sources have changed since this was measured."


def serving_table() -> str:
    """A table for each recorded device."""
    recorded = [path for device in ("cpu", "cuda") if (path := record_path(device)).exists()]
    return "\n\n".join(device_table(json.loads(path.read_text())) for path in recorded) or NOTHING


def device_table(record: dict) -> str:
    """A line for each way to call the model, with columns for each number of clients."""
    rows, machine = record["rows"], record["machine"]
    clients = unique(rows, "clients")
    found = {(row["name"], row["clients"]): row for row in rows}
    header = [""]
    for count in clients:
        who = f"{count} client{'s' * (count > 1)}"
        header += [f"{who}: median", "99 %", "per second"]
    lines = [
        [name, *(cell for count in clients for cell in cells(found.get((name, count))))]
        for name in unique(rows, "name")
    ]
    hardware = [machine["gpu"]] * (record.get("device") == "cuda") + [machine["cpu"]]
    origin = (
        f"{', '.join(hardware)}, {machine['cores']} cores, torch {record['versions']['torch']}, "
        f"{record['date'][:10]}. Sequences of {record['steps']} steps; the times are milliseconds."
    )
    stale = STALE if record["sources"] != hash_sources() else ""
    return f"{origin}\n\n{markdown_table(header, lines)}{stale}"


def cells(row: dict | None) -> list[str]:
    """The median, the 99th percentile and the rate of a row; empty if it was not measured."""
    return [f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", str(row["per_second"])] if row else [""] * 3
