"""Stage 5's loops on a CPU: the same results on every kind of CPU, and AVX only in code for CPUs that have it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
import torch

from common import stages
from common.build.library import build_stage
from common.paths import ROOT
from support.proofs.files import stage_files

pytestmark = [pytest.mark.needs("g++"), pytest.mark.proof("stages' tests", files=stage_files(5))]

EVERY_CASE = """
import torch
torch.set_num_threads(2)
from common.build.modules import load_stage
from common.cell.case import Case, difference, outputs
print(torch.backends.cpu.get_cpu_capability())
stage = load_stage(5, "host")
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    for size in ((1, 1, 1), (3, 5, 17), (300, 2, 70), (0, 2, 3)):  # two threads share the rows of the third
        for layout in ("contiguous", "transposed"):
            case = Case(*size, dtype=dtype, layout=layout)
            found = difference(case, outputs(stage.lltm, case))
            assert found is None, f"{dtype}, {size}, {layout}: {found}"
extreme = torch.tensor([[1e4, -1e4, float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 88.0, -88.0]])
z, cell = extreme.repeat(1, 3), torch.zeros(1, 9)
new_h, new_cell, gates = stage.operators.pointwise(z, cell)
s, e = extreme.sigmoid(), torch.nn.functional.elu(extreme)
for got, want in zip((*gates[0], new_cell[0], new_h[0]), (s, s, e, e * s, (e * s).tanh() * s), strict=True):
    torch.testing.assert_close(got, want[0], equal_nan=True)
"""


KINDS = ("DEFAULT", "AVX2", "AVX512")
HERE = torch.backends.cpu.get_cpu_capability()


@pytest.mark.parametrize("capability", KINDS[: KINDS.index(HERE) + 1] if HERE in KINDS else [HERE])
@pytest.mark.syllabus("5.5h")
def test_every_kind_of_cpu_computes_the_same(capability):
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "ATEN_CPU_CAPABILITY": capability.lower()}
    build_stage(stages.get_stage(5), "host")
    done = subprocess.run([sys.executable, "-c", EVERY_CASE], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == capability


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="AVX2 and AVX-512 are of x86-64")
@pytest.mark.skipif(not shutil.which("objdump"), reason="objdump shows the instructions")
@pytest.mark.syllabus("5.5h")
def test_only_the_code_that_is_chosen_at_run_time_has_avx():
    """A CPU without it ends the process at the first such instruction, in whichever function the linker has kept."""
    library = build_stage(stages.get_stage(5), "host").path
    command = ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", str(library)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    functions = dict(re.findall(r"^[0-9a-f]+ <(.*)>:\n((?:.+\n)*)", text, re.MULTILINE))
    with_avx = {name for name, code in functions.items() if re.search(r"\tv\w+ .*%[xyz]mm", code)}
    for kind in KINDS[1:]:
        assert any(f"{kind}::forward_row<" in name for name in with_avx)
    assert [name for name in with_avx if "AVX2::" not in name and "AVX512::" not in name] == []
    assert not any("%zmm" in code for name, code in functions.items() if "AVX2::" in name)
