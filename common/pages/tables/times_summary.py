"""How long the notebooks and exercises take, in a sentence each for the README."""

from __future__ import annotations

import re

from ...exercises import every, find
from ..notebooks import NOTEBOOKS, notebook_sources

CORE = (
    "01_python",
    "02_aten",
    "03_cuda_pointers",
    "03b_kernel_in_torch",
    "03c_threads_together",
    "05_custom_op",
    "06_fused",
    "06b_speed_of_a_copy",
)
CORE_EXERCISES = ("2/forward", "3/guard", "3/forward_kernel", "3/missing_barrier", "5/register", "6/sixteen_bytes")
MINUTES = {"half an hour": 30, "an hour": 60, "an hour and a quarter": 75}
TAKES = re.compile(r"notebook takes about (?:(\d+) minutes|([a-z ]+?))[,.]")


def times_summary() -> str:
    """Two sentences, about everything and about a core path, from the times that notebooks and exercises state."""
    reading = {source.stem: reading_minutes(source.stem) for source in notebook_sources()}
    exercises = every()
    core = sum(reading[name] for name in CORE) + sum(find(name).minutes for name in CORE_EXERCISES)
    names = ", ".join(f"`{name.partition('_')[0]}`" for name in CORE)
    return (
        f"Reading all notebooks takes about {hours(sum(reading.values()))} hours, and the {len(exercises)} exercises "
        f"{hours(sum(one.minutes for one in exercises))}. A core path of {hours(core)} hours: the notebooks {names}, "
        f"with the exercises {', '.join(f'`{name}`' for name in CORE_EXERCISES)}."
    )


def reading_minutes(name: str) -> int:
    """The minutes that a notebook states in its introduction; 10 for one that states none."""
    lines = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8").splitlines()
    text = " ".join(line.removeprefix("# ") for line in lines[:60])
    found = TAKES.search(text)
    if not found:
        return 10
    return int(found[1]) if found[1] else MINUTES[found[2]]


def hours(minutes: int) -> int:
    """Minutes as whole hours."""
    return round(minutes / 60)
