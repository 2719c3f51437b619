"""The exercises: found, made into a learner's folder, checked. docs/teaching.md says how to add one.

from common.exercises import every, find
from common.exercises.checking import check
from common.exercises import show  # in a notebook: show("3/guard")
"""

from .exercise import Exercise, every, find
from .table import show

__all__ = ["Exercise", "every", "find", "show"]
