"""Who finds what: the output of each tool is read rightly, and the table says what was measured.

The tools' outputs are written by hand after their documented formats.
"""

import json
import time

import pytest

from common import study
from common.build import nvcc
from common.errors import UserError
from common.gpu_tools import sanitizer
from common.paths import ROOT
from common.studies.compare_tools import STUDY, mistakes
from common.studies.compare_tools import recorder as tool_comparison
from common.studies.compare_tools import table as tool_comparison_table
from common.studies.compare_tools.mistakes import Mistake, MistakeMark

PROGRAM = mistakes.PROGRAMS / "races_block.cu"
WRONG = Mistake(PROGRAM, "wrong_x", (MistakeMark(31, "races", "partial"),))
RIGHT = Mistake(PROGRAM, "right_x", ())

BEGIN = "========= COMPUTE-SANITIZER\n"
END = "========= ERROR SUMMARY: {} errors\n"
RACE = """\
========= Error: Race reported between Read access at void sum(float *, const float *)+0x1f0 in races_block.cu:31
=========     and Write access at void sum(float *, const float *)+0x210 in races_block.cu:31 [248 hazards]
=========
"""
FAILED_CALL = """\
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to \
cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: run_cases(int, char**) in case.h:97 [0x1234] in races_block
=========         Host Frame: main in races_block.cu:320 [0x1234] in races_block
=========
========= Target application returned an error
"""
LEAK = """\
========= Leaked 4,096 bytes at 0x7f6c0e200000
=========     Saved host backtrace up to driver entry point at allocation time
=========         Host Frame: cudaMalloc [0x4c2f1] in leaks
=========         Host Frame: wrong_never_freed() in leaks.cu:LINE [0x9d52] in leaks
=========
========= LEAK SUMMARY: 4096 bytes leaked in 1 allocations
"""
REFUSED = (
    "========= Error: Device not supported. Please refer to the documentation\n========= ERROR SUMMARY: 1 error\n"
)
EMULATOR = """\
  error: races on partial, in common/emulator/programs/mistakes/races_block.cu:31 (races)
     kernel sum, 248 times, by 60 threads of 1 block; first block (0, 0, 0), thread (32, 0, 0)
"""


@pytest.mark.parametrize(
    ("tool", "output", "status", "outcome"),
    [
        ("racecheck", BEGIN + RACE + END.format(1), 0, "right line"),
        ("racecheck", BEGIN + RACE.replace(":31", ":3") + END.format(1), 0, "elsewhere"),
        ("racecheck", BEGIN + RACE.replace(":31", ":312") + END.format(1), 0, "elsewhere"),
        ("racecheck", BEGIN + RACE.replace("races_block", "case"), None, "hang"),
        ("racecheck", BEGIN + RACE, None, "right line"),
        ("memcheck", BEGIN + FAILED_CALL + END.format(1), 1, "elsewhere"),
        ("memcheck", BEGIN + "========= Target application returned an error\n" + END.format(0), 1, "silent"),
        ("memcheck", BEGIN + END.format(0), 0, "silent"),
        ("memcheck", BEGIN, None, "hang"),
        ("memcheck", BEGIN + REFUSED, 1, "not run"),
        ("memcheck", "compute-sanitizer: not found\n", 127, "not run"),
        ("no tool", "CUDA error: unspecified launch failure\n", 1, "elsewhere"),
        ("no tool", "", 0, "silent"),
        ("no tool", "", None, "hang"),
        ("emulator", EMULATOR, 1, "right line"),
        ("emulator", EMULATOR.replace(":31", ":32"), 1, "elsewhere"),
        ("emulator", EMULATOR.replace("partial", "total"), 1, "elsewhere"),
        ("emulator", EMULATOR.replace("(races)", "(memory)"), 1, "elsewhere"),
        ("emulator", "", 0, "silent"),
    ],
)
def test_what_became_of_a_mistake(tool, output, status, outcome):
    assert tool_comparison.comparison_row(WRONG, tool, output, status)["outcome"] == outcome
    assert outcome in tool_comparison.TOOL_OUTCOMES


def test_a_leak_is_found_where_it_was_allocated():
    (leak,) = [
        case for case in mistakes.read_mistakes(mistakes.PROGRAMS / "leaks.cu") if case.name == "wrong_never_freed"
    ]
    said = LEAK.replace("LINE", str(leak.marks[0].line))
    row = tool_comparison.comparison_row(leak, "memcheck", BEGIN + said + END.format(1), 0)
    assert (row["outcome"], row["message"]) == ("right line", "Leaked 4,096 bytes at 0x7f6c0e200000")


def test_the_first_error_is_kept():
    row = tool_comparison.comparison_row(WRONG, "racecheck", BEGIN + RACE + FAILED_CALL + END.format(2), 1)
    assert row["message"].startswith("Error: Race reported between Read access at void sum")
    assert "\n" not in row["message"]


