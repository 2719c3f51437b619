"""docs/emulator.md says what is so: its settings and checks are those of the sources, its report is a real one."""

from __future__ import annotations

import re

import pytest
import torch

from common.paths import ROOT
from support.labs import lab, report

RUNTIME = ROOT / "common" / "emulator" / "runtime" / "src"
PAGE = (ROOT / "docs" / "emulator.md").read_text()
KERNEL = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void number_kernel(float* row, int S) {  // [S]
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if ((col < S) < S) row[col] = col;
}

void launch(float* out, const float*, int64_t, int64_t S, cudaStream_t stream) {
  number_kernel<<<1, 8, 0, stream>>>(out, S);
}
"""


def rows(heading: str) -> list[str]:
    """The first column of the table under a heading, without its backquotes."""
    table = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_setting_is_there():
    sources = "".join(path.read_text() for path in RUNTIME.rglob("*.cpp"))
    assert set(rows("setting")) == set(re.findall(r'(?:setting_of|value_at_start)\("(\w+)"\)', sources))


def test_every_check_is_there():
    names = re.search(r"kNames\[\] = \{(.*?)\}", (RUNTIME / "report" / "report.cpp").read_text(), re.DOTALL)[1]
    assert rows("check") == re.findall(r'"(\w+)"', names)


@pytest.mark.needs("g++")
def test_the_report_is_what_is_printed():
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1]
    row = torch.full((1, 8), -1.0)[:, :5]
    assert report(lab("guard", KERNEL).run, row, row).rstrip() == shown.rstrip()


@pytest.mark.needs("matplotlib")
def test_the_picture_is_up_to_date(tmp_path):
    from common.figures.diagrams import cell_diagram, emulator_diagram

    def words(path):
        return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))

    assert words(emulator_diagram.write_diagram(tmp_path)) == words(cell_diagram.PICTURES / "emulator.svg"), (
        "run python -m common.figures.diagrams.emulator_diagram"
    )
    assert "pictures/emulator.svg" in PAGE
