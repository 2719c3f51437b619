"""What each part of the primer is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Check(NamedTuple):
    """One line of `make stage-0`.

    `run` returns what was seen, such as "gradcheck of 5 arguments", and raises AssertionError with a plain sentence
    when something is wrong. It draws its numbers from torch's generator, which is seeded before each check.
    """

    what: str
    run: Callable[[], str]
