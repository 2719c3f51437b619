"""docs/when-not-to-write-cuda.md: its tables, and what it says of the recorded machines."""

from __future__ import annotations

import pytest

from common.pages.tables import decision
from common.paths import ROOT
from common.results import records


@pytest.fixture
def h200() -> dict:
    return records.read_result(records.RECORDED / "h200.json")


def gains(table: str) -> dict[tuple[str, str], tuple[str, str, float]]:
    """By size and pass: the fastest without C++, the fastest stage, and the gain."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "| B" in line]
    return {(row[0], row[1]): (row[2], row[4], float(row[6])) for row in rows}


def row(name: str, ratio: float, **facts: object) -> dict:
    stage = int(name.removeprefix("stage ")) if name.startswith("stage ") else None
    same = {"B": 1, "I": 2, "S": 3, "pass": "forward", "grads": "all", "device": "cuda"}
    how = {"dtype": "float32", "maths": "IEEE", "threads": None}
    return same | how | {"stage": stage, "name": name, "ratio": ratio, "median": 10 * ratio} | facts


@pytest.mark.syllabus("5.6a")
def test_the_fastest_of_each_kind_are_compared():
    names = {"eager": 1.0, "torch.compile": 0.5, "Triton": 0.4, "stage 1": 0.1, "stage 3": 0.3, "stage 4": 0.2}
    names["CUDA graph of stage 4"] = 0.25
    result = {
        "rows": [row(name, ratio) for name, ratio in names.items()],
        "machine": {"gpu": "A GPU"},
        "versions": {"torch": "2.11.0"},
        "date": "2026-11-22",
    }
    assert gains(decision.device_table(result, "cuda")) == {("B1 I2 S3", "forward"): ("Triton", "stage 4", 2.0)}


@pytest.mark.syllabus("5.6a")
def test_what_the_page_says_of_the_h200(h200):
    """Large products leave nothing to gain, overhead does, and a compiler's forward kernel is hard to beat."""
    cell = gains(decision.device_table(h200, "cuda"))
    for passes in ("forward", "forward+backward"):
        assert cell["B16 I32 S128", passes][2] > 1.3
        assert cell["B4096 I1024 S1024", passes][2] < 1.15
    forward = {(r["name"], r["S"]): r["median"] for r in h200["kernels"] if r["pass"] == "forward"}
    for S in (4096, 1024):
        assert forward["torch.compile", S] < forward["stage 3", S]


@pytest.mark.syllabus("5.6a")
def test_the_page_shows_every_recorded_machine():
    page = (ROOT / "docs" / "when-not-to-write-cuda.md").read_text()
    for result in records.read_recorded():
        assert (result["machine"]["gpu"] or result["machine"]["cpu"]) in page
