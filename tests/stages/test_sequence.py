"""Stage 7 against the reference, on every target, rung and dtype: everything that `make stage-7` checks, by name."""

from __future__ import annotations

import functools

import pytest
import torch

from common import stages
from common.build import modules
from common.cell.case import fresh_seed
from common.check.sequence import SequenceSubject
from common.sequence.rungs import RUNGS
from support.proofs.files import stage_files

STAGE = stages.find_stage(7)
NEEDS = {"host": ("g++",), "emulator": ("g++",), "cuda": ("gpu", "nvcc", "g++")}


@functools.cache
def describe(target: str, rung: str, dtype: str) -> SequenceSubject:
    """A subject without a module, to list its cases and checks."""
    return SequenceSubject(7, target, "cpu", getattr(torch, dtype), torch, rung, 0)


def places(cases: bool) -> list:
    """Target, rung and dtype with the name of each group of cases or of each check."""
    params = []
    for target in STAGE.targets:
        marks = [pytest.mark.needs(*NEEDS[target])]
        if target == "emulator":
            marks.append(pytest.mark.proof("emulated grids", files=stage_files(7)))
        for rung in RUNGS[target]:
            for dtype in STAGE.dtypes:
                one = describe(target, rung, dtype)
                names = one.cases() if cases else {check.__name__: check for check in one.checks()}
                for name, check in names.items():
                    need = getattr(check, "needs", "")
                    if need and target != "cuda":
                        continue  # streams and devices are those of CUDA tensors
                    needs_two = [pytest.mark.needs("gpu:2")] if need == "two GPUs" else []
                    identity = f"{target}-{rung}-{dtype}-{name}"
                    params.append(pytest.param(target, rung, dtype, name, marks=[*marks, *needs_two], id=identity))
    return params


def make(target: str, rung: str, dtype: str) -> SequenceSubject:
    """The subject, built and loaded. Skips rungs that the GPU does not have."""
    device = "cuda" if target == "cuda" else "cpu"
    if rung == "cluster" and device == "cuda" and torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs a GPU of compute capability 9.0")
    module = modules.load_stage(7, target)
    return SequenceSubject(7, target, device, getattr(torch, dtype), module, rung, fresh_seed())


@pytest.mark.syllabus("7.1b", "7.2a", "7.2c")
@pytest.mark.parametrize(("target", "rung", "dtype", "name"), places(cases=True))
def test_agrees_with_the_reference(target, rung, dtype, name):
    one = make(target, rung, dtype)
    for case in one.cases()[name]:
        one.agree(case)


@pytest.mark.parametrize(("target", "rung", "dtype", "name"), places(cases=False))
def test_check(target, rung, dtype, name):
    one = make(target, rung, dtype)
    (check,) = [check for check in one.checks() if check.__name__ == name]
    check(one)


@pytest.mark.needs("gpu", "nvcc")
@pytest.mark.parametrize("cell", ["lltm", "lstm", "gru"])
def test_more_numbers_than_an_int_can_count(cell):
    """x has more than 2^31 numbers; its last rows are compared with those of a call of their own, on that rung."""
    stage = modules.load_stage(7, "cuda")
    gates = 4 if cell == "lstm" else 3
    S, T = 64, 3
    B = 2**31 // (T * gates * S) + 9
    weights = torch.randn(gates * S, S, device="cuda", dtype=torch.float16) / 8
    x = torch.empty(T, B, gates * S, device="cuda", dtype=torch.float16).normal_()
    h0 = torch.zeros(B, S, device="cuda", dtype=torch.float16)
    assert x.numel() > 2**31
    cell0 = None if cell == "gru" else h0
    last = slice(-7, None)
    operators = stage.sequence.operators
    rung, _ = operators.choose_rung(x, cell, T, B, S, False)  # another rung rounds differently

    def run(x, h0, cell0):
        return operators.recurrence(x, weights, None, h0, cell0, None, cell, False, rung, False)[:2]

    got = [result[..., last, :] for result in run(x, h0, cell0)]
    few = run(x[:, last].contiguous(), h0[last], None if cell0 is None else cell0[last])
    torch.testing.assert_close(got, list(few))
