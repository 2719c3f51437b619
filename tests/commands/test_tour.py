"""The tour on a machine without a GPU: what the emulator runs is compiled by nvcc too, where it is there."""

import json
import os

import pytest

from common import stages
from common.build import library
from common.build.library import Build
from common.commands import tour
from common.measure import bench
from common.pages import report


@pytest.fixture
def built(tmp_path, monkeypatch) -> list:
    """Stands in for the builder; notes stage, target and architectures of each build."""
    path, found = tmp_path / "architectures.json", []
    path.write_text(json.dumps({"sm_75": 2.0, "sm_90": 1.5}))

    def compile_all(stage, target):
        found.append((stage.number, target, os.environ["TORCH_CUDA_ARCH_LIST"]))
        return Build(path, 3.5, cached=False)

    monkeypatch.setattr(library, "build_stage", compile_all)
    monkeypatch.setattr(tour, "why_unavailable", lambda target: None)
    return found


def test_a_stage_with_kernels_is_compiled_for_two_generations(built, monkeypatch, capsys):
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    tour.compile_only(stages.find_stage(3))
    assert built == [(3, "compile-only", "7.5;9.0")]
    assert "TORCH_CUDA_ARCH_LIST" not in os.environ
    assert "builds for sm_75, sm_90; there is no GPU here to run them" in capsys.readouterr().out


def test_the_architectures_of_the_environment_are_kept(built, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.6")
    tour.compile_only(stages.find_stage(4))
    assert built == [(4, "compile-only", "8.6")]
    assert os.environ["TORCH_CUDA_ARCH_LIST"] == "8.6"


def test_nothing_is_compiled_without_nvcc_or_without_kernels(built, monkeypatch, capsys):
    tour.compile_only(stages.find_stage(2))
    monkeypatch.setattr(tour, "why_unavailable", lambda target: "no nvcc")
    tour.compile_only(stages.find_stage(3))
    assert built == []
    assert capsys.readouterr().out == ""


def test_the_primer_is_checked_and_not_timed(tmp_path, monkeypatch):
    timed = []
    monkeypatch.setattr(tour, "STAGES", (stages.find_stage(0),))
    monkeypatch.setattr(tour, "CHECKED", tmp_path / "out" / "check.json")
    monkeypatch.setattr(bench, "measure_stages", lambda preset, devices, cells, path: timed.append(cells))
    monkeypatch.setattr(report, "write_report", lambda: 0)
    assert tour.run_tour() == 0
    assert timed == [[]]
    rows = json.loads((tmp_path / "out" / "check.json").read_text())
    assert {(row["stage"], row["outcome"]) for row in rows} == {(0, "passed")}
    assert "stage 0" in "".join(report.checks_section(rows))
