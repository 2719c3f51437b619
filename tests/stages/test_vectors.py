"""Stage 7's loops over vectors on a CPU, with a compiler that inlines only what it must.

`simd::run` compiles them for the instructions that the CPU has. A function that is not inlined there expects its
vectors in other registers than those in which its caller passes them.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from torch.utils import cpp_extension

from common.stages import ROOT
from support.proofs.files import stage_files

pytestmark = [pytest.mark.needs("g++"), pytest.mark.proof("stages' tests", files=stage_files(7))]
CSRC = ROOT / "stages" / "stage7_sequence" / "csrc"
HAS_CUDA = "__has_include(<cuda_runtime.h>)"


@pytest.mark.parametrize("name", ["recurrence", "product"])
def test_no_function_of_vectors_is_called(name, tmp_path):
    """As on a machine without CUDA, whose headers would define `__forceinline__`."""
    csrc = shutil.copytree(CSRC, tmp_path / "csrc")
    gate_math = (csrc / "gate_math.h").read_text()
    assert HAS_CUDA in gate_math
    (csrc / "gate_math.h").write_text(gate_math.replace(HAS_CUDA, "0"))
    includes = [word for path in cpp_extension.include_paths() for word in ("-isystem", path)]
    compiled = tmp_path / f"{name}.o"
    command = ["g++", "-std=c++20", "-c", "-O1", "-fno-inline", "-fopenmp", "-DLLTM_NAMESPACE=test", *includes]
    subprocess.run([*command, csrc / "cpu" / f"{name}.cpp", "-o", compiled], check=True, capture_output=True)
    symbols = subprocess.run(["nm", "-C", "--defined-only", compiled], check=True, capture_output=True, text=True)
    functions = [line.split(" ", 2)[2] for line in symbols.stdout.splitlines() if line.split(" ")[1] in "tTwW"]
    assert any("in_parallel<" in function for function in functions)
    left = [one for one in functions if "simd::Vector<" in one or "simd::Registers<" in one]
    assert not left, "\n".join(left)
