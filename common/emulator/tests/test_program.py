"""`make emulate`: correct and wrong CUDA programs with a `main`, and files that are not programs."""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.emulator import Cache, build_program
from common.emulator.tests.nvcc import compile_with_nvcc
from common.paths import ROOT, build_cache

PROGRAMS = ROOT / "common" / "emulator" / "tests" / "programs"
WRONG = PROGRAMS / "wrong"
FOUND_WRONG, TIME_IS_UP = 66, 124
pytestmark = pytest.mark.needs("g++")

# Name, arguments, exit status, and the last line of its output.
RIGHT = [
    ("add", [], 0, "z[999] = 3: no error"),
    ("add", ["40000"], 0, "z[39999] = 3: no error"),
    ("streams", [], 0, "as it should be"),
    ("memory", [], 0, "as it should be"),
    ("kernels", [], 0, "280 280"),
    ("queries", [], 3, "as it should be"),
    ("headers", [], 0, ""),
    ("own_names", [], 0, ""),
    ("reference_in_header", [], 0, "42"),
    ("blocked_host", [], 0, "0 wrong"),
]
# Name, exit status, and the findings: the message, the text of the source line, and the check. The text is None if
# the message itself names the line.
FINDINGS = [
    ("past_end", 66, [("writes past the end of x", "x[i] = i", "memory")]),
    ("past_variable", 66, [("writes past the end of pair", "pair[n] = 42", "memory")]),
    ("after_free", 66, [("writes x after it was freed in FILE:5", "x[threadIdx.x] = 7", "memory")]),
    ("kernel_null", 66, [("writes through a null pointer", "x[threadIdx.x] = 7", "memory")]),
    ("kernel_takes_host", 66, [("writes host memory through x", "x[threadIdx.x] = 7", "memory")]),
    ("exits", 5, [("writes past the end of x", "x[threadIdx.x] = 7", "memory")]),
    ("assert_fails", 66, [("fails the assertion `threadIdx.x < n` in FILE:3", None, "launch")]),
    (
        "refused",
        66,
        [
            (
                "the launch of fill is refused: it asks for 2048 threads per block, (2048, 1, 1); "
                "the device allows 1024",
                "fill<<<",
                "launch",
            )
        ],
    ),
    (
        "nested_without_end",
        66,
        [("the launch of nest is refused: it is nested more than 2048 deep", "nest<<<1, 1>>>(depth", "launch")],
    ),
    (
        "host_reads_device",
        139,
        [("the host reads d_x, which is device memory: copy it with cudaMemcpy", "printf(", "memory")],
    ),
    (
        "host_writes_device",
        139,
        [("the host writes d_x, which is device memory: copy it with cudaMemcpy", "memset(", "memory")],
    ),
    (
        "host_frees_device",
        139,
        [("the host passes d_x to free or delete: use cudaFree or cudaFreeHost", "  free(", "memory")],
    ),
    (
        "too_early",
        66,
        [("the host reads h_x while cudaMemcpyAsync to h_x may still be using it", "too early:", "streams")],
    ),
    (
        "managed_too_early",
        66,
        [("the host reads m while kernel fill may still be using it", "printf(", "streams")],
    ),
    (
        "sleeps_instead",
        66,
        [("the host reads m while kernel fill may still be using it", "printf(", "streams")],
    ),
    (
        "tile_waits",
        66,
        [
            (
                "threads wait forever at the barrier of tile 0 of 64 threads for 32 others, in FILE:5:41",
                None,
                "barriers",
            )
        ],
    ),
    (
        "tile_sources",
        66,
        [("reads from rank 1 of its tile with shfl, but rank 0 reads from rank 0, in FILE:5:29", None, "barriers")],
    ),
    (
        "reduction_mask",
        66,
        [("__reduce_add_sync waits forever for lanes that wait elsewhere, in FILE:2:49", None, "barriers")],
    ),
    (
        "never_waited",
        66,
        [("kernel hello did not run: the program ended without waiting for it", "hello<<<", "streams")],
    ),
    (
        "wrong_stream",
        1,
        [("cudaMemcpy to h_x does not wait for kernel fill, and both use d_x", "cudaMemcpy(", "streams")],
    ),
    (
        "overtakes",
        66,
        [("kernel scale does not wait for cudaMemcpyAsync to d_x, and both use d_x", "scale<<<", "streams")],
    ),
    ("double_free", 66, [("cudaFree of d_x, which was already freed in FILE:4", "cudaFree(d_x);\n}", "memory")]),
    (
        "wrong_free",
        66,
        [
            ("cudaFree of plain, which was not allocated by CUDA", "cudaFree(plain)", "memory"),
            ("cudaFree of a pointer into d_x, not to its beginning", "cudaFree(d_x + 4)", "memory"),
            ("cudaFreeHost of d_x, which is memory from cudaMalloc: use cudaFree", "cudaFreeHost(d_x)", "memory"),
            ("cudaFree of h_x, which is memory from cudaMallocHost: use cudaFreeHost", "cudaFree(h_x)", "memory"),
        ],
    ),
    (
        "overlong",
        66,
        [
            ("cudaMemcpy writes 800 bytes to d_x, which has 400", "cudaMemcpy(", "memory"),
            ("cudaMemset writes 400 bytes to d_x + 50, which has 200", "cudaMemset(", "memory"),
        ],
    ),
    (
        "direction",
        66,
        [
            (
                "cudaMemcpy has the direction cudaMemcpyHostToDevice, "
                "but its destination h_x is ordinary host memory",
                "cudaMemcpy(h_x",
                "memory",
            ),
            (
                "cudaMemcpy has the direction cudaMemcpyDeviceToHost, but its destination d_x is device memory",
                "cudaMemcpy(d_x",
                "memory",
            ),
            ("cudaMemset is given h_x, which is ordinary host memory", "cudaMemset(", "memory"),
            ("cudaMemcpy writes nullptr, a null pointer", "cudaMemcpy(nullptr", "memory"),
        ],
    ),
    (
        "unwritten",
        66,
        [
            (
                "cudaMemcpy copies d_x to the host, but all of it is uninitialised",
                "cudaMemcpy(h, d_x",
                "initialisation",
            )
        ],
    ),
]
# Name, exit status, what the host did wrong, and the text of the line.
CRASHES = [
    ("host_null", 139, "crashes, not a kernel: it writes through a null pointer: address 0x0", "*p = 3"),
    ("host_divides", 136, "crashes, not a kernel: it divides an integer by zero", "3 / zero"),
    ("host_recursion", 139, "crashes, not a kernel: it overflows its stack", "int deep("),
    ("host_asserts", 134, "aborts (a failed assert, an uncaught exception, or a corrupted heap)", "assert(argc"),
    ("host_throws", 134, "aborts (a failed assert, an uncaught exception, or a corrupted heap)", "few.at(3)"),
    ("takes_memory", 134, "aborts (a failed assert, an uncaught exception, or a corrupted heap)", "new char"),
    (
        "short_source",
        139,
        "crashes, not a kernel: cudaMemcpy is given host memory that does not exist or is too short: address ADDRESS",
        "cudaMemcpy(",
    ),
]


