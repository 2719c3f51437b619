"""Inline PTX: the emulator's results, instruction by instruction, beside those that a GPU recorded."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from common.emulator import build_program
from common.emulator.tests.nvcc import compile_with_nvcc
from common.paths import build_cache
from common.studies.ptx import recorder as ptx_results


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> dict[str, list[str]]:
    """The emulator's results."""
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "ptx_results.cu").write_text(ptx_results.program_text())
    program = build_program("ptx_results.cu", folder, build_cache(), here=folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr.endswith("no problem found\n")) == (0, True), done.stderr
    return ptx_results.read_output(done.stdout)


@pytest.mark.needs("g++")
def test_every_instruction_has_a_result_in_each_thread(computed):
    assert {len(row) for row in computed.values()} == {ptx_results.THREADS}
    assert computed["add.u32 %0, %1, %2;"][0] == "1"  # 0 + 1


@pytest.mark.needs("g++")
def test_results_are_those_of_a_gpu(computed):
    recorded = json.loads(ptx_results.RECORDED.read_text())
    different = [
        f"{one.text} thread {thread}: got {got}, a GPU {expected}"
        for one in ptx_results.INSTRUCTIONS
        for thread, (got, expected) in enumerate(zip(computed[one.text], recorded[one.text], strict=True))
        if not ptx_results.is_same(one, got, expected)
    ]
    assert not different, "\n".join(different)


@pytest.mark.needs("nvcc")
def test_nvcc_takes_the_program(tmp_path):
    source = tmp_path / "ptx_results.cu"
    source.write_text(ptx_results.program_text())
    done = compile_with_nvcc(source, tmp_path)
    assert done.returncode == 0, done.stderr
