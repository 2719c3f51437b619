"""Stage 7's kernels without torch, on the emulator: chains of 1, 2 and 4 blocks over the grid and over clusters.

The driver compares every result with a loop in double, and runs each pass twice. The emulator checks each access.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from common.paths import build_dir
from support.pairwise import pairwise
from support.proofs.files import stage_files
from support.sequence_driver import build_driver, run_driver

pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("emulated grids", files=[*stage_files(7), "common/studies/sequence/*.cu"]),
]
SIZES = ((1, 1, 1), (4, 9, 22), (3, 17, 40), (5, 8, 33))  # T, B, S
CELLS, TYPES = ("lltm", "lstm", "gru"), ("float", "bfloat16")
CASES = pairwise(CELLS, TYPES, ("grid", "cluster"), (1, 2, 4), SIZES, ("", "r", "l", "rl"))


@functools.cache
def built() -> Path:
    """The driver with the kernels of two types: one multiplies with FMA instructions, one on tensor cores."""
    return build_driver(build_dir() / "sequence_driver", [f"{dtype}_{cell}" for dtype in TYPES for cell in CELLS])


def run(*arguments: object, **settings: str) -> CompletedProcess:
    return run_driver(built(), *arguments, **settings)


@pytest.mark.syllabus("7.1d")
@pytest.mark.parametrize(("cell", "type", "rung", "blocks", "size", "flags"), CASES)
def test_a_chain_of_blocks(cell, type, rung, blocks, size, flags):
    T, B, S = size
    blocks = min(blocks, S)
    done = run(cell, type, rung, T, B, S, blocks, 1, flags)
    assert done.returncode == 0, done.stdout + done.stderr
    vector = {"float": 4, "bfloat16": 8}[type]
    units = math.ceil(S / blocks / vector) * vector
    assert f" of {math.ceil(S / units) if rung == 'grid' else blocks} blocks" in done.stdout
    assert ", 0 wrong" in done.stdout
    assert "the same bits again: yes" in done.stdout
    assert "no problem found" in done.stderr


@pytest.mark.parametrize("rung", ["grid", "cluster"])
def test_any_order_of_blocks_and_threads(rung):
    for seed in ("1", "20", "300"):
        done = run("lstm", "float", rung, 4, 17, 22, 4, 1, EMULATOR_SEED=seed)
        assert done.returncode == 0, done.stdout + done.stderr


def test_more_chains_than_the_device_holds_at_once():
    """The launches of a grid follow one another, and clusters wait for their turn."""
    for rung in ("grid", "cluster"):
        done = run("lltm", "float", rung, 2, 41, 22, 2, 1, EMULATOR_DEVICE="multiProcessorCount=4")
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_grid_that_cannot_be_on_the_device_at_once_is_refused():
    """One multiprocessor holds a few blocks, but not 32."""
    for blocks, S, status in ((2, 64, 0), (32, 256, 2)):
        done = run("lltm", "float", "grid", 2, 8, S, blocks, 0, EMULATOR_DEVICE="multiProcessorCount=1")
        assert done.returncode == status, done.stdout + done.stderr
        assert ("no plan: " in done.stdout) == (status == 2)


def test_a_state_that_is_too_large_is_refused_with_the_numbers():
    for rung in ("grid", "cluster"):
        done = run("lltm", "float", rung, 1, 1, 4096, 2, 0)
        assert done.returncode == 2
        assert "4096 units do not fit on chip" in done.stdout
