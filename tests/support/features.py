"""Compares the recordings of two builds of `record`: bit for bit, or within the ulp that a feature allows.

    python tests/support/features.py emulator.json h200.json

Prints a line for each feature that differs; the exit status is then 1.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

FORMATS = {"floats": ("<I", "<f"), "doubles": ("<Q", "<d")}


def value(bits: int, kind: str) -> float:
    """The number that the bits represent."""
    if kind == "integers":
        return bits
    as_bits, as_float = FORMATS[kind]
    return struct.unpack(as_float, struct.pack(as_bits, bits))[0]


def ulps_apart(a: int, b: int, kind: str) -> float:
    """The distance in representable numbers between two floats given as bits; it is zero for two NaNs."""
    if all(x != x for x in (value(a, kind), value(b, kind))):
        return 0
    if any(x != x for x in (value(a, kind), value(b, kind))):
        return float("inf")
    sign = 1 << (struct.calcsize(FORMATS[kind][0]) * 8 - 1)
    in_order = [sign - bits if bits & sign else bits for bits in (a, b)]
    return abs(in_order[0] - in_order[1])


def difference(ours: dict, theirs: dict) -> str | None:
    """A description of the difference between two recordings of one feature; None if they agree."""
    kind, ulp = ours["kind"], ours["ulp"]
    if len(ours["bits"]) != len(theirs["bits"]):
        return f"{len(ours['bits'])} values against {len(theirs['bits'])}"
    for place, pair in enumerate(zip(ours["bits"], theirs["bits"], strict=True)):
        a, b = (int(text, 16) for text in pair)
        if a == b or (kind != "integers" and ulps_apart(a, b, kind) <= ulp):
            continue
        a_text, b_text = (f"{value(int(text, 16), kind)!r} ({text})" for text in pair)
        return f"value {place} is {a_text} against {b_text}, {ulp} ulp allowed"
    return None


def compare(ours: dict, theirs: dict) -> list[str]:
    """One line for each feature that differs or is in only one recording."""
    lines = [f"{name}: only in one recording" for name in sorted(ours.keys() ^ theirs.keys())]
    for name in sorted(ours.keys() & theirs.keys()):
        if (found := difference(ours[name], theirs[name])) is not None:
            lines.append(f"{name}: {found}")
    return lines


if __name__ == "__main__":
    lines = compare(*(json.loads(Path(path).read_text()) for path in sys.argv[1:3]))
    print("\n".join(lines) or "the same")
    sys.exit(bool(lines))
