"""The exercises: found, made into a learner's folder, checked. docs/teaching.md says how to add one.

from common.exercises import every, find
from common.exercises.checking import check
"""

from .exercise import Exercise, every, find

__all__ = ["Exercise", "every", "find"]
