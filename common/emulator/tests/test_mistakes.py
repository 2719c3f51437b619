"""Every check of the emulator: each mistake in its programs is reported at its line, and correct code is not.

The expected reports are marked in the programs themselves, as `// BUG check: array`.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

from common.emulator import build_program
from common.emulator.tests.nvcc import compile_with_nvcc
from common.paths import build_cache
from common.studies.compare_tools import mistakes
from common.studies.compare_tools import recorder as tool_comparison
from common.studies.compare_tools.mistakes import Mistake, ReportEntry

pytestmark = pytest.mark.proof(
    "programs with mistakes", files=["common/emulator/programs/mistakes/*", "common/emulator/libraries/**/*"]
)


CHECKS = ("memory", "initialisation", "races", "barriers", "launch", "streams", "leaks")
SEEDS = ("1", "20", "300")
SCREEN = 26  # lines: findings, how many more there are, the seed
PROGRAMS = mistakes.mistake_programs()
CASES = [case for program in PROGRAMS for case in mistakes.read_mistakes(program)]


def of_kind(*kinds: str):
    """The cases of some kinds, as parameters of a test."""
    chosen = [case for case in CASES if case.kind in kinds]
    return pytest.mark.parametrize("case", chosen, ids=[f"{case.program.stem}-{case.name}" for case in chosen])


every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
built = functools.cache(tool_comparison.build_mistakes)


def run(case: Mistake, **settings: str) -> subprocess.CompletedProcess:
    """Runs a case on the emulator with only these settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    environment = {**others, "EMULATOR_TIMEOUT": "20", "EMULATOR_LEAKS": "error", **settings}
    return subprocess.run(
        [built(case.program), case.name],
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )


def found(case: Mistake, done: subprocess.CompletedProcess) -> list[ReportEntry]:
    return mistakes.parse_report(done.stdout + done.stderr, case.program)


def assert_reported(case: Mistake, done: subprocess.CompletedProcess) -> None:
    """Asserts that the report contains the case's mistake and nothing else, and names each marked line."""
    findings = found(case, done)
    assert findings, f"nothing was reported: {done}"
    strangers = [finding.text for finding in findings if not mistakes.matches_mistake(finding, case)]
    assert not strangers, done.stderr
    named = set().union(*(finding.lines for finding in findings))
    assert {mark.line for mark in case.marks} <= named, done.stderr


def assert_silent(done: subprocess.CompletedProcess) -> None:
    """Asserts that the program succeeds and that the emulator prints one line, without any finding."""
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
    assert re.fullmatch(r"emulator: .*(no problem found|no kernel was launched).*\n", done.stderr), done.stderr


@pytest.mark.needs("g++")
@of_kind("wrong")
def test_a_mistake_is_reported(case):
    done = run(case)
    assert_reported(case, done)
    assert done.returncode != 0, done.stderr


@pytest.mark.needs("g++")
@of_kind("warned")
def test_what_devices_allow_is_a_warning(case):
    done = run(case)
    assert_reported(case, done)
    assert all(finding.is_warning for finding in found(case, done)), done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("g++")
@of_kind("right")
def test_what_is_right_is_not_reported(case):
    assert_silent(run(case))


@pytest.mark.needs("g++")
@of_kind("right")
def test_what_is_right_is_right_in_every_order(case):
    for seed in SEEDS:
        assert_silent(run(case, EMULATOR_SEED=seed))


@pytest.mark.needs("g++")
@of_kind("wrong", "warned")
def test_a_mistake_is_reported_in_every_order(case):
    for seed in SEEDS:
        done = run(case, EMULATOR_SEED=seed)
        findings = found(case, done)
        assert findings, f"nothing was reported with seed {seed}: {done}"
        assert all(mistakes.matches_mistake(finding, case) for finding in findings), f"seed {seed}: {done.stderr}"
        assert f"EMULATOR_SEED={seed}" in done.stderr


