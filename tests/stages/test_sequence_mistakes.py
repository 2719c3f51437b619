"""Mistakes planted in stage 7's kernels: the emulator reports each of them, and nothing in the kernels as they are.

One program is built from a copy of the kernels in which each mistake has a number. It makes the mistake whose number
is in the environment variable PLANTED.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.paths import ROOT
from support.proofs.files import stage_files
from support.sequence_driver import CSRC, DRIVER, PERSISTENT, build_driver, run_driver

pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("stages' tests", files=[*stage_files(7), "common/studies/sequence/*.cu"]),
]

# Sets the number of the mistake to make, before main.
SET_NUMBER = """
static const bool is_set = [] {
  const int number = planted_on_host();
  return cudaMemcpyToSymbol(planted, &number, sizeof(number)) == cudaSuccess;
}();
"""
# In layout.h, which all sources of the kernels include.
NUMBER = """#include <cstdlib>

#include "plan.h"

static __constant__ int planted = 0;
inline int planted_on_host() {
  const char* text = std::getenv("PLANTED");
  return text ? std::atoi(text) : 0;
}
"""


@dataclass(frozen=True)
class Mistake:
    """`right` becomes `wrong` in a file: a statement, or an expression. `reported` is a pattern for the report.

    If `wrong` contains PLANTED, it is used as it is, with the condition for PLANTED.
    """

    name: str
    rung: str
    file: str
    right: str
    wrong: str
    reported: str

    def plant(self, text: str, number: int) -> str:
        """The text of the file, in which the number decides."""
        assert text.count(self.right) == 1, f"{self.right!r} is {text.count(self.right)} times in {self.file}"
        variable = "planted_on_host()" if self.file.endswith(".cpp") else "planted"
        if "PLANTED" in self.wrong:
            choice = self.wrong.replace("PLANTED", f"({variable} == {number})")
        elif self.right.endswith(";"):
            choice = f"if ({variable} != {number}) {{ {self.right} }} else {{ {self.wrong} }}"
        else:
            choice = f"({variable} != {number} ? {self.right} : {self.wrong})"
        return text.replace(self.right, choice)


MISTAKES = (
    Mistake(
        "the grid's barrier is left out", "grid", "chain.cuh",
        "counter.fetch_add(1, cuda::memory_order_release);", "passed_ = 0;", "races",
    ),
    Mistake(
        "a block does not wait for the others", "grid", "chain.cuh",
        "counter.load(cuda::memory_order_acquire) < passed_", "blockIdx.x == 0 && counter.load() < passed_", "races",
    ),
    Mistake(
        "a block arrives twice", "grid", "chain.cuh",
        "counter.fetch_add(1, cuda::memory_order_release);", "counter.fetch_add(2);", "races",
    ),
    Mistake(
        "the grid's barrier does not release", "grid", "chain.cuh",
        "cuda::memory_order_release", "cuda::memory_order_relaxed", "races",
    ),
    Mistake(
        "one buffer for the states of all steps", "grid", "forward.cuh",
        "(number % 2 * chains + chain)", "chain", "races",
    ),
    Mistake(
        "the counter is not set to zero", "grid", "launch.cpp",
        "cudaMemsetAsync(workspace, 0, plan.chains_at_once * size_t(kArrivalBytes), stream)", "cudaSuccess",
        "initialisation",
    ),
    Mistake(
        "parts of d_h go to the buffer that is read", "grid", "backward.cuh",
        "received_ + number % 2 *", "received_ + (number + PLANTED) % 2 *", "initialisation|races",
    ),
    Mistake(
        "a delivery is not waited for", "cluster", "forward.cuh",
        "if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);",
        "if (chain_.exchange == Exchange::kCluster) return __syncthreads();", "races",
    ),
    Mistake(
        "the wrong parity", "cluster", "chain.cuh",
        "(number - 1) / 2 % 2", "number / 2 % 2", "races|barriers",
    ),
    Mistake(
        "fewer bytes are expected than arrive", "cluster", "chain.cuh",
        '(bytes_)', '(bytes_ - 16)', "races|barriers",
    ),
    Mistake(
        "more bytes are expected than arrive", "cluster", "forward.cuh",
        "partition_.rows * partition_.units * partition_.blocks * int(sizeof(scalar_t))",
        "(partition_.rows + 1) * partition_.units * partition_.blocks * int(sizeof(scalar_t))", "has not ended",
    ),
    Mistake(
        "blocks send before the others have started", "cluster", "chain.cuh",
        "cooperative_groups::this_cluster().sync();  // all",
        "if (!PLANTED) cooperative_groups::this_cluster().sync();  // all",
        "races|initialisation|barriers",
    ),
    Mistake(
        "gates are computed before the product is there", "cluster", "forward.cuh",
        "multiply(state(step));\n      __syncthreads();",
        "multiply(state(step));\n      if (!PLANTED) __syncthreads();", "races",
    ),
    Mistake(
        "a step reads the state that it computes", "cluster", "forward.cuh",
        "multiply(state(step));", "multiply(state(step + 1));", "races",
    ),
    Mistake(
        "one buffer for d_z", "cluster", "backward.cuh",
        "layout_.d_z + step % 2 *", "layout_.d_z + (PLANTED ? 0 : step % 2) *", "races",
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    """The driver with the kernels in which each mistake has a number, from 1."""
    folder = tmp_path_factory.mktemp("mistakes")
    for path in (DRIVER.parent, CSRC):
        shutil.copytree(ROOT / path, folder / path)
    persistent = folder / PERSISTENT
    for number, mistake in enumerate(MISTAKES, 1):
        path = persistent / mistake.file
        path.write_text(mistake.plant(path.read_text(), number))
    layout = persistent / "layout.h"
    layout.write_text(layout.read_text().replace('#include "plan.h"\n', NUMBER, 1))
    return build_driver(folder / "build", ["float_lltm"], folder, SET_NUMBER)


def run(program: Path, rung: str, number: int, seed: int = 0) -> subprocess.CompletedProcess:
    """The driver on 2 chains of 4 blocks, with the mistake of a number; 0 is none."""
    settings = {"EMULATOR_TIMEOUT": "10", "EMULATOR_SEED": str(seed), "PLANTED": str(number)}
    return run_driver(program, "lltm", "float", rung, 4, 9, 22, 4, **settings)


@pytest.mark.parametrize("rung", ["grid", "cluster"])
def test_nothing_is_reported_without_a_mistake(program, rung):
    for seed in (0, 1, 20):
        done = run(program, rung, 0, seed)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "no problem found" in done.stderr


@pytest.mark.parametrize("number", range(1, len(MISTAKES) + 1), ids=[mistake.name for mistake in MISTAKES])
def test_a_mistake_is_reported(program, number):
    mistake = MISTAKES[number - 1]
    done = run(program, mistake.rung, number)
    assert done.returncode not in (0, 2), f"{done.stdout}\n{done.stderr}"  # 2: there was nothing to run
    assert re.search(rf"error: .*(?:{mistake.reported})", done.stderr), done.stderr
