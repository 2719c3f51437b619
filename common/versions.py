"""Versions of packages and programs, compared as numbers."""

from __future__ import annotations

import importlib.metadata
import re

OLDEST_TORCH = "2.11"
OLDEST_BUBBLEWRAP = "0.8"  # the first that can forbid new namespaces inside
OLDEST_GXX = "10"  # the first to know -std=c++20, which torch passes


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version without trailing zeros, so that 2.11 equals 2.11.0: (2, 11) for 2.11.0a0+cpu."""
    numbers = [int(number) for number in re.match(r"\d+(?:\.\d+)*", version)[0].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def installed_version(name: str) -> str | None:
    """The version of an installed package; None if this Python has none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