def test_right_cases_run_together_until_something_is_said(monkeypatch):
    ran = []

    def run(command):
        ran.append(list(command[1:]))
        return (BEGIN + (RACE if "right_b" in command else "") + END.format(0), 0)

    monkeypatch.setattr(tool_comparison, "run_command", run)
    wrong, *right = (Mistake(PROGRAM, name, ()) for name in ("wrong_x", "right_a", "right_b", "right_c"))
    assert tool_comparison.group_cases([wrong, *right]) == [[wrong], right]
    rows = tool_comparison.run_cases("racecheck", ["program"], right)
    assert ran == [["right_a", "right_b", "right_c"], ["right_a"], ["right_b"], ["right_c"]]
    assert [(row["case"], row["outcome"]) for row in rows] == [
        ("right_a", "silent"), ("right_b", "elsewhere"), ("right_c", "silent")
    ]  # fmt: skip
    ran.clear()
    assert [row["outcome"] for row in tool_comparison.run_cases("racecheck", ["program"], right[:1])] == ["silent"]
    assert [row["outcome"] for row in tool_comparison.run_cases("racecheck", ["program"], [right[0], right[2]])] == [
        "silent"
    ] * 2
    assert ran == [["right_a"], ["right_a", "right_c"]]


def test_a_command_that_hangs_is_stopped_with_all_it_started(monkeypatch):
    monkeypatch.setattr(tool_comparison, "CASE_SECONDS", 0.5)
    start = time.monotonic()
    assert tool_comparison.run_command(["sh", "-c", "echo begun; sleep 60; echo gone"]) == ("begun\n", None)
    assert time.monotonic() - start < 30
    assert tool_comparison.run_command(["sh", "-c", "echo well >&2; exit 3"]) == ("well\n", 3)


