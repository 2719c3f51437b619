"""What a check.py imports: `Work`, which is the learner's folder during a check, and functions that compare.

from common.exercises.judge import Failure, agree, cases, same

def check(work):
    agree(work.cell(), cases(work))
"""

from __future__ import annotations

from ..cell.case import Case
from .failures import BuildFailure, Failure, require
from .judging.assertions import (
    derived_by_hand,
    digits_kept,
    made_by,
    refused,
    releases_gil,
    returned_numbers,
    same,
    unchanged,
)
from .judging.cell import SIZES, agree, cases, no_silent_second_derivatives
from .judging.kernels import (
    enough_threads,
    guarded,
    launched_once,
    no_idle,
    on_current_stream,
    stored_once,
    wide_indices,
)
from .judging.mistakes import likely_mistake
from .judging.second_derivatives import right_or_refused
from .judging.source_text import find_host_calls
from .judging.work import CALLS, OPERATORS, SMALL, Work
from .runner.process import LearnerError, Stopped

__all__ = [
    "CALLS", "OPERATORS", "SIZES", "SMALL", "BuildFailure", "Case", "Failure", "LearnerError", "Stopped", "Work",
    "agree", "cases", "derived_by_hand", "digits_kept", "enough_threads", "find_host_calls", "guarded",
    "launched_once", "likely_mistake", "made_by", "no_idle", "no_silent_second_derivatives", "on_current_stream",
    "refused", "releases_gil", "require", "returned_numbers", "right_or_refused", "same", "stored_once", "unchanged",
    "wide_indices",
]  # fmt: skip