def emulate(file: Path | str, *arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    """Runs the command. A program's name stands for its file in common/emulator/tests/programs."""
    if file and (PROGRAMS / f"{file}.cu").exists():
        file = (PROGRAMS / f"{file}.cu").relative_to(ROOT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-m", "common", "emulate", str(file), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def line(name: str, text: str) -> str:
    """FILE:LINE of the first line of a program that contains a text, as a report names it."""
    source = (PROGRAMS / f"{name}.cu").read_text()
    return f"common/emulator/tests/programs/{name}.cu:{source[: source.index(text)].count(chr(10)) + 1}"


def no_process_is_left(marker: str) -> bool:
    """Whether no process has the marker in its environment."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in environment.read_bytes():
                return False
        except OSError:
            continue
    return True


@pytest.mark.parametrize(("name", "arguments", "status", "last"), RIGHT)
def test_a_right_program_runs_and_nothing_is_found(name, arguments, status, last):
    done = emulate(name, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1:] == ([last] if last else [])
    first, *notes = done.stderr.splitlines()
    assert re.fullmatch(r"emulator: (\d+ launch(es)?, no problem found|no kernel was launched, so .*)", first)
    assert all(note.startswith("  note: event times") for note in notes)


@pytest.mark.parametrize(("name", "status", "findings"), FINDINGS, ids=[name for name, *_ in FINDINGS])
def test_what_is_wrong_is_found(name, status, findings):
    name = f"wrong/{name}"
    done = emulate(name)
    assert done.returncode == status, done.stdout + done.stderr
    expected = []
    for what, text, check in findings:
        what = what.replace("FILE", f"common/emulator/tests/programs/{name}.cu")
        expected.append(f"error: {what}{f', in {line(name, text)}' if text else ''} ({check})")
    assert [text.strip() for text in done.stderr.splitlines() if text.startswith("  error: ")] == expected


@pytest.mark.parametrize(("name", "status", "what", "text"), CRASHES, ids=[name for name, *_ in CRASHES])
def test_a_crash_of_the_host_is_told_from_one_in_a_kernel(name, status, what, text):
    done = emulate(f"wrong/{name}", EMULATOR_TIMEOUT="20")
    assert done.returncode == status, done.stdout + done.stderr
    [error] = [one for one in done.stderr.splitlines() if one.startswith("  error: ")]
    error = re.sub(r"address 0x[0-9a-f]{3,}", "address ADDRESS", error)
    assert error == f"  error: the host code {what}, in {line(f'wrong/{name}', text)}"


def test_who_and_which_element_and_where_it_came_from():
    done = emulate("wrong/past_end")
    report = done.stderr.splitlines()
    assert report[2].startswith("     element 100 of x, which has 100 elements (400 bytes, allocated in ")
    assert report[2].endswith("common/emulator/tests/programs/wrong/past_end.cu:8, on the host: d_x)")
    assert report[3] == "     kernel fill, block (3, 0, 0), thread (4, 0, 0)"


def test_a_null_pointer_from_an_allocation_that_failed():
    report = emulate("wrong/out_of_memory").stderr.splitlines()
    assert report[1].startswith("  error: writes through a null pointer, in ")
    assert report[2] == "     x was null at the launch: an allocation has failed with cudaErrorMemoryAllocation"


def test_an_error_of_a_kernel_stays_until_the_device_is_reset():
    done = emulate("wrong/past_end")
    assert done.stdout.split() == ["cudaSuccess", *3 * ["cudaErrorIllegalAddress"], "cudaSuccess", "cudaSuccess"]


def test_a_kernel_whose_launch_is_refused_gets_the_error_and_the_host_does_not():
    nested, host = emulate("wrong/nested_without_end").stdout.splitlines()
    assert nested == "2048 deep, then cudaErrorLaunchPendingCountExceeded"
    assert host == "the host: cudaSuccess"


def test_a_mistake_in_a_loop_is_one_finding_and_launches_after_an_error_do_nothing():
    _, past_end, *_, unwritten, _, times, note = emulate("wrong/repeats").stderr.splitlines()
    assert past_end == f"  error: writes past the end of x, in {line('wrong/repeats', 'x[threadIdx.x] = 1')} (memory)"
    assert unwritten.startswith("  error: reads element 0 of x, which is uninitialised, in ")
    assert times.startswith("     kernel copy, 160 times, by 32 threads of 1 block; ")
    assert note.startswith("  note: after an error in a kernel, later launches and copies do nothing")


def test_work_that_nothing_waits_for_does_not_happen():
    assert emulate("wrong/never_waited").stdout == "bye\n"
    assert emulate("wrong/too_early").stdout == "too early: 0\nin time: 7\n"


LEAKS = [
    ("d_x is never freed (1024 bytes from cudaMalloc)", "cudaMalloc("),
    ("h_y is never freed (2048 bytes from cudaMallocHost)", "cudaMallocHost("),
]


def test_a_leak_is_a_warning():
    done = emulate("wrong/leaks")
    assert done.returncode == 0
    alone = "; a leak alone does not make the program fail"
    assert done.stderr.splitlines()[1:] == [
        f"  warning: {what}{alone}, in {line('wrong/leaks', text)} (leaks)" for what, text in LEAKS
    ]


def test_a_leak_can_be_an_error():
    done = emulate("wrong/leaks", EMULATOR_LEAKS="error")
    assert done.returncode == FOUND_WRONG
    assert done.stderr.splitlines()[1:] == [
        f"  error: {what}, in {line('wrong/leaks', text)} (leaks)" for what, text in LEAKS
    ]


def test_a_leak_comes_after_the_mistake():
    done = emulate("wrong/never_written")
    assert done.returncode == FOUND_WRONG
    error, leak, other = [text for text in done.stderr.splitlines() if text.startswith(("  error:", "  warning:"))]
    assert error.startswith("  error: cudaMemcpy copies d_y to the host, but 128 of the 132 bytes are uninitialised")
    assert "d_y is never freed" in leak
    assert "h_flag is never freed" in other


def test_the_host_reads_what_no_kernel_has_written():
    name = "wrong/host_reads_unwritten"
    done = emulate(name)
    assert done.returncode == FOUND_WRONG, done.stdout + done.stderr
    errors = [text for text in done.stderr.splitlines() if text.startswith("  error:")]
    said = "but no kernel has written any of it"
    assert errors == [
        f"  error: the host reads {array}, {said}, in {line(name, text)} (initialisation)"
        for array, text in (("managed", "managed[3]"), ("mapped", "mapped[5]"))
    ]
    assert "no problem found" in emulate(name, EMULATOR_CHECKS="-initialisation").stderr


def test_part_of_a_copy_that_nobody_wrote_is_a_warning():
    done = emulate("wrong/unwritten")
    assert "warning: cudaMemcpy copies d_y to the host, but 4 of the 128 bytes are uninitialised" in done.stderr


def test_an_error_that_the_program_handles_is_a_warning():
    done = emulate("handled")
    assert (done.returncode, done.stdout) == (0, "7\n")
    assert "  warning: the launch of fill is refused" in done.stderr
    assert "error:" not in done.stderr


def test_functions_without_a_mask_work_with_a_warning():
    done = emulate("old_shuffles")
    assert (done.returncode, done.stdout) == (0, "496 aaaa 2\n")
    for name, text in (("__shfl_down", "step /= 2"), ("__ballot", "__ballot"), ("__any", "__all")):
        old = f"{name} has no mask, and devices since Volta do not have it: use {name}_sync"
        assert f"  warning: {old}, in {line('old_shuffles', text)} (barriers)\n" in done.stderr
    assert "error:" not in done.stderr


def test_a_long_launch_shows_its_progress():
    shown, times, seconds = [], 2000, 0
    while not shown and seconds < 20:  # more work until the launch takes longer than five seconds
        times, began = 3 * times, time.monotonic()
        done = emulate("slow", str(times), EMULATOR_PROGRESS="1")
        shown = re.findall(r"\x1b\[Kemulator: kernel write_often, (\d+) of 10000 blocks, (\d+) s", done.stderr)
        seconds = time.monotonic() - began
    assert shown
    assert [int(blocks) for blocks, _ in shown] == sorted(int(blocks) for blocks, _ in shown)
    assert int(shown[0][1]) >= 5
    assert done.stderr.endswith("\x1b[Kemulator: 1 launch, no problem found\n")  # nothing is left of it
    assert emulate("slow", str(times)).stderr == "emulator: 1 launch, no problem found\n"


def test_checks_can_be_switched_off():
    done = emulate("wrong/leaks", EMULATOR_CHECKS="-leaks")
    assert (done.returncode, done.stderr) == (0, "emulator: no kernel was launched, so there was nothing to check\n")
    done = emulate("add", EMULATOR_CHECKS="-races,-leaks")
    assert done.stderr == "emulator: 1 launch, no problem found; checks switched off: races, leaks\n"


def test_without_checks_blocks_run_on_all_cores_with_the_same_results(tmp_path):
    program = build_program(str((PROGRAMS / "cores.cu").relative_to(ROOT)), tmp_path, build_cache(), here=ROOT)

    def output(**settings: str) -> str:
        done = subprocess.run([program], env=os.environ | settings, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    checked = output()
    assert checked.splitlines()[-1] == "no error"
    for cores in ("1", "2", "5", "5"):
        assert output(EMULATOR_CHECKS="none", EMULATOR_CORES=cores) == checked, f"{cores} cores"


def test_the_first_block_that_fails_is_named_on_several_cores(tmp_path):
    name = "common/emulator/tests/programs/wrong/late_blocks_fail.cu"
    program = build_program(name, tmp_path, build_cache(), here=ROOT)
    for mistake in ("trap", "fault", "overflow", "deadlock", "shared memory"):
        reports = set()
        for cores in ("1", "4", "4"):
            settings = {"EMULATOR_CHECKS": "none", "EMULATOR_CORES": cores}
            done = subprocess.run(
                [program, mistake], env=os.environ | settings, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == FOUND_WRONG, done.stderr
            reports.add(done.stderr)
        [report] = reports
        assert "block (40, 0, 0), thread (0, 0, 0)" in report or mistake == "deadlock", report


def test_a_kernel_that_does_not_end_on_another_core_is_ended():
    done = emulate("wrong/late_block_is_endless", EMULATOR_CHECKS="none", EMULATOR_CORES="4", EMULATOR_TIMEOUT="2")
    assert done.returncode == TIME_IS_UP
    assert "kernel endless" in done.stderr


@pytest.mark.parametrize("cores", ["0", "-1", "two", "2000"])
def test_a_number_of_cores_that_is_none_is_refused(cores):
    done = emulate("add", "40000", EMULATOR_CHECKS="none", EMULATOR_CORES=cores)
    assert f'EMULATOR_CORES is "{cores}": it must be a number of cores from 1 to 1024' in done.stderr


def test_a_report_carries_the_nonce_of_a_judge_which_the_program_cannot_read(tmp_path):
    source = (PROGRAMS / "add.cu").read_text()
    (tmp_path / "add.cu").write_text(source.replace("main(", "as_before(") + MAIN)
    program = build_program("add.cu", tmp_path, Cache(tmp_path / "cache"), tmp_path)
    counts = tmp_path / "counts.json"
    variables = {"EMULATOR_NONCE": "1", "EMULATOR_COUNTS": str(counts)}
    done = subprocess.run([program], input="ab12\nmore", env=os.environ | variables, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "z[999] = 3: no error"
    assert "read" not in done.stdout
    assert done.stderr == "\nab12\nemulator: 1 launch, no problem found\n"
    assert json.loads(counts.read_text())["nonce"] == "ab12"


MAIN = """
__attribute__((constructor(101))) void early() { if (getchar() != EOF) puts("read"); }
int main(int count, char** words) { return as_before(count, words); }
"""
SWITCHES_OFF = {
    "in a constructor": '__attribute__((constructor(101))) void off() { setenv("EMULATOR_CHECKS", "none", 1); }',
    "in place": """
struct Off {
  Off() {
    setenv("EMULATOR_CHECKS", "none", 1);
    if (char* fixed = getenv("EMULATOR_FIXED")) memset(fixed - sizeof("EMULATOR_FIXED"), 'x', 16);
  }
} off;""",
}


@pytest.mark.parametrize("code", SWITCHES_OFF.values(), ids=SWITCHES_OFF)
def test_fixed_settings_cannot_be_changed_by_the_program(code, tmp_path):
    program = tmp_path / "program.cu"
    program.write_text(f"#include <cstdlib>\n#include <cstring>\n{code}\n{(WRONG / 'past_end.cu').read_text()}")
    assert "switched off: memory" in emulate(program).stderr
    done = emulate(program, EMULATOR_FIXED="1")
    assert done.returncode == FOUND_WRONG
    assert "writes past the end of x" in done.stderr


@pytest.mark.parametrize("name", ["endless_kernel", "endless_host", "sleeps"])
def test_a_program_that_does_not_end_is_ended(name):
    done = emulate(f"wrong/{name}", EMULATOR_TIMEOUT="2")
    assert done.returncode == TIME_IS_UP
    _, error, *rest = done.stderr.splitlines()
    who = "kernel wait, block (0, 0, 0), thread (0, 0, 0)" if name == "endless_kernel" else "the program"
    where = {"endless_kernel": "while (!*flag)", "endless_host": "for (;;)"}.get(name)
    at = f", in {line(f'wrong/{name}', where)}" if where else ""
    assert error == f"  error: {who} has not ended after 2 seconds (EMULATOR_TIMEOUT){at}"
    assert rest == []


def test_a_kernel_whose_blocks_wait_for_blocks_that_cannot_start():
    done = emulate("wrong/too_many_blocks", EMULATOR_TIMEOUT="2", EMULATOR_DEVICE="multiProcessorCount=4")
    assert done.returncode == TIME_IS_UP
    _, error, blocks = done.stderr.splitlines()
    assert re.match(r"  error: kernel meet, block .* has not ended after 2 seconds \(EMULATOR_TIMEOUT\), in ", error)
    assert re.fullmatch(
        r"     (\d+) of its 100 blocks have started: the device runs \1 of them at once "
        r"\(EMULATOR_DEVICE=multiProcessorCount=N changes that\), so none may wait for all others",
        blocks,
    )


def test_as_many_threads_wait_as_run_at_once_on_a_large_gpu():
    done = emulate("blocks_meet", EMULATOR_DEVICE="multiProcessorCount=128")
    assert (done.stdout, done.stderr) == ("0 wrong\n", "emulator: 1 launch, no problem found\n")


def test_a_kernel_that_fills_its_heap_gets_null_pointers():
    done = emulate("full_heap")
    assert (done.returncode, done.stdout) == (0, "8 8 20\n")
    _, warning, detail, *_ = done.stderr.splitlines()
    assert warning.startswith("  warning: the heap of kernels is full, and malloc or new returns a null pointer, in ")
    assert "asked for 1048576 bytes; 8388608 of 8388608 are in use; " in detail


def test_a_kernel_for_whose_checks_the_machine_has_no_memory(tmp_path):
    program = build_program("common/emulator/tests/programs/writes_much.cu", tmp_path, build_cache(), here=ROOT)

    def run(megabytes: int, **settings: str) -> subprocess.CompletedProcess:
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))
        environment = {**os.environ, **settings}
        return subprocess.run(
            [program], env=environment, preexec_fn=limit, capture_output=True, text=True, timeout=60
        )

    for megabytes in (60, 100):
        done = run(megabytes)
        assert done.returncode == FOUND_WRONG, done.stderr
        assert "error: accesses so much memory that the machine has none left for the checks" in done.stderr
        assert "kernel fill, block (" in done.stderr
    for done in (run(400), run(60, EMULATOR_CHECKS="none")):
        assert (done.returncode, done.stdout) == (0, "no error\n"), done.stderr


def test_a_program_that_the_system_kills():
    done = emulate("wrong/is_killed")
    assert done.returncode == 128 + signal.SIGKILL
    last = done.stderr.splitlines()[-1]
    assert last == "emulator: the program was killed by signal SIGKILL: perhaps the machine has no memory left"


def test_many_short_launches_that_take_too_long_are_not_blamed_on_a_kernel():
    done = emulate("wrong/many_launches", EMULATOR_TIMEOUT="2")
    assert done.returncode == TIME_IS_UP
    _, error, launches = done.stderr.splitlines()
    assert error.startswith("  error: the program has not ended after 2 seconds (EMULATOR_TIMEOUT), in ")
    assert re.fullmatch(
        r"     \d+ launches took [\d.]+ seconds, the longest of them 0.\d+ seconds "
        rf"\(kernel step, launched in {line('wrong/many_launches', 'step<<<')}\)",
        launches,
    )


def test_output_is_cut():
    done = emulate("wrong/prints_much", EMULATOR_TIMEOUT="3")
    assert 1_000_000 <= len(done.stdout) < 1_001_000
    assert done.stdout.endswith("\nemulator: output cut after 1000000 bytes\n")


def test_there_is_no_input():
    done = emulate("wrong/reads_input")
    assert (done.returncode, done.stdout) == (0, "-1 -1\n")


def test_nothing_is_left_of_children(tmp_path):
    marker = f"EMULATE_TEST={tmp_path}"
    name, _, value = marker.partition("=")
    start = time.monotonic()
    done = emulate("wrong/forks", **{name: value})
    assert (done.returncode, done.stdout) == (0, "parent\n")
    assert "note: what a forked child does is not checked" in done.stderr
    assert time.monotonic() - start < 500  # the child would sleep longer than that
    done = emulate("wrong/fork_bomb", **{name: value}, EMULATOR_TIMEOUT="20")
    assert done.returncode == FOUND_WRONG
    assert done.stderr.splitlines()[0] == "emulator: the program forked more than 64 times and was ended"
    assert no_process_is_left(marker)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("not_cuda", "wrong/not_cuda.cu:1:1: error: "),
        ("missing_header", "wrong/missing_header.cu:2:10: fatal error: helper_cuda.h: No such file"),
        ("syntax", "wrong/syntax.cu:2:21: error: expected "),
    ],
)
def test_a_compiler_speaks_of_the_learners_own_lines(name, words):
    done = emulate(f"wrong/{name}")
    assert done.returncode == 1
    first, *rest = done.stderr.splitlines()
    assert first == f"error: common/emulator/tests/programs/wrong/{name}.cu does not compile"
    assert words in "\n".join(rest)
    assert len(rest) < 40


def test_a_program_without_main():
    done = emulate("wrong/no_main")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: common/emulator/tests/programs/wrong/no_main.cu does not link: it has no main(). "
    )
    assert "`make new`" in done.stderr


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("nothing.cu", "there is no file nothing.cu"),
        ("a.cu b.cu", "there is no file a.cu b.cu; emulate takes a single file"),
        ("folder", "folder is a folder; name one CUDA program: make emulate FILE=x.cu"),
        ("notes.txt", "notes.txt does not end in .cu: is it a CUDA program?"),
        ("binary.cu", "binary.cu is not text in UTF-8"),
        ("texture.cu", "texture.cu:1: CUDA 12 has no texture references: use a texture object (cudaTextureObject_t)"),
        ("", "FILE is missing: make emulate FILE=x.cu"),
    ],
)
def test_what_is_no_program_gives_one_line(file, words, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("int main() {}")
    (tmp_path / "binary.cu").write_bytes(bytes(range(256)))
    (tmp_path / "texture.cu").write_text("texture<float> t;\nint main() {}\n")
    done = emulate(file, folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, f"error: {words}\n")


@pytest.mark.needs("make")
def test_make_passes_arguments_on():
    settings = [f"PYTHON={sys.executable}", "FILE=common/emulator/tests/programs/add.cu", "ARGS=77"]
    command = ["make", "--no-print-directory", "emulate", *settings]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "z[76] = 3: no error\n")


def test_a_bare_python_is_enough(tmp_path):
    """A Python without site-packages is enough, and the learner's program may be in any folder."""
    shutil.copytree(PROGRAMS / "parts", tmp_path / "elsewhere" / "parts")
    program = shutil.copy(PROGRAMS / "headers.cu", tmp_path / "elsewhere")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from common.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-I", "-S", "-c", code, "emulate", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "emulator: 4 launches, no problem found\n")


@pytest.mark.needs("nvcc")
def test_nvcc_takes_the_same_programs(tmp_path):
    broken = ("not_cuda", "missing_header", "syntax", "old_shuffles")
    sources = [path for path in sorted(PROGRAMS.rglob("*.cu")) if path.stem not in broken]
    assert len(sources) > 30
    # One compilation of all programs: each in its own namespace, with all #include lines first.
    includes, bodies = {}, []
    for number, path in enumerate(sources):
        text = path.read_text()
        includes.update(dict.fromkeys(re.findall(r"^#include <.*>$", text, re.M)))
        for own in re.findall(r'^#include "(.*)"$', text, re.M):
            text = text.replace(f'#include "{own}"', (path.parent / own).read_text())
        text = re.sub(r"^#(include <.*>|pragma once)$", "", text, flags=re.M)
        defined = re.findall(r"^#define (\w+)", text, re.M)
        bodies.append(
            f'namespace program{number} {{\n#line 1 "{path.name}"\n{text}\n}}\n'
            + "".join(f"#undef {name}\n" for name in defined)
        )
    whole = tmp_path / "all.cu"
    whole.write_text("\n".join([*includes, *bodies]) + "\nint main() {}\n")
    done = compile_with_nvcc(whole, tmp_path, architecture="sm_80")
    assert done.returncode == 0, done.stderr[-3000:]
