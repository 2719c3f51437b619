"""The exercises: found, copied into a learner's folder, and checked. docs/teaching.md says how to add one.

from common.exercises import every, find
from common.exercises.checking import check_folder
from common.exercises import show  # in a notebook: show("3/guard")
"""

from .catalogue import every, find
from .exercise import Exercise
from .table import show

__all__ = ["Exercise", "every", "find", "show"]
