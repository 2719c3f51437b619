"""Names the mistake behind wrong results, when a check knows what each mistake would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


def likely_mistake(
    mistakes: Iterable[str], result_with: Callable[[Any, str], Any], scenarios: Sequence, found: Sequence, failed: Any
) -> str:
    """The mistake that would give what was found in the failed scenario, and in most others; empty if none would.

    `result_with(scenario, mistake)` is what a mistake would give. `found` may end before the scenarios do.
    """

    def explained(mistake: str) -> int:
        return sum(result_with(one, mistake) == got for one, got in zip(scenarios, found, strict=False))

    possible = [one for one in mistakes if result_with(failed, one) == found[scenarios.index(failed)]]
    best = max(possible, key=explained, default="")
    return best if best and 2 * explained(best) > len(found) else ""
