"""What a check.py imports, and all that it imports of the workbook: functions that compare, and the learner's folder.

from common.exercises.judge import Failure, agree, cases, same

def check(work):
    agree(work.cell(), cases(work))
"""

from __future__ import annotations

from ..cell import reference
from ..cell.case import INPUTS, Case, input_gradients
from ..emulator import demangle
from ..errors import UserError
from ..paths import ROOT, build_dir
from ..stages import get_stage
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
from .judging.cell import SIZES, agree, cases, large_cells, nan_shows, no_silent_second_derivatives
from .judging.kernels import (
    enough_threads,
    few_reads,
    guarded,
    launched_once,
    no_idle,
    on_current_stream,
    stored_once,
    wide_indices,
)
from .judging.launches import (
    ORDERS,
    ROWS,
    a_block_for_each_row,
    checks_before_guard,
    count_differences,
    error_reported,
    large_batch,
    stream_under_guard,
    tensors_on_device_1,
    whole_warps,
)
from .judging.mistakes import likely_mistake
from .judging.programs import printed
from .judging.repeats import backward_twice, call_in_between, nothing_kept, results_kept
from .judging.second_derivatives import right_or_refused
from .judging.source_text import find_host_calls
from .judging.toolchain import commands
from .judging.work import CALLS, OPERATORS, SMALL, Work
from .runner.process import LearnerError, Stopped

__all__ = [
    "CALLS", "INPUTS", "OPERATORS", "ORDERS", "ROOT", "ROWS", "SIZES", "SMALL", "BuildFailure", "Case", "Failure",
    "LearnerError", "Stopped", "UserError", "Work", "a_block_for_each_row", "agree", "backward_twice", "build_dir",
    "call_in_between", "cases", "checks_before_guard", "commands", "count_differences", "demangle",
    "derived_by_hand", "digits_kept", "enough_threads", "error_reported", "few_reads", "find_host_calls",
    "get_stage", "guarded", "input_gradients", "large_batch", "large_cells", "launched_once", "likely_mistake",
    "made_by", "nan_shows", "no_idle", "no_silent_second_derivatives", "nothing_kept", "on_current_stream",
    "printed", "reference", "refused", "releases_gil", "require", "results_kept", "returned_numbers",
    "right_or_refused", "same", "stored_once", "stream_under_guard", "tensors_on_device_1", "unchanged",
    "whole_warps", "wide_indices",
]  # fmt: skip