def test_options_that_a_tool_does_not_know_are_left_out(tmp_path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho '  --leak-check arg (=no)   Print leak information'\n")
    tool.chmod(0o755)
    assert tool_comparison.known_options(str(tool), "memcheck") == ["--leak-check=full"]
    assert tool_comparison.known_options(str(tool), "initcheck") == []
    assert tool_comparison.known_options(str(tool), "emulator") == []


def test_without_the_tools_it_is_one_line(monkeypatch):
    monkeypatch.setattr(sanitizer, "compute_sanitizer", lambda: None)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    with pytest.raises(UserError, match="nothing was run: no nvcc and no compute-sanitizer") as error:
        tool_comparison.record_tool_comparison()
    assert "\n" not in str(error.value)


# The table ----------------------------------------------------------------------------------------------------


def mistakes_in(program: str) -> int:
    return sum(case.kind != "right" for case in mistakes.read_mistakes(mistakes.PROGRAMS / f"{program}.cu"))


def outcome_of(case: Mistake, tool: str) -> str:
    """An invented measurement: racecheck finds races on shared memory, the emulator everything."""
    if tool == "emulator":
        return "silent" if case.kind == "right" else "right line"
    if tool == "racecheck" and case.program == PROGRAM and case.kind == "wrong":
        return "elsewhere" if case.name == "wrong_tile_overwritten" else "right line"
    if tool == "synccheck" and case.name == "right_tiles":
        return "elsewhere"
    if tool == "no tool" and case.name == "wrong_no_barrier_in_the_loop":
        return "elsewhere"
    return "hang" if case.name == "wrong_scan_in_place" else "silent"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """What docs/results/studies/compare_tools.json is taken to hold."""
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    record = {
        "date": "2026-03-14T15:09:26Z",
        "machine": {"gpu": "NVIDIA H200", "driver": "580.1"},
        "versions": {"nvcc": "13.0", "compute-sanitizer": "2025.3"},
        "sources": {program.stem: tool_comparison.hash_program(program) for program in mistakes.mistake_programs()},
        "rows": [
            {"program": p.stem, "case": case.name, "tool": f, "outcome": outcome_of(case, f), "message": ""}
            for f in tool_comparison.TOOLS
            for p in mistakes.mistake_programs()
            for case in mistakes.read_mistakes(p)
        ],
    }
    STUDY.record().write_text(json.dumps(record))
    return record


def test_the_table(recorded):
    text = tool_comparison_table.tool_comparison_table()
    assert text.startswith("NVIDIA H200, driver 580.1, nvcc 13.0, compute-sanitizer 2025.3, 2026-03-14. A mistake")
    n = mistakes_in("races_block")
    found = f"{n - 1} (1 elsewhere) | 0 (1 hang) | 0 (1 hang) | {n - 1} | 1 (1 hang) |"
    assert f"| Races in a block | {n} | {n} | 0 (1 hang) | {found}" in text
    right = sum(case.kind == "right" for p in mistakes.mistake_programs() for case in mistakes.read_mistakes(p))
    assert f"| no mistake: false alarms | {right} | 0 | 0 | 0 | 0 | 1 | 1 | 0 |" in text
    assert text.endswith("\n\nThe emulator reports every mistake that was measured at the right line.")
    assert "Stale" not in text


def test_what_the_emulator_misses_is_named(recorded):
    for row in recorded["rows"]:
        if row["tool"] == "emulator" and row["case"] == "wrong_scan_in_place":
            row["outcome"] = "elsewhere"
    STUDY.record().write_text(json.dumps(recorded))
    text = tool_comparison_table.tool_comparison_table()
    assert text.endswith("does not report these mistakes at the right line: `races_block wrong_scan_in_place`.")
    assert f"| {mistakes_in('races_block') - 1} (1 elsewhere) | 0 (1 hang) |" in text


def test_a_mistake_that_was_not_compared_is_not_missed(recorded):
    recorded["rows"] = [row for row in recorded["rows"] if row["case"] != "wrong_scan_in_place"]
    STUDY.record().write_text(json.dumps(recorded))
    text = tool_comparison_table.tool_comparison_table()
    assert text.endswith("\n\nThe emulator reports every mistake that was measured at the right line.")


def test_changed_programs_are_stale(recorded):
    recorded["sources"]["masks"] = "older"
    del recorded["sources"]["streams"]
    STUDY.record().write_text(json.dumps(recorded))
    assert (
        "Stale, because the programs have changed since: Warp masks, Order of streams."
        in tool_comparison_table.tool_comparison_table()
    )


def test_a_tool_that_refused_is_not_measured(recorded):
    for row in recorded["rows"]:
        if row["tool"] == "synccheck":
            row["outcome"] = "not run"
    STUDY.record().write_text(json.dumps(recorded))
    n = mistakes_in("masks")
    assert (
        f"| Warp masks | {n} | {n} | 0 | 0 | 0 | not measured | 0 | 0 |"
        in tool_comparison_table.tool_comparison_table()
    )


def test_nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    text = tool_comparison_table.tool_comparison_table()
    assert text.startswith("Not measured yet: `make compare-tools`")
    assert f"| Races in a block | {mistakes_in('races_block')} | not measured | not measured |" in text


@pytest.mark.needs("gpu", "nvcc", "compute-sanitizer")
@pytest.mark.syllabus("3.8a")
def test_a_tool_finds_a_planted_mistake():
    program = mistakes.PROGRAMS / "memory_global.cu"
    (case,) = [case for case in mistakes.read_mistakes(program) if case.name == "wrong_guard_off_by_one"]
    command = [
        sanitizer.compute_sanitizer(),
        "--tool",
        "memcheck",
        sanitizer.compile_program(program, "-g"),
        case.name,
    ]
    row = tool_comparison.comparison_row(
        case, "memcheck", *tool_comparison.run_command([str(word) for word in command])
    )
    assert row["outcome"] in ("right line", "not run"), row


def test_marks_are_read(tmp_path):
    program = tmp_path / "some.cu"
    program.write_text(
        "__global__ void k() { a[9] = 1; }  // BUG memory: a\nCASE(wrong_one) { k<<<1, 1>>>(); }\n"
        "CASE(warned_two) {\n  __syncthreads();  // WARNING barriers\n}\nCASE(right_three) {  // as it should be\n}\n"
    )
    assert mistakes.read_mistakes(program) == [
        Mistake(program, "wrong_one", (MistakeMark(1, "memory", "a"),)),
        Mistake(program, "warned_two", (MistakeMark(4, "barriers", None),)),
        Mistake(program, "right_three", ()),
    ]


def test_findings_are_read():
    text = (
        "CUDA error: unspecified launch failure\n"
        "  error: reads past the end of in, in common/emulator/programs/mistakes/races_block.cu:12 (memory)\n"
        "     element 9 of in\n"
        "  warning: threads have returned, in other.h:3:7 (barriers)\n"
        "  and 4 more: fix these first\n"
    )
    first, second = mistakes.parse_report(text, PROGRAM)
    assert (first.is_warning, first.check, first.line, first.lines) == (False, "memory", 12, {12})
    assert first.text.endswith("element 9 of in")
    assert (second.is_warning, second.check, second.line) == (True, "barriers", None)


def test_every_program_compiles_alone():
    """Beside CUDA's headers, only case.h is included: a program can be copied with it and compiled anywhere."""
    for program in mistakes.mistake_programs():
        included = [line for line in program.read_text().splitlines() if line.startswith('#include "')]
        assert included == ['#include "case.h"'], program.name


def test_what_a_notebook_shows_is_kept_whole():
    names = [case.name for program in mistakes.mistake_programs() for case in mistakes.read_mistakes(program)]
    assert [names.count(name) for name in tool_comparison.SHOWN_CASES] == [1] * len(tool_comparison.SHOWN_CASES)
    case = next(
        c
        for p in mistakes.mistake_programs()
        for c in mistakes.read_mistakes(p)
        if c.name == tool_comparison.SHOWN_CASES[0]
    )
    assert tool_comparison.comparison_row(case, "memcheck", f"at {ROOT}/tests/x.cu:1", 1)["said"] == "at tests/x.cu:1"
    assert "said" not in tool_comparison.comparison_row(case, "no tool", "", 0)
