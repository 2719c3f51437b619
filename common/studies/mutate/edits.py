"""One small change to a text, and the names and numbers that are replaced in both Python and C++."""

from __future__ import annotations

import re
from typing import NamedTuple

OTHER_NAMES = {
    "min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "fminf": "fmaxf", "fmaxf": "fminf",
    "exp": "expm1", "expm1": "exp", "sigmoid": "tanh", "tanh": "sigmoid", "zeros": "empty",
    "zeros_like": "empty_like",
    "true": "false", "false": "true", "threadIdx": "blockIdx", "blockIdx": "threadIdx", "blockDim": "gridDim",
    "gridDim": "blockDim",
}  # fmt: skip


class Edit(NamedTuple):
    """Replaces the text from one offset to another."""

    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """The text with this change."""
        return text[: self.start] + self.new + text[self.end :]


def other_number(literal: str) -> str | None:
    """Another number, as a literal: 1 for 0, 0 for 1, otherwise one more; None if the literal is not decimal."""
    if found := re.fullmatch(r"(\d+)([uUlL]*)", literal):
        return f"{0 if int(found[1]) == 1 else int(found[1]) + 1}{found[2]}"
    if found := re.fullmatch(r"([\d.]+(?:e-?\d+)?)([fF]?)", literal):
        return f"{float(found[1]) + 1}{found[2]}"
    return None


def swap(text: str, first: tuple[int, int], second: tuple[int, int]) -> Edit:
    """Swaps two parts of a text; the second one comes after the first."""
    (a, b), (c, d) = first, second
    return Edit(a, d, text[c:d] + text[b:c] + text[a:b])
