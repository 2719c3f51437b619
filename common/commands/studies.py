"""Commands that record a study and print its table as it will appear on the pages."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..console import say
from ..pages.tables.serving_table import serving_table
from ..pages.tables.tools.tool_comparison_table import tool_comparison_table
from ..pages.tables.wheels_table import wheels_table
from ..studies import tool_comparison, wheels
from ..studies.serving import times as serving_times


def compare_tools() -> int:
    """Records which tool finds which mistake; always 0."""
    status = tool_comparison.record_tool_comparison()
    say(tool_comparison_table())
    return status


def try_wheels(pythons: Sequence[str], torches: Sequence[str] | None) -> int:
    """Records which wheel runs with which Python and torch; always 0."""
    status = wheels.record_wheels(pythons, torches)
    say(wheels_table())
    return status


def measure_serving() -> int:
    """Records the times of stage 8's server; always 0."""
    status = serving_times.record_serving("cpu")
    if torch.cuda.is_available():
        status |= serving_times.record_serving("cuda")
    say(serving_table())
    return status
