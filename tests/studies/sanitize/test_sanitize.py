"""compute-sanitizer: what its tools print is read rightly, and a refusal is no clean bill.

The outputs here are written by hand after the tools' documented formats.
"""

import json
import shutil
import subprocess

import pytest

from common import stages, study
from common.build import nvcc
from common.errors import UserError
from common.gpu_tools import sanitizer as tool
from common.results import sources
from common.studies.sanitize import STUDY
from common.studies.sanitize import recorder as sanitizer
from common.studies.sanitize import table as sanitizer_table

STAGE = stages.find_stage(3)
CASES = [f"CASE {case.kernel} {case.dtype} {case.B} {case.S}" for case in sanitizer.launch_cases(STAGE)]
HEADER = "========= COMPUTE-SANITIZER\n"
NO_ERRORS = "========= ERROR SUMMARY: 0 errors\n"
OUT_OF_BOUNDS = """\
========= Invalid __global__ write of size 4 bytes
=========     at void forward_kernel<float>(T1 *, T1 *, T1 *, const T1 *, const T1 *, long, long)+0x2f0
=========     by thread (70,0,0) in block (0,2,0)
=========     Access at 0x7f1c2b200e38 is out of bounds
=========     and is 57 bytes after the nearest allocation at 0x7f1c2b200a00 of size 840 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main in driver.cu:71 [0x1234] in driver
=========
"""
RACE = """\
========= Error: Race reported between Write access at void backward_kernel<double>+0x90
=========     and Read access at void backward_kernel<double>+0xb0 [8 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
UNWRITTEN = """\
========= Host API uninitialized memory read of size 840 bytes
=========     at cudaMemcpy
=========
"""
BARRIER = """\
========= Barrier error detected. Divergent thread(s) in block.
=========     at forward_kernel+0x110
=========     by thread (32,0,0) in block (0,0,0)
=========
"""
REFUSED = """\
========= COMPUTE-SANITIZER
========= Error: Device not supported. Please refer to the "Supported Devices" section of the documentation
cudaMalloc: unknown error
========= Target application returned an error
========= ERROR SUMMARY: 1 error
ENDED with status 1"""


def output(errors: dict[int, str], summary: str = NO_ERRORS, until: int | None = None) -> str:
    """A whole run: the cases in order, with what the tool says after some of them."""
    lines = [f"{case}\n{errors.get(k, '')}" for k, case in enumerate(CASES[:until])]
    return HEADER + "\n".join(lines) + summary


def outcomes(text: str, tool: str = "memcheck") -> list[str]:
    return [row["outcome"] for row in sanitizer.outcome_rows(STAGE, tool, text)]


def test_every_kernel_dtype_and_shape_class_is_a_case():
    cases = sanitizer.launch_cases(STAGE)
    assert len(cases) == len(set(cases)) == 2 * 2 * 6
    sizes = {(case.B, case.S) for case in cases}
    assert {(0, 8), (65537, 2)} < sizes
    assert any(S == 1 for _, S in sizes)
    assert any(B == 1 for B, _ in sizes)
    assert any(S > 1024 for _, S in sizes)


def test_clean():
    assert outcomes(output({})) == ["clean"] * len(CASES)
    assert outcomes(output({}, "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n")) == (
        ["clean"] * len(CASES)
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (OUT_OF_BOUNDS, "Invalid __global__ write of size 4 bytes (1 in all)"),
        (OUT_OF_BOUNDS * 2, "Invalid __global__ write of size 4 bytes (2 in all)"),
        (RACE, "Error: Race reported between Write access at void backward_kernel<double>+0x90 (1 in all)"),
        (UNWRITTEN, "Host API uninitialized memory read of size 840 bytes (1 in all)"),
        (BARRIER, "Barrier error detected. Divergent thread(s) in block. (1 in all)"),
    ],
)
def test_an_error_belongs_to_the_case_before_it(said, message):
    rows = sanitizer.outcome_rows(STAGE, "memcheck", output({5: said}))
    assert [k for k, row in enumerate(rows) if row["outcome"] == "errors"] == [5]
    assert rows[5]["message"] == message
    case = sanitizer.launch_cases(STAGE)[5]
    assert (rows[5]["kernel"], rows[5]["dtype"], rows[5]["B"]) == (case.kernel, case.dtype, case.B)


def test_a_tool_that_refuses_the_machine_measures_nothing():
    rows = sanitizer.outcome_rows(STAGE, "memcheck", REFUSED)
    assert {row["outcome"] for row in rows} == {"not measured"}
    assert rows[0]["message"].startswith("Error: Device not supported.")


@pytest.mark.parametrize("text", ["", "sanitizer: command not found\nENDED with status 127"])
def test_no_output_measures_nothing(text):
    assert set(outcomes(text)) == {"not measured"}


def test_a_program_that_ends_early_leaves_the_rest_unmeasured():
    rows = sanitizer.outcome_rows(STAGE, "memcheck", output({}, NO_ERRORS + "ENDED with status 1", until=7))
    assert [row["outcome"] for row in rows] == ["clean"] * 7 + ["not measured"] * (len(CASES) - 7)
    assert "the program ended before it: ENDED with status 1" in rows[-1]["message"]


def test_without_a_summary_nothing_is_clean():
    assert set(outcomes(output({}, f"\nENDED after {sanitizer.TOOL_SECONDS} s"))) == {"not measured"}


def test_a_program_that_takes_too_long_or_fails_is_named(monkeypatch):
    monkeypatch.setattr(sanitizer, "TOOL_SECONDS", 0.5)
    assert sanitizer.run_tool(["sh", "-c", "echo begun; exec sleep 9"]).split("\n", 1) == [
        "begun",
        "\nENDED after 0.5 s",
    ]
    monkeypatch.setattr(sanitizer, "TOOL_SECONDS", 60)
    assert sanitizer.run_tool(["sh", "-c", "echo gone; exit 3"]) == "gone\n\nENDED with status 3"
    assert sanitizer.run_tool(["echo", "well"]) == "well\n"


@pytest.fixture
def recorded(tmp_path, monkeypatch) -> dict:
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    record = {
        "date": "2026-03-14T15:09:26Z",
        "machine": {"gpu": "NVIDIA H200", "driver": "580.1"},
        "versions": {"nvcc": "13.0"},
        "sources": {"3": sources.hash_stage(STAGE)},
        "rows": [
            *sanitizer.outcome_rows(STAGE, "memcheck", output({})),
            *sanitizer.outcome_rows(STAGE, "racecheck", output({1: RACE})),
            *sanitizer.outcome_rows(STAGE, "initcheck", REFUSED),
        ],
    }
    STUDY.record().write_text(json.dumps(record))
    return record


def test_the_table(recorded):
    text = sanitizer_table.sanitizer_table()
    assert "compute-sanitizer on NVIDIA H200, driver 580.1, nvcc 13.0, 2026-03-14" in text
    assert (
        "| stage 3 | `forward_kernel` | no row (B0 S8) | clean | clean | not measured (note 1) | not measured |"
        in text
    )
    assert "| `backward_kernel` | no row (B0 S8) | clean | **errors** (note 2) | not measured (note 1) |" in text
    assert "note 1: Error: Device not supported." in text
    assert "note 2: Error: Race reported" in text
    assert "Stale" not in text
    assert list(sanitizer.summarise_outcomes(recorded))[1].startswith(
        "stage 3, racecheck: 23 clean, 1 with errors (Error: Race"
    )


def test_changed_sources_make_it_stale(recorded):
    recorded["sources"]["3"] = "older"
    STUDY.record().write_text(json.dumps(recorded))
    assert sanitizer_table.sanitizer_table().endswith("Stale, because the sources have changed since: stage 3.")


def test_nothing_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    assert sanitizer_table.sanitizer_table().startswith("Not measured yet: `make sanitize`")


def test_without_the_tools_it_is_one_line(monkeypatch):
    monkeypatch.setattr(tool, "compute_sanitizer", lambda: None)
    monkeypatch.setattr(nvcc, "find_nvcc", lambda: None)
    with pytest.raises(UserError, match="nothing was run: no nvcc and no compute-sanitizer") as error:
        sanitizer.run_sanitizer()
    assert "\n" not in str(error.value)


@pytest.mark.needs("g++")
@pytest.mark.parametrize("number", [4, 6])
def test_the_driver_in_python_launches_every_case(number, capsys):
    few = [
        case for case in sanitizer.launch_cases(stages.get_stage(number)) if case.B < 100
    ]  # the large one takes a minute here
    sizes = dict.fromkeys((case.B, case.S) for case in few)
    sanitizer.launch_cases_of(number, [number for size in sizes for number in size], "emulator")
    printed = [line for line in capsys.readouterr().out.splitlines() if line]
    assert printed == [f"CASE {case.kernel} {case.dtype} {case.B} {case.S}" for case in few]
    kernels = {*sanitizer.POINTWISE_KERNELS, *stages.get_stage(number).small_kernels}
    assert {case.kernel for case in few} == kernels


@pytest.mark.needs("nvcc")
def test_the_driver_in_cuda_compiles(tmp_path):
    from common.paths import ROOT

    source = ROOT / "common" / "studies" / "sanitize" / "stage3.cu"
    flags = ["-std=c++17", f"-I{STAGE.folder / 'csrc'}", "-o", str(tmp_path / "driver")]
    done = subprocess.run([nvcc.find_nvcc(), *flags, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("gpu", "nvcc", "compute-sanitizer")
@pytest.mark.syllabus("3.8a")
def test_a_planted_mistake_is_found(monkeypatch, tmp_path):
    folder = tmp_path / "csrc"
    shutil.copytree(STAGE.folder / "csrc", folder)
    kernel = folder / "lltm_kernel.cu"
    kernel.write_text(kernel.read_text().replace("if (unit >= state_size) return;", ""))
    wrong = stages.Stage(3, str(tmp_path), "cell", "no guard", ("cuda",), (9, 10))
    command = sanitizer.driver_command(wrong)
    text = sanitizer.run_tool([tool.compute_sanitizer(), "--tool", "memcheck", *command])
    found = sanitizer.outcome_rows(STAGE, "memcheck", text)
    assert any(row["outcome"] == "errors" for row in found) or found[0]["outcome"] == "not measured", text[-2000:]
