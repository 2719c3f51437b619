"""Whatever a learner's code does, the runner lives, leaves no process behind, and says what happened."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from common.build import library
from common.build import targets as build_targets
from common.exercises import checking, variants, workspace
from common.exercises.checking import check_folder
from common.exercises.runner import ending, process
from common.exercises.runner.target import build_folder_name, exercise_targets
from common.paths import ROOT
from support.exercises import learner

# Writes to whatever is open; the check's pipe is one of them.
SAY = """import contextlib
    for file in range(3, 64):
        with contextlib.suppress(OSError): os.write(file, {})"""
# What number() does, and what the learner is told then.
HOSTILE = {
    "exit": ("import sys; sys.exit(3)", "error", "your code calls exit(): remove the call\n  answer.py:4:"),
    "os_exit": ("os._exit(0)", "crash", "your code ended the process with status 0: remove the call of exit()"),
    "endless loop": (
        "while True: pass",
        "time",
        "no answer within 3 s: is there an endless loop?\n  answer.py:4, in number",
    ),
    "segfault": (
        "import ctypes; ctypes.string_at(0)",
        "crash",
        "your code crashed: SIGSEGV (an access to an invalid address)\n  answer.py:4, in number",
    ),
    "an exception that nobody caught": (
        """os.write(2, b"terminate called after throwing an instance of 'c10::Error'\\n"
                 b"  what():  the schema does not fit\\n  reason: one\\nException raised from a.cpp:1\\nframe #0")
    os.abort()""",
        "crash",
        "your code crashed: SIGABRT (the program called abort())\n  answer.py:6, in number\n"
        "  the schema does not fit\n  reason: one",
    ),
    "its own SIGKILL": ("os.kill(os.getpid(), 9)", "crash", "your code crashed: SIGKILL ("),
    "closed pipes": ("os.closerange(3, 100)", "crash", "closed a file that it did not open: the check's pipe"),
    "closed and waits": (
        "os.closerange(3, 100)\n    import time; time.sleep(1000)",
        "crash",
        "closed a file that it did not open: the check's pipe",
    ),
    "other words": (
        SAY.format("b'x' * 5000"),
        "crash",
        "wrote to a file that it did not open: the check's pipe",
    ),
    "no answer to this question": (
        "import json, struct; text = json.dumps({'value': {'dict': [['answer', 42]]}, 'tensors': []}).encode(); "
        + SAY.format("struct.pack('<QQ', len(text), 0) + text"),
        "crash",
        "wrote to a file that it did not open: the check's pipe",
    ),
    "forked and left behind": ("return 42 if os.fork() else os.execlp('sleep', 'sleep', '1000')", "passed", ""),
    "forked and away": (
        "if os.fork() == 0:\n        os.setsid()\n        os.execlp('sleep', 'sleep', '1000')\n    return 42",
        "passed",
        "",
    ),
    "answers twice": ("os.fork()\n    return 41", "wrong", "the number is 42"),
    "ends while its child lives": (
        "if os.fork() == 0:\n        os.setsid()\n        os.execlp('sleep', 'sleep', '1000')\n    os._exit(1)",
        "crash",
        "your code ended the process with status 1",
    ),
    "forks without end": ("while True:\n        if os.fork() > 0: os.wait()", "time", "no answer within 3 s"),
    "huge tensor": ("import torch; return torch.zeros(10**13)", "error", "RuntimeError: "),
    "huge result": (
        "import mmap, torch; return torch.frombuffer(mmap.mmap(-1, 1_100_000_000), dtype=torch.uint8)",
        "error",
        "ValueError: tensors of 1,100 MB: a check accepts at most 134 MB",
    ),
    "prints endlessly": (
        "while True: os.write(1, b'x' * 10**6)",
        "time",
        "no answer within 3 s: your code prints endlessly (",
    ),
    "prints much": ("os.write(1, b'x' * 10**8)\n    return 42", "passed", ""),
    "raises": ("raise ValueError('no number')", "error", "ValueError: no number\n  answer.py:4: raise ValueError"),
    "no such function": (
        "pass\n\ndef other(): pass\n\nnumber = None\ndel number",
        "error",
        "AttributeError: answer has no number",
    ),
    "what cannot be handed over": ("return object()", "error", "TypeError: a object cannot be handed over"),
}


OURS = f"TEST_{uuid.uuid4().hex}"  # a variable of this run: others may check exercises on this machine, too


@pytest.fixture(scope="module", autouse=True)
def ours():
    """Everything that is started from here on inherits the variable."""
    os.environ[OURS] = "1"
    yield
    del os.environ[OURS]


@pytest.fixture
def exercise(tmp_path):
    return learner.read(tmp_path / "exercises")


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """What becomes of each, two at a time, and the processes that are there in the end."""
    folder = tmp_path_factory.mktemp("hostile")
    one = learner.read(folder / "exercises")

    def judged(what: str):
        answer = f"import os\n\ndef number():\n    {HOSTILE[what][0]}\n"
        return learner.checked(one, folder / what, answer)

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(HOSTILE, pool.map(judged, HOSTILE), strict=True))
    return found, left()


def left() -> list[int]:
    """The processes of learners that this run has started and that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = ending.read_environment(path)
            if f"{ending.MARK}=".encode() in variables and OURS.encode() in variables:
                found.append(int(path.name))
    return found


