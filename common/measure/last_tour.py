"""The last measurement of `make tour`, which the tour shows again while nothing that it depends on has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from .. import console
from ..cell.case import Case
from ..errors import UserError
from ..results import records
from ..results.rows import is_disturbed
from . import cell_times
from .cell_times import Plan
from .sequence import times

CONFIGURATION = ("cell", "T", "B", "I", "S", "dtype", "maths")
size_of, configuration_of = itemgetter("B", "I", "S"), itemgetter(*CONFIGURATION)


def find_last(plan: Plan, device: str, sources: Mapping[str, str]) -> dict | None:
    """The last measurement of this plan, if it is whole, and nothing has changed since or disturbed it.

    `sources` are the hashes of the stages by their numbers, as in a record.
    """
    try:
        last = records.read_measured()
    except UserError:  # damaged, or of another version of the workbook
        return None
    if not last or not last["quick"] or facts_of(last) != facts_of(records.start_record(dict(sources))):
        return None
    wanted = times.TOUR.configurations[device] if "7" in sources else ()
    measured = {size_of(row) for row in last["rows"] if row["device"] == device}
    sequences = {configuration_of(row) for row in last["sequences"] if row["device"] == device}
    is_whole = measured == set(plan.sizes[device]) and len(sequences) == len(wanted)
    return last if is_whole and not any(map(is_disturbed, last["rows"] + last["sequences"])) else None


def facts_of(record: dict) -> tuple[dict, dict, dict]:
    """What the times of a record depend on. The clocks are those of the moment, so they do not count."""
    machine = {name: value for name, value in record["machine"].items() if name != "gpu_clocks_mhz"}
    return record["sources"], machine, record["versions"]


def show_again(last: dict) -> None:
    """Prints the tables of a measurement that `find_last` has returned."""
    date = datetime.fromisoformat(last["date"].replace("Z", "+00:00")).astimezone()
    console.say(f"  measured on {date:%Y-%m-%d at %H:%M}; nothing has changed since (`make bench` measures again)")
    for table in tables_of(last):
        console.say(table)


def tables_of(result: dict) -> Iterator[str]:
    """A table with its title for each size and each sequence."""
    for (B, I, S), group in groupby(result["rows"], size_of):
        rows = list(group)
        title = cell_times.describe_case(Case(B, I, S, device=rows[0]["device"]))
        yield f"\n{title}:\n\n{cell_times.format_rows(rows)}"
    for facts, group in groupby(result["sequences"], configuration_of):
        rows = list(group)
        configuration = times.Configuration(**dict(zip(CONFIGURATION, facts, strict=True)))
        yield f"\n{times.describe(configuration, rows[0]['device'])}:\n\n{times.format_rows(rows)}"
