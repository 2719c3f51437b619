"""The study of public extensions: its trials, its outcomes, and its record."""

from __future__ import annotations

import inspect

import pytest

from common.studies.public_extensions import STUDY, packages, trials
from common.studies.public_extensions.one import outcome_of

NAMED = [name for package in packages.PACKAGES for _, name in package.trials()]
HELPERS = {"agree", "ends_of", "reduced", "ring_of_twelve"}


def test_every_trial_is_a_function_and_is_used_once():
    functions = {name for name, _ in inspect.getmembers(trials, inspect.isfunction)} - HELPERS
    assert sorted(NAMED) == sorted(functions)


def test_the_record_has_every_trial():
    rows = STUDY.read_record()["rows"]
    assert sorted(row["trial"] for row in rows) == sorted(NAMED)


def test_the_reports_are_the_races_that_the_page_explains():
    rows = STUDY.read_record()["rows"]
    reported = {row["trial"]: row["reason"] for row in rows if row["outcome"] == "reported"}
    assert reported.keys() == {"farthest_points", "graclus", "spread_points"}
    assert "race on best_dist[1], shared memory" in reported["farthest_points"]
    assert "race on element 1 of out (races) thread (1, 0, 0) reads it" in reported["graclus"]
    assert "race on dists_i[0], shared memory" in reported["spread_points"]


def test_what_does_not_build_says_why(tmp_path):
    outcome, reason = outcome_of(str(tmp_path), "lacking", "scatter")
    assert outcome == "does not build"
    assert "has no setup.py" in reason


@pytest.mark.needs("g++")
@pytest.mark.proof("studies")
def test_a_wrong_and_a_reported_result_are_told_apart(tmp_path, monkeypatch):
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "fill.cu").write_text(SOURCE)
    monkeypatch.setattr(
        trials, "wrong", lambda module: trials.agree(module.fill(3), trials.torch.ones(4)), raising=False
    )
    monkeypatch.setattr(trials, "outside", lambda module: module.fill(5), raising=False)
    monkeypatch.setattr(
        trials, "right", lambda module: trials.agree(module.fill(4), trials.torch.ones(4)), raising=False
    )
    found = {name: outcome_of(str(tmp_path), "filling", name) for name in ("right", "wrong", "outside")}
    assert found["right"] == ("right", "")
    assert found["wrong"][0] == "wrong"
    assert found["outside"][0] == "reported"
    assert "writes past the end of x" in found["outside"][1]


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="filling", ext_modules=[CUDAExtension("filling", ["fill.cu"])], cmdclass={"build_ext": BuildExtension})
"""
SOURCE = """
#include <torch/extension.h>
__global__ void fill_kernel(float* x) { x[threadIdx.x] = 1; }
at::Tensor fill(int threads) {
  at::Tensor x = at::zeros({4}, at::kCUDA);
  fill_kernel<<<1, threads>>>(x.data_ptr<float>());
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("fill", &fill); }
"""