@pytest.mark.parametrize("what", HOSTILE)
def test_the_runner_lives_leaves_no_process_and_says_what_happened(verdicts, what):
    _, kind, message = HOSTILE[what]
    found, processes = verdicts
    verdict = found[what]
    assert verdict.kind == kind, verdict.message
    assert message in verdict.message
    assert "Traceback" not in verdict.message
    assert verdict.seconds < 60
    assert not processes


def test_who_prints_much_sees_its_ends(exercise, tmp_path):
    answer = "import os\n\ndef number():\n    os.write(1, b'first' + b'-' * 10**8 + b'last')\n    return 42\n"
    printed = learner.checked(exercise, tmp_path / "work", answer).printed
    assert len(printed) < 3 * process.MOST_OUTPUT
    assert printed.startswith("first")
    assert "last" in printed
    assert "bytes more)" in printed


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        ((4, 5), "out of memory)"),
        ((4, 4), "another process sent this signal"),
        ((None, None), "out of memory, or your code sends"),
    ],
)
def test_lack_of_memory_is_named_only_where_the_system_says_so(monkeypatch, counted, words):
    before, after = counted
    monkeypatch.setattr(ending, "count_oom_kills", lambda: after)
    assert words in ending.describe_signal(signal.SIGKILL, before)


def test_a_signal_without_a_name(monkeypatch):
    assert ending.describe_signal(signal.SIGRTMIN + 3, None) == f"signal {signal.SIGRTMIN + 3}"


