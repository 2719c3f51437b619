"""Why a check fails."""

from __future__ import annotations


class Failure(AssertionError):
    """The exercise is not solved; the message is what the learner sees."""


class BuildFailure(Failure):
    """The learner's code does not build."""


def require(condition: bool, message: str) -> None:
    """Raises `Failure` with the message unless the condition holds."""
    if not condition:
        raise Failure(message)
