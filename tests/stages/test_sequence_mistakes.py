"""Mistakes planted in stage 7's kernels: the emulator reports each of them, and nothing in the kernels as they are.

One program is built from a copy of the kernels in which each mistake has a number. It makes the mistake whose number
is in the environment variable PLANTED.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from common import stages
from common.emulator import build_program
from common.paths import ROOT, build_cache
from support.proofs.files import stage_files

DRIVER = Path("common/studies/sequence/driver.cu")
CSRC = stages.find_stage(7).folder.relative_to(ROOT) / "csrc"
pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof("stages' tests", files=[*stage_files(7), "common/studies/sequence/*"]),
]

# The kernels of float, and the number of the mistake to make. Other types have none.
KERNELS = """
#include "recurrence_float.cu"
static const bool is_set = [] {
  const char* text = std::getenv("PLANTED");
  const int number = text ? std::atoi(text) : 0;
  return cudaMemcpyToSymbol(planted, &number, sizeof(number)) == cudaSuccess;
}();
"""
NUMBER = """#include <cstdlib>

#include "recurrence.h"

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
        "cudaMemsetAsync(arrays.workspace, 0, plan.chains_at_once * size_t(kArrivalBytes), stream)", "cudaSuccess",
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
        "division_.rows * division_.units * division_.blocks * int(sizeof(scalar_t))",
        "(division_.rows + 1) * division_.units * division_.blocks * int(sizeof(scalar_t))", "has not ended",
    ),
    Mistake(
        "blocks send before the others have started", "cluster", "chain.cuh",
        "cooperative_groups::this_cluster().sync();  // all",
        "if (!PLANTED) cooperative_groups::this_cluster().sync();  // all",
        "races|initialisation|barriers",
    ),
    Mistake(
        "a step reads the state that it computes", "cluster", "forward.cuh",
        "multiply(state(step));", "multiply(state(step + 1));", "races",
    ),
    Mistake(
        "gates are computed before the product is there", "cluster", "forward.cuh",
        "__syncthreads();\n      for (int round", "if (!PLANTED) __syncthreads();\n      for (int round", "races",
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
    csrc = folder / CSRC
    for number, mistake in enumerate(MISTAKES, 1):
        path = csrc / mistake.file
        path.write_text(mistake.plant(path.read_text(), number))
    layout = csrc / "layout.h"
    layout.write_text(layout.read_text().replace('#include "recurrence.h"\n', NUMBER, 1))
    instances = csrc / "instantiate.cuh"
    instances.write_text(re.sub(r"<(?:Lstm|Gru), ", "<Lltm, ", instances.read_text()))  # one cell compiles faster
    others = re.findall(
        r"^Kernels kernels_(?!float)\w+\(CellKind cell\)", (csrc / "kernels.h").read_text(), re.MULTILINE
    )
    (csrc / "planted.cu").write_text(KERNELS + "".join(f"{other} {{ return {{}}; }}\n" for other in others))
    sources = [str(DRIVER), *(str(CSRC / name) for name in ("launch.cpp", "planted.cu"))]
    return build_program(sources, folder / "build", build_cache(), here=folder)


def run(program: Path, rung: str, number: int, seed: int = 0) -> subprocess.CompletedProcess:
    """The driver on 2 chains of 4 blocks, with the mistake of a number; 0 is none."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    settings = {"EMULATOR_DEVICE": "multiProcessorCount=16", "EMULATOR_TIMEOUT": "4", "EMULATOR_SEED": str(seed)}
    command = [program, "lltm", "float", rung, "4", "9", "22", "4"]
    environment = {**others, **settings, "PLANTED": str(number)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


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