BROKEN = {
    "a syntax error": ({"answer.py": "def number(:\n"}, "error", "SyntaxError: invalid syntax\n  answer.py:1: def"),
    "not a text": ({"answer.py": b"\xff\xfe\n"}, "error", "answer.py"),
    "missing": ({"answer.py": None}, "wrong", "answer.py is missing. `make reset` makes a fresh folder"),
    "an import that fails": ({"answer.py": "import nothing_like_this\n"}, "error", "No module named"),
    "our modules' names": (
        {"torch.py": "1 / 0\n", "wire.py": "1 / 0\n", "answer.py": "def number(): return 42\n"},
        "passed",
        "",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_files(exercise, tmp_path, what):
    files, kind, message = BROKEN[what]
    folder = tmp_path / "work"
    workspace.write_files(variants.starter(exercise), folder)
    for name, text in files.items():
        (folder / name).unlink(missing_ok=True)
        if text is not None:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    verdict = check_folder(exercise, folder)
    assert verdict.kind == kind, verdict.message
    assert message in verdict.message


def test_a_check_of_ours_that_fails_is_not_blamed_on_the_learner(tmp_path):
    exercise = learner.read(tmp_path / "exercises", rule="def check(work):\n    1 / 0\n")
    verdict = learner.checked(exercise, tmp_path / "work", "")
    assert verdict.kind == "checker"
    assert "this is not your mistake" in verdict.message


def test_what_a_check_returns_is_told_to_who_passed(tmp_path):
    rule = learner.CHECK + "    return 'counted just now: 42'\n"
    exercise = learner.read(tmp_path / "exercises", rule=rule)
    verdict = learner.checked(exercise, tmp_path / "work", "def number():\n    return 42\n")
    assert verdict.passed
    assert verdict.message == "counted just now: 42"


def test_a_module_of_ours_beside_the_learners(tmp_path):
    rule = """from pathlib import Path

from common.exercises.judge import Failure, require


def check(work):
    ours = work.beside(Path(__file__).with_name("ours.py"))
    raise Failure(f"{ours.twice(3)} and {ours.wrong()}")
"""
    one = learner.read(tmp_path / "exercises", rule=rule)
    text = "from .answer import number\n\n\ndef twice(more):\n    return 2 * number() + more\n\n\nwrong = number\n"
    (one.folder / "ours.py").write_text(text)
    verdict = learner.checked(one, tmp_path / "work", "def number():\n    return 5\n")
    assert verdict.message == "13 and 5"


@pytest.mark.parametrize(
    ("number", "kind", "needs", "targets", "with_a_gpu"),
    [
        (2, "write", "cpp", ["host"], ["host"]),
        (3, "write", "emulator", ["emulator"], ["emulator", "cuda"]),
        (3, "file", "emulator", ["emulator"], ["emulator"]),  # a program
        (4, "file", "cpp", ["emulator"], ["emulator"]),
        (5, "write", "cpp", ["host"], ["host"]),
        (5, "write", "emulator", ["emulator"], ["emulator", "cuda"]),
    ],
)
def test_what_a_check_runs_on(tmp_path, monkeypatch, number, kind, needs, targets, with_a_gpu):
    one = replace(learner.read(tmp_path), stage=number, kind=kind, needs=(needs,))
    for reason, expected in (("no GPU", targets), (None, with_a_gpu)):
        monkeypatch.setattr(
            build_targets, "why_unavailable", lambda name, why=reason: why if name == "cuda" else None
        )
        assert exercise_targets(one) == expected


@pytest.mark.parametrize("target", ["host", "emulator", "cuda"])
def test_the_namespace_of_a_learner_s_operators_is_not_torch_s(target):
    namespace = library.setup_variables(target, Path(build_folder_name(target)))["LLTM_NAMESPACE"]
    torch.library.Library(namespace, "DEF")  # raises where there is one


def test_what_passes_on_the_emulator_is_checked_on_a_gpu_too(exercise, tmp_path, monkeypatch):
    asked = []

    def judged(work):
        asked.append(work.target)
        return fates[work.target]

    monkeypatch.setattr(checking, "exercise_targets", lambda exercise: ["emulator", "cuda"])
    monkeypatch.setattr(checking, "run_check", judged)
    fates = {"emulator": ("passed", "8 bytes"), "cuda": ("passed", "")}
    verdict = check_folder(exercise, tmp_path)
    assert (asked, verdict.passed, verdict.message) == (["emulator", "cuda"], True, "")
    assert verdict.where == ", on the emulator and the GPU"
    fates["cuda"] = ("build", "h is not marked")
    verdict = check_folder(exercise, tmp_path)
    assert (verdict.passed, verdict.kind) == (False, "build")
    assert verdict.message == "The emulator found nothing wrong, but on the GPU:\nh is not marked"
    asked.clear()
    fates["emulator"] = ("wrong", "a race")
    verdict = check_folder(exercise, tmp_path)
    assert (asked, verdict.message, verdict.where) == (["emulator"], "a race", ", on the emulator")
    asked.clear()
    assert check_folder(exercise, tmp_path, target="cuda").message == "h is not marked"
    assert asked == ["cuda"]


def test_a_file_that_a_check_relies_on_must_be_as_it_was(tmp_path):
    rule = "from common.exercises.judge import unchanged\n\n\ndef check(work):\n"
    rule += "    unchanged(work, 'given.py', 'answer.py is yours')\n"
    exercise = learner.read(tmp_path / "exercises", rule=rule)
    workspace.write_files({"given.py": "1\n"}, exercise.folder / "files")
    work = tmp_path / "work"
    assert learner.checked(exercise, work, "").passed
    (work / "given.py").write_text("2\n")
    assert check_folder(exercise, work).message == "given.py has been changed. answer.py is yours"


def test_it_must_be_so_at_the_end_too(tmp_path):
    rule = "from common.exercises.judge import unchanged\n\n\ndef check(work):\n"
    rule += "    unchanged(work, 'given.py', 'answer.py is yours')\n    work.load('answer').number()\n"
    exercise = learner.read(tmp_path / "exercises", rule=rule)
    workspace.write_files({"given.py": "1\n"}, exercise.folder / "files")
    answer = f"def number():\n    open({str(tmp_path / 'work' / 'given.py')!r}, 'w').write('2')\n    return 42\n"
    assert learner.checked(exercise, tmp_path / "work", answer).message.startswith("given.py has been changed")


BAD_SHAPE = """import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + 2 * y
    @staticmethod
    def backward(ctx, grad):
        return grad, 2 * grad[:1]
def number():
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    Double.apply(x, y).sum().backward()
"""


def test_a_gradients_index_is_explained(exercise, tmp_path):
    said = learner.checked(exercise, tmp_path / "work", BAD_SHAPE).message
    assert "returned an invalid gradient at index 1" in said
    assert "(the index counts the arguments of forward, from 0)" in said


def test_what_is_printed_reaches_the_learner(exercise, tmp_path):
    answer = "def number():\n    print('here I am')\n    return 42\n"
    assert learner.checked(exercise, tmp_path / "work", answer).printed == "here I am"


def test_what_is_checked_does_not_depend_on_the_environment_of_the_judge(tmp_path, monkeypatch):
    for name in process.OF_THE_JUDGE:
        monkeypatch.setenv(name, "none")
    code = (
        "import os; print(sorted(set(os.environ.items()) & {('EMULATOR_FIXED', '1'), ('EMULATOR_CHECKS', '-races')}))"
    )
    code += f"; print([name for name in {process.OF_THE_JUDGE} if os.environ.get(name) == 'none'])"
    _, printed = process.run([sys.executable, "-c", code], tmp_path, 20, EMULATOR_CHECKS="-races")
    assert printed == "[('EMULATOR_CHECKS', '-races'), ('EMULATOR_FIXED', '1')]\n[]"


EXTENSION = {
    "setup.py": "from setuptools import Extension, setup\nsetup(ext_modules=[Extension('x._C', ['csrc/x.cu'])])\n",
    "csrc/x.cu": """#include <Python.h>
#include <cuda_runtime.h>
#include <stdexcept>
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
static PyObject* run(PyObject*, PyObject*) {
  try {
    fill<<<1, 2>>>(nullptr);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"run", run, METH_NOARGS, ""}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
""",
    "answer.py": """from ._C import run


def reported():
    run()


def hidden():
    try:
        run()
    except RuntimeError:
        return 42
""",
}


@pytest.mark.needs("g++")
def test_a_report_of_the_emulator_counts_even_if_it_is_caught(tmp_path):
    workspace.write_files(EXTENSION, tmp_path)
    built = library.build_folder(tmp_path, "emulator", "exercises/caught", "your code", quick=True).path
    learner_process = process.Process(tmp_path, 60)
    try:
        learner_process.ask("load", library=str(built))
        for name, words in (("reported", "through a null pointer"), ("hidden", "your code catches the exception")):
            with pytest.raises(process.LearnerError, match=words):
                learner_process.ask("call", module="answer", name=name, arguments=[], keywords={}, may_change=False)
    finally:
        learner_process.close()


PROGRAMS = {
    "ends": ("print('said')", 0, "said"),
    "with a status": ("sys.exit(3)", 3, ""),
    "crashes": ("os.abort()", -signal.SIGABRT, ""),
    "never ends": ("print('said', flush=True); time.sleep(1000)", None, "said"),
    "leaves a child": ("if os.fork() == 0: os.setsid(); time.sleep(1000)", 0, ""),
    "closes its output": ("os.close(1); os.close(2); time.sleep(1000)", None, ""),
    "prints endlessly": ("while True: os.write(1, b'x' * 10**6)", None, "xxx"),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program_ends_with_all_that_it_started(tmp_path, what):
    code, status, said = PROGRAMS[what]
    found, printed = process.run([sys.executable, "-c", f"import os, sys, time\n{code}"], tmp_path, 1)
    assert found == status
    assert printed.startswith(said)
    assert len(printed) < 3 * process.MOST_OUTPUT
    assert not left()


@contextlib.contextmanager
def started(command: list, variables: dict[str, str]):
    """The number of a process that is ended in the end, also when an assertion fails."""
    with subprocess.Popen(command, env=variables) as one:
        try:
            yield one.pid
        finally:
            one.kill()


def test_a_process_is_found_while_it_becomes_another_one(tmp_path):
    """It takes up one program after the other; in between the system shows no variables of it."""
    again = tmp_path / "again"
    again.write_text(f'#!/bin/sh\nexec "{again}"\n')
    again.chmod(0o755)
    with started([again], {ending.MARK: "again"}) as pid:
        found = [ending.find_marked("again") for _ in range(3000)]
    assert found == [[pid]] * len(found)


@pytest.mark.parametrize(("variables", "what"), [({}, b""), ({"A": "1"}, b"A=1\0")])
def test_what_a_process_has_inherited(variables, what):
    with started(["/bin/sleep", "100"], variables) as pid:
        begun = time.monotonic()
        assert ending.read_environment(Path(f"/proc/{pid}")) == what
        assert time.monotonic() - begun < 1
    with pytest.raises(FileNotFoundError):
        ending.read_environment(Path(f"/proc/{pid}"))


RUNNERS = {
    "a check": """
        from common.exercises import checking, exercise
        checking.check_folder(exercise.read_exercise(Path({exercise!r}), 1), Path({folder!r}), timeout=100)
        """,
    "a program": """
        from common.exercises.runner import process
        endless = "import answer; answer.number()"
        process.run([sys.executable, "-c", endless], Path({folder!r}), 100)
        """,
}


@pytest.mark.parametrize(
    ("what", "number"), [("a check", signal.SIGINT), ("a check", signal.SIGKILL), ("a program", signal.SIGKILL)]
)
def test_who_ends_the_runner_leaves_no_process_and_all_files(exercise, tmp_path, what, number):
    folder, ready = tmp_path / "work", tmp_path / "ready"
    endless = f"def number():\n    open({str(ready)!r}, 'w').close()\n    while True: pass\n"
    workspace.write_files({"answer.py": endless}, folder)
    code = RUNNERS[what].format(exercise=str(exercise.folder), folder=str(folder))
    deadline = time.monotonic() + 100
    code = f"import sys\nfrom pathlib import Path\n{textwrap.dedent(code)}"
    command = [sys.executable, "-c", code]
    runner = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, preexec_fn=learner.hear_ctrl_c)
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left()
    runner.send_signal(number)
    assert runner.wait(timeout=30) != 0
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left()
    assert (folder / "answer.py").read_text() == endless
