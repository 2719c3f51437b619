"""Nsight Compute beside the emulator: what it prints is read rightly, and a refusal is no agreement.

The outputs here are written by hand after the tool's CSV, one line a metric.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from common import stages, study
from common.emulator import Counted, Row
from common.errors import UserError
from common.gpu_tools import ncu_tool
from common.gpu_tools.ncu_tool import METRICS, KernelCase
from common.studies.ncu import STUDY, microbenchmarks
from common.studies.ncu import recorder as ncu
from common.studies.ncu import table as ncu_table

HEAD = '"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"'
REFUSED = """\
==PROF== Connected to process 217 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters
==PROF== Disconnected from process 217
ENDED with status 1"""
CASES = [KernelCase("forward_kernel", 3, "float32", 3, 70), KernelCase("backward_kernel", 3, "float32", 3, 70)]
NAMES = ["void forward_kernel<float>(T1 *, T1 *, const T1 *, long)", "backward_kernel(double *, const double *)"]


def output(names: list[str], values: dict[tuple[str, str], str]) -> str:
    """What the tool prints about launches that all have these metrics; the others are zero."""
    lines = [
        f'"{k}","217","python3.12","127.0.0.1","{name}","{metric}","","{values.get(key, "0")}"'
        for k, name in enumerate(names)
        for key, metric in METRICS.items()
    ]
    return "\n".join(["==PROF== Profiling: 0%....100% - 4 passes", "a line of the program", HEAD, *lines, "bye"])


def test_every_number_has_a_metric_of_its_own():
    assert len(set(METRICS.values())) == len(METRICS) == 3 * 3 + 2 * 3
    assert METRICS["global store", "sectors"] == "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"
    assert METRICS["global atomic", "requests"] == "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"
    assert METRICS["shared load", "instructions"] == "smsp__inst_executed_op_shared_ld.sum"
    assert METRICS["shared store", "conflicts"] == "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"


def test_numbers_are_read_from_among_other_lines():
    text = output(NAMES, {("global load", "requests"): "36", ("global load", "sectors"): "1,130.00"})
    answers = ncu_tool.match_launches(CASES, text)
    wanted = {"global load": {"instructions": 0, "requests": 36, "sectors": 1130}}
    assert answers == dict.fromkeys(CASES, (wanted, None))


def test_a_number_that_the_tool_does_not_give_is_left_out():
    text = output(NAMES, {("global load", "requests"): "36", ("global load", "sectors"): "n/a"})
    assert ncu_tool.match_launches(CASES, text)[CASES[0]] == (
        {"global load": {"instructions": 0, "requests": 36}},
        None,
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (REFUSED, "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"),
        ("", "no output"),
        ("ncu: command not found\nENDED with status 127", "ENDED with status 127"),
        (output(NAMES[:1], {}), "ncu saw 1 launches of the 2 that were made, or others: bye"),
        (output(NAMES[::-1], {}), "ncu saw 2 launches of the 2 that were made, or others: bye"),
    ],
)
def test_what_was_not_measured_says_why(text, why):
    assert ncu_tool.match_launches(CASES, text) == dict.fromkeys(CASES, (None, why))


@pytest.fixture
def fake_tool(tmp_path, monkeypatch):
    """A tool that prints its arguments, or does what a script says."""

    def make(script: str = 'for word in "$@"; do echo "$word"; done; echo "LC_ALL=$LC_ALL"') -> None:
        path = tmp_path / "ncu"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(ncu_tool, "find_ncu", lambda: str(path))

    return make


def test_the_command(fake_tool):
    fake_tool()
    words = ncu_tool.run_ncu(["program", "3"], ["one", "two"]).splitlines()
    assert words[words.index("-k") + 1] == "regex:^(one|two)$"
    assert words[words.index("--metrics") + 1].split(",") == list(METRICS.values())
    assert words[-3:] == ["program", "3", "LC_ALL=C"]


def test_a_program_that_takes_too_long_or_fails_is_named(fake_tool, monkeypatch):
    fake_tool("echo begun; exit 3")
    assert ncu_tool.run_ncu(["program"], ["one"]) == "begun\n\nENDED with status 3"
    monkeypatch.setattr(ncu_tool, "NCU_SECONDS", 0.5)
    fake_tool("echo begun; exec sleep 9")
    assert ncu_tool.run_ncu(["program"], ["one"]) == "begun\n\nENDED after 0.5 s"


def test_without_the_tool_it_is_one_line(monkeypatch):
    monkeypatch.setattr(ncu_tool, "find_ncu", lambda: None)
    monkeypatch.setattr(ncu_tool.architectures, "find_nvcc", lambda: None)
    with pytest.raises(UserError, match="nothing was run: no nvcc and no ncu; both are parts of the CUDA Toolkit"):
        ncu.record_ncu_counts()


# The record and its table -------------------------------------------------------------------------------------

NUMBERS = {"instructions": 4, "requests": 4, "sectors": 16}
OURS = {"global load": NUMBERS, "global store": NUMBERS}


@pytest.fixture
def programs(tmp_path, monkeypatch) -> dict[str, str]:
    """Two programs with one launch each; the text that the tool prints about each may be changed."""
    said = {}

    def program(case: KernelCase, name: str) -> ncu.CountedProgram:
        values = {(space, what): str(n) for space, numbers in OURS.items() for what, n in numbers.items()}
        said[case.kernel] = output([name], values)
        return ncu.CountedProgram(lambda: "the sources", lambda: {case: OURS}, lambda: said[case.kernel])

    made = {
        "microbenchmarks": program(KernelCase("coalesced"), "coalesced(float *)"),
        "stage 3": program(CASES[0], NAMES[0]),
    }
    monkeypatch.setattr(ncu, "counted_programs", lambda: made)
    monkeypatch.setattr(ncu_tool, "missing_requirement", lambda: None)
    monkeypatch.setattr(ncu_tool, "ncu_version", lambda: "2025.3.1.0")
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    monkeypatch.setattr("common.results.machine.describe_machine", lambda: {"gpu": "NVIDIA H200"})
    monkeypatch.setattr("common.results.machine.collect_versions", lambda: {"nvcc": "13.0", "torch": "2.11.0+cu130"})
    return said


def test_both_are_recorded_and_shown(programs, capsys):
    assert ncu.record_ncu_counts() == 0
    record = json.loads(STUDY.record().read_text())
    assert [launch["emulator"] for launch in record["launches"]] == [OURS, OURS]
    assert [launch["ncu"] for launch in record["launches"]] == [OURS, OURS]
    assert "12 of 12 numbers are the same in ncu." in capsys.readouterr().out
    text = ncu_table.ncu_table()
    assert text.startswith("ncu 2025.3.1.0 on NVIDIA H200, nvcc 13.0, torch 2.11.0, ")
    assert (
        "| `coalesced` | global load: instructions / requests / sectors | 4 / 4 / 16 | 4 / 4 / 16 | 4 / 4 / 16 | 1 |"
        in text
    )
    assert (
        "| stage 3 | `forward_kernel` | B3 S70 float32 | global store: instructions / requests / sectors "
        "| 4 / 4 / 16 | 4 / 4 / 16 | 1 |" in text
    )
    assert "note" not in text
    assert "Stale" not in text


def test_a_difference_is_counted_and_explained(programs, monkeypatch):
    name = METRICS["global load", "sectors"]
    programs["coalesced"] = programs["coalesced"].replace(f'"{name}","","16"', f'"{name}","","20"')
    ncu.record_ncu_counts()
    record = ncu.read_ncu_record()
    assert list(ncu.differences(record)) == [(KernelCase("coalesced"), "global load", "sectors", 16, 20)]
    assert "11 of 12 numbers are the same in ncu." in ncu.summarise_agreement(record)
    assert "| 4 / 4 / 16 | 4 / 4 / 20 | 1 / 1 / 1.25 (note 1) |" in ncu_table.ncu_table()
    assert "note 1: not explained yet" in ncu_table.ncu_table()
    monkeypatch.setitem(ncu_table.WHY, ("coalesced", "global load", "sectors"), "The moon was full.")
    assert ncu_table.ncu_table().endswith("note 1: The moon was full.")


def test_what_only_one_of_them_counts_is_a_difference(programs):
    name = METRICS["shared load", "wavefronts"]
    programs["forward_kernel"] = programs["forward_kernel"].replace(f'"{name}","","0"', f'"{name}","","3"')
    ncu.record_ncu_counts()
    assert list(ncu.differences(ncu.read_ncu_record())) == [(CASES[0], "shared load", "wavefronts", 0, 3)]
    assert "| 0 / 0 / 0 | 0 / 3 / 0 | 1 / - / 1 (note 1) |" in ncu_table.ncu_table()


def test_a_refusal_is_recorded_in_the_tools_words(programs):
    programs["forward_kernel"] = REFUSED
    ncu.record_ncu_counts()
    text = ncu_table.ncu_table()
    assert "6 of 6 numbers are the same in ncu. Not measured in 1 launches: ERR_NVGPUCTRPERM" in text
    assert "| 4 / 4 / 16 | not measured (note 1) |  |" in text
    assert "note 1: ERR_NVGPUCTRPERM - The user does not have permission" in text


def test_the_emulators_side_alone(programs, monkeypatch):
    monkeypatch.setattr(ncu_tool, "missing_requirement", lambda: "no GPU")
    assert ncu.record_ncu_counts(emulator_only=True) == 0
    assert "ncu: not measured yet. Not measured in 2 launches: not run yet." in ncu_table.ncu_table()
    monkeypatch.setattr(ncu_tool, "missing_requirement", lambda: None)
    ncu.record_ncu_counts()
    before = STUDY.record().read_text()
    ncu.record_ncu_counts(emulator_only=True)
    assert STUDY.record().read_text() == before


def test_changed_sources_make_it_stale(programs):
    ncu.record_ncu_counts()
    record = ncu.read_ncu_record()
    record["sources"]["stage 3"] = "older"
    STUDY.record().write_text(json.dumps(record))
    assert "Stale, because the sources have changed since: stage 3." in ncu_table.ncu_table()


def test_nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert ncu_table.ncu_table().startswith("Not counted yet: `make ncu`")


# What docs/results/ holds -------------------------------------------------------------------------------------


def test_every_recorded_difference_has_its_reason():
    for case, space, what, ours, theirs in ncu.differences(ncu.read_ncu_record()):
        assert (case.kernel, space, what) in ncu_table.WHY, f"{case} {space}: {what} {ours}, ncu {theirs}"


def test_the_record_has_every_launch():
    cases = [KernelCase.of(launch) for launch in ncu.read_ncu_record()["launches"]]
    assert [case.kernel for case in cases if case.stage is None] == list(microbenchmarks.read_expected_counts())
    wanted = [stage.number for stage in stages.cell_stages() if stage.pointwise_tensors]
    assert {case.stage for case in cases} == {None, *wanted}
    programs = len(wanted) + sum(bool(stage.small_kernels) for stage in stages.cell_stages())
    assert len(cases) == len(microbenchmarks.read_expected_counts()) + programs * len(ncu.POINTWISE_SIZES) * len(
        ncu.DTYPES
    ) * len(ncu.POINTWISE_KERNELS)


@pytest.mark.syllabus("6.3e")
@pytest.mark.needs("g++")
@pytest.mark.parametrize("name", list(ncu.counted_programs()))
def test_the_recorded_counts_are_those_of_the_emulator(name):
    recorded = {KernelCase.of(launch): launch["emulator"] for launch in ncu.read_ncu_record()["launches"]}
    found = ncu.counted_programs()[name].emulated()
    assert found == {case: recorded[case] for case in found}


@pytest.mark.needs("nvcc")
def test_the_patterns_compile_for_a_gpu(tmp_path):
    from common.build import nvcc

    command = [nvcc.find_nvcc(), "-std=c++17", "-o", str(tmp_path / "microbenchmarks"), str(microbenchmarks.SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_counts_of_a_kernel_are_sums_over_its_lines():
    rows = [Row("copy<T>", "x.cu", line, "", "shared load", 2, 64, 256, 0, 0, 3, 1) for line in (4, 5)]
    assert ncu.kernel_counts(Counted(rows=rows), "copy") == {
        "shared load": {"instructions": 4, "wavefronts": 6, "conflicts": 2}
    }