@pytest.mark.needs("g++")
@of_kind("wrong", "warned")
def test_a_check_that_is_off_is_silent(case):
    """The behaviour is then undefined, as on a GPU, but there is no finding of that check."""
    checks = {mark.check for mark in case.marks}
    done = run(case, EMULATOR_CHECKS=",".join(f"-{check}" for check in checks), EMULATOR_TIMEOUT="5")
    assert not [finding for finding in found(case, done) if finding.check in checks], done.stderr


@pytest.mark.needs("g++")
@of_kind("wrong", "warned")
def test_a_check_works_without_the_others(case):
    for check in {mark.check for mark in case.marks}:
        findings = found(case, run(case, EMULATOR_CHECKS=check))
        assert {finding.check for finding in findings} == {check}
        assert all(mistakes.matches_mistake(finding, case) for finding in findings)


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_has_wrong_and_right_kernels(check):
    wrong = [case for case in CASES if check in {mark.check for mark in case.marks}]
    groups = {case.program for case in wrong}
    right = [case for case in CASES if case.kind == "right" and case.program in groups]
    assert len(wrong) >= 3
    assert len(right) >= len(wrong)


@every_program
def test_every_mistake_is_marked(program):
    cases = mistakes.read_mistakes(program)
    assert sum(case.kind == "right" for case in cases) >= sum(case.kind == "wrong" for case in cases) >= 3
    for case in cases:
        assert case.kind in ("wrong", "warned", "right")
        assert bool(case.marks) == (case.kind != "right"), case.name
        assert {mark.check for mark in case.marks} <= set(CHECKS), case.name
    assert sum(len(case.marks) for case in cases) == program.read_text().count("// BUG ") + program.read_text().count(
        "// WARNING "
    )


@pytest.mark.needs("g++")
@every_program
def test_a_program_knows_its_cases(program):
    listed = subprocess.run([built(program)], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(case.name for case in mistakes.read_mistakes(program))
    unknown = subprocess.run([built(program), "wrong_name"], capture_output=True, text=True)
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("there is no case wrong_name\n")


@pytest.mark.needs("nvcc")
@every_program
def test_nvcc_takes_it(program, tmp_path):
    architecture = "sm_90" if "__cluster_dims__" in program.read_text() else "sm_80"
    done = compile_with_nvcc(program, tmp_path, architecture=architecture)
    assert done.returncode == 0, done.stderr


# A screen ---------------------------------------------------------------------------------------------------------


def program_with(tmp_path: Path, kernel: str, launch: str) -> str:
    """The report on a program with one kernel."""
    source = tmp_path / "many.cu"
    source.write_text(f"""
__global__ void many(float* out, int n) {{
{kernel}
}}
int main() {{
  float* out;
  cudaMalloc(&out, 64 * sizeof(float));
  {launch};
  cudaDeviceSynchronize();
  cudaFree(out);
}}
""")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    done = subprocess.run(
        [build_program(str(source), tmp_path, build_cache())], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 66
    return done.stderr


@pytest.mark.needs("g++")
def test_hundreds_of_wrong_lines_are_a_screen(tmp_path):
    wrong = "\n".join(f"  if (threadIdx.x == {k}) out[n + {k}] = {k};" for k in range(300))
    report = program_with(tmp_path, wrong, "many<<<1, 300>>>(out, 64)")
    assert report.count("\n") <= SCREEN
    shown = len(mistakes.parse_report(report, tmp_path / "many.cu"))
    assert 3 <= shown < 300
    assert f"and {300 - shown} more" in report


@pytest.mark.needs("g++")
def test_one_wrong_line_is_one_finding(tmp_path):
    report = program_with(tmp_path, "  out[blockIdx.x * n + threadIdx.x] = 1;", "many<<<20, 64>>>(out, 64)")
    (finding,) = mistakes.parse_report(report, tmp_path / "many.cu")
    assert finding.line == 3
    assert "1216 times" in finding.text
    assert "1216 threads of 19 blocks" in finding.text
    assert "block (1, 0, 0), thread (0, 0, 0)" in finding.text
