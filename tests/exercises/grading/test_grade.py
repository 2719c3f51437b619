"""A class is graded in one command, hostile work among it: right work gets its points, nothing else gets or harms."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import UserError
from common.exercises import find, variants, workspace
from common.exercises.checking import Verdict
from common.exercises.grading import grade, isolation, sandbox
from common.exercises.grading.isolation import Isolation
from common.exercises.runner.process import Stopped
from common.paths import ROOT

PRIVATE = Path(__file__).with_name("exercises")
SECRET = "the-key-to-the-exam"
SLEEP = f"{os.getpid()}98.7"  # an argument by which processes that were left over would be found
pytestmark = [pytest.mark.needs("g++"), pytest.mark.usefixtures("private")]

RIGHT = "\n\ndef double(x):\n    return 2 * x\n"
RETURNS_X = "\n\ndef double(x):\n    return x\n"
SAY = """import contextlib, json, os, struct
def say(text, size=0):
    text = json.dumps(text).encode()
    for file in range(3, 64):  # the pipe is one of them
        with contextlib.suppress(OSError):
            os.write(file, struct.pack('<QQ', len(text), size) + text + b'1' * min(size, 8))
"""
# Finds the nonce of the current request, by which an answer is recognised.
KNOW = """import sys
frame = sys._getframe()
while 'nonce' not in frame.f_locals or 'request' not in frame.f_locals:
    frame = frame.f_back
nonce, plain = frame.f_locals['nonce'], {
    'dtype': 'float64', 'device': 'cpu', 'size': [1], 'stride': [1], 'offset': 0, 'bytes': 8, 'requires_grad': False,
    'conj': False, 'neg': False}
def answer(tensor):
    call = {'dict': [['value', {'tensor': 0}], ['graph', None], ['changed', []], ['same', []]]}
    return {'value': {'dict': [['answer', call]]}, 'tensors': [tensor]}
""" + SAY.replace("os.write(file, ", "os.write(file, nonce + ")

# What is handed in for 1/double, beside what must be said about it. Most would be right if it got away with the rest.
WRONG = {
    "wrong value": ("def double(x):\n    return x * x\n", "double(x) is wrong at [0]"),
    "nothing": ("", "answer has no double"),
    "no Python": ("def double(x) return", "SyntaxError"),
    "a string": ("def double(x):\n    return 'passed'\n", "double(x)"),
}
HOSTILE = {
    "reads a file": ("open('@SECRET@')" + RIGHT, "sandbox: ended, it opens @SECRET@, which does not belong to it"),
    "reads passwords and hides it": (
        "try:\n    open('/etc/passwd')\nexcept OSError:\n    pass" + RIGHT,
        "sandbox: ended, it opens /etc/passwd",
    ),
    "reads by another program": (
        "import subprocess\nsubprocess.run(['cat', '@SECRET@'], check=True)" + RIGHT,
        "CalledProcessError",
    ),
    "reads the hidden check": ("open('@PRIVATE@/1/double/check.py')" + RIGHT, "sandbox: ended, it opens"),
    "calls out": ("import socket\nsocket.create_connection(('127.0.0.1', @PORT@))" + RIGHT, "it uses the network"),
    "forks": ("import os\nwhile True:\n    os.fork()" + RIGHT, "sandbox: ended, it forks"),
    "forks in a shell": (f"import os\nos.system('b() {{ b | b & }}; b; sleep {SLEEP}')" + RIGHT, ""),
    "changes the checker": (
        "open('@ROOT@/common/exercises/checking.py', 'w').write('planted')" + RIGHT,
        "sandbox: ended, it opens",
    ),
    "changes torch": (
        "import torch\ntorch.equal = torch.allclose = lambda *_: True\ntorch.Tensor.__sub__ = lambda a, b: a * 0"
        + RETURNS_X,
        "your code replaces torch.allclose, which the check itself uses",
    ),
    "says it passed": (SAY + "say({'value': {'dict': [['answer', True]]}, 'tensors': []})" + RETURNS_X, ""),
    "says far too much": (SAY + "say({}, size=2**60)" + RIGHT, "the check's pipe"),
    "says a tensor of a petabyte": (
        SAY + "say({'value': {'dict': [['answer', {'dict': [['value', {'tensor': 0}], ['graph', None], "
        "['changed', []], ['same', []]]}]]}, 'tensors': [{'dtype': 'float64', 'device': 'cpu', "
        "'size': [10**9, 10**6], 'stride': [0, 0], 'offset': 0, 'bytes': 8, 'requires_grad': False}]}, size=8)"
        + RIGHT,
        "",
    ),
    "knows the nonce and says a number": (KNOW + "say(answer(plain), 8)" + RIGHT, "double(x)"),
    "knows the nonce and says an offset of 48 GB": (
        KNOW + "say(answer(dict(plain, offset=6 * 10**9)), 8)" + RIGHT,
        "the check's pipe",
    ),
    "knows the nonce and says a tensor of a petabyte": (
        KNOW + "say(answer(dict(plain, size=[10**9, 10**6], stride=[0, 0])), 8)" + RIGHT,
        "the check's pipe",
    ),
    "knows the nonce and says something other than an answer": (
        KNOW + "say({'value': {'dict': [['answer', {'dict': [['value', 1]]}]]}, 'tensors': []})" + RIGHT,
        "the check's pipe",
    ),
    "knows the nonce and says something other than an error": (
        KNOW + "say({'value': {'dict': [['error', {'dict': [['kind', 1]]}]]}, 'tensors': []})" + RIGHT,
        "the check's pipe",
    ),
    "says it a thousand deep": (SAY + "say(eval('[' * 90 + ']' * 90))\nsay({})" + RIGHT, "the check's pipe"),
    "fills the disk": (
        "for k in range(10**6):\n    with open(f'/tmp/{k}', 'wb') as file:\n        file.write(b'1' * 10**7)" + RIGHT,
        "No space left on device",
    ),
    "changes its files": ("open('answer.py', 'a').write('x')" + RIGHT, "Permission denied: 'answer.py'"),
    "prints a gigabyte": ("for _ in range(10**6):\n    print('x' * 1000)" + RIGHT, "printed more than 50 MB"),
    "never ends": ("while True: pass\n" + RIGHT, "no answer within 4 s: is there an endless loop?\n  answer.py:1"),
    "takes all memory": ("x = []\nwhile True:\n    x.append(bytearray(b'1' * 10**8))" + RIGHT, ""),
    "leaves": ("import os\nos._exit(0)" + RIGHT, "your code ended the process with status 0"),
    "crashes": ("import ctypes\nctypes.string_at(0)" + RIGHT, "your code crashed: SIGSEGV"),
    "steers the terminal": ("raise ValueError('\\x1b[2J\\x1b]0;you\\x07')" + RIGHT, "ValueError: ?[2J"),
}
# The same for 1/observed, whose check asks the submission's own process what it sees.
FORGED = {
    "replaces what answers": (
        """import sys
for name in ("wire", "__main__"):
    ours = sys.modules.get(name)
    if hasattr(ours, "Learner"):
        ours.Learner.call = lambda *_: {"value": True, "graph": None, "changed": [], "same": []}
    if hasattr(ours, "pack"):
        ours.pack = lambda value, pack=ours.pack: pack({**value, "answer": {"value": True}})
"""
        + RETURNS_X.replace("return x", "return x if __name__ != 'answer' else 2 * x"),
        "ours.py finds that double does not double",
    ),
    "replaces our modules": (
        """import sys, types
for name in ("ours", "given"):
    sys.modules[f"lltm_exercise.{name}"] = types.SimpleNamespace(doubles=lambda: True)
"""
        + RETURNS_X.replace("return x", "return x if __name__ != 'answer' else 2 * x"),
        "ours.py finds that double does not double",
    ),
    "replaces a given module": (
        """import sys, types
sys.modules["lltm_exercise.given"] = types.SimpleNamespace(doubles=lambda: True)
"""
        + RETURNS_X.replace("return x", "return x if __name__ != 'answer' and isinstance(x, int) else 2 * x"),
        "given.py finds that double does not double",
    ),
    "replaces functions of torch": (
        "import torch\ntorch.equal = lambda *_: True\n"
        + RETURNS_X.replace("return x", "return x if __name__ != 'answer' else 2 * x"),
        "your code replaces torch.equal, which the check itself uses",
    ),
    "prints the answer and leaves": (
        "import os\nif __name__ == 'answer':\n    os.write(1, b'\\n6\\n')\n    os._exit(0)" + RIGHT,
        "a program that asks for double(3) is not told 6",
    ),
    "tells it itself": (
        "import sys\nif __name__ == 'answer':\n    sys.modules['__main__'].tell(6)" + RIGHT,
        "a program that asks for double(3) is not told 6",
    ),
    "changes a given file": ("", "given.py has been changed. answer.py is yours"),
}
SOURCE = (PRIVATE / "2" / "triple" / "files" / "csrc" / "triple.cpp").read_text()
GIVEN = (PRIVATE / "1" / "observed" / "files" / "given.py").read_text()
SETUP = (PRIVATE / "2" / "triple" / "files" / "setup.py").read_text()
HIDDEN = "try:\n    {}\nexcept BaseException:\n    pass\n"
# The same for 2/triple: the file, what comes before its text, what is said.
HOSTILE_CPP = {
    "includes a file": ("csrc/triple.cpp", '#include "@SECRET@"\n', "No such file or directory"),
    "includes bytes": ("csrc/triple.cpp", 'asm(".incbin \\"@SECRET@\\"");\n', "file not found"),
    "reads in setup.py": ("setup.py", HIDDEN.format("open('@SECRET@')"), "sandbox: ended, it opens @SECRET@"),
    "calls out in setup.py": (
        "setup.py",
        HIDDEN.format("import socket; socket.create_connection(('127.0.0.1', @PORT@))"),
        "sandbox: ended, it uses the network",
    ),
    "poisons the builds": (
        "setup.py",
        "import pathlib\nfor path in pathlib.Path('@BUILD@').rglob('*.o'):\n    path.write_bytes(b'planted')\n"
        "pathlib.Path('@BUILD@/objects/planted.o').write_bytes(b'')\n",
        "sandbox: ended, it opens",
    ),
    "changes a file while it is built": (
        "setup.py",
        HIDDEN.format("open('csrc/triple.cpp', 'w')") + "open('csrc/triple.cpp', 'w')\n",
        "Read-only file system",
    ),
    "links an object of ours": (
        "setup.py",
        "import pathlib, setuptools\n"
        "found = [path for path in pathlib.Path('@BUILD@').rglob('*.o') if b'Three times' in path.read_bytes()]\n"
        "extension = setuptools.Extension\n"
        "def Extension(name, sources):\n"
        "    open('/tmp/nothing.cpp', 'w')\n"
        "    return extension(name, ['/tmp/nothing.cpp'], extra_link_args=[*map(str, found)])\n"
        "setuptools.Extension = Extension\n",
        "triple(",
    ),
    "forks in C++": (
        "csrc/triple.cpp",
        "#include <unistd.h>\n__attribute__((constructor)) static void bomb() { while (true) fork(); }\n",
        "",
    ),
}


@pytest.fixture
def private(monkeypatch) -> None:
    monkeypatch.setenv("EXERCISES", str(PRIVATE))


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> dict:
    """Thirty copies, graded by one command: rows of the CSV and of the JSON by student, and all that was written."""
    top = tmp_path_factory.mktemp("grading")
    (top / "teacher").mkdir()
    secret = top / "teacher" / "key.h"
    secret.write_text(f"{SECRET}\n")
    build = os.environ.get("BUILD_DIR") or str(ROOT / "build")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        names = {"SECRET": secret, "PORT": server.getsockname()[1], "ROOT": ROOT, "PRIVATE": PRIVATE, "BUILD": build}

        def filled(text: str) -> str:
            for name, value in names.items():
                text = text.replace(f"@{name}@", str(value))
            return text

        hand_in(top / "class", filled)
        before = digests(build)
        (top / "tmp").mkdir()
        command = ["make", "grade", f"DIR={top / 'class'}", "EX=1/double 1/observed 2/triple", "JOBS=2"]
        paths = {"CSV": top / "out.csv", "JSON": top / "out.json"}
        command += [f"{name}={path}" for name, path in paths.items()]
        command += [f"PYTHON={sys.executable}", f"EXERCISES={PRIVATE}"]
        done, memory = run_and_measure(command, {**os.environ, "TMPDIR": str(top / "tmp")})
        assert done.returncode == 0, done.stdout + done.stderr
        with pytest.raises(BlockingIOError):  # there was no call
            server.accept()
    written = done.stdout + done.stderr + paths["CSV"].read_text() + paths["JSON"].read_text()
    result = json.loads(paths["JSON"].read_text())
    with paths["CSV"].open() as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    marks = {row["student"]: {mark["exercise"]: mark for mark in row["marks"]} for row in result["students"]}
    return {
        "written": written, "rows": rows, "marks": marks, "filled": filled, "before": before, "build": build,
        "left": [*(top / "tmp").glob("*ed-*"), *(top / "tmp").glob("solution-*")], "result": result, "memory": memory,
    }  # fmt: skip


def run_and_measure(command: list[str], environment: dict[str, str]) -> tuple[subprocess.CompletedProcess, int]:
    """Runs make; returns its result, and the largest memory in KB of the Python that grades."""
    with tempfile.TemporaryFile("w+") as said:
        make = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, text=True, env=environment)
        peak = 0
        while make.poll() is None:
            peak = max(peak, *map(memory_of_grader, children_of(make.pid)), 0)
            time.sleep(0.1)
        said.seek(0)
        return subprocess.CompletedProcess(command, make.returncode, said.read(), ""), peak


def memory_of_grader(process: str) -> int:
    """The largest memory in KB so far of a process or its child that is `python -m common grade`; 0 if neither is."""
    for one in (process, *children_of(process)):
        with contextlib.suppress(OSError):
            if b"common\0grade\0" in Path(f"/proc/{one}/cmdline").read_bytes():
                return int(re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text())[1])
    return 0


def children_of(process: int | str) -> list[str]:
    """The children of the main thread of a process; none if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return []


def hand_in(folder: Path, filled) -> None:
    """A class of thirty and a few more: right, wrong, hostile."""

    def put(student: str, exercise: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = folder / student / exercise / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(filled(text))

    for student in ("ada", "=bob()"):
        put(student, "1/double", {"answer.py": RIGHT})
        put(student, "2/triple", {"setup.py": SETUP, "csrc/triple.cpp": SOURCE})
    put("late", "work/1/double", {"answer.py": RIGHT})
    put("too deep", "homework/1/double", {"answer.py": RIGHT})
    put("began", "1/double", variants.starter(find_private("1/double")))
    for name, (code, _) in {**WRONG, **HOSTILE}.items():
        put(name, "1/double", {"answer.py": code})
    for name, (file, prefix, _) in HOSTILE_CPP.items():
        files = {"setup.py": SETUP, "csrc/triple.cpp": SOURCE}
        put(name, "2/triple", files | {file: prefix + files[file]})
    for name, (code, _) in FORGED.items():
        put(name, "1/observed", {"answer.py": code or RIGHT, "given.py": GIVEN + "\n" * (not code)})
    put("ada", "1/observed", {"answer.py": RIGHT, "given.py": GIVEN})
    put("looks around", "1/double", {"answer.py": "import sys\nprint(len(sys.modules))" + RIGHT})
    put("brings a library", "1/double", {"answer.py": RIGHT})
    (folder / "brings a library" / "1" / "double" / "notes.txt").write_bytes(Path("/bin/true").read_bytes())
    put("links", "1/double", {"notes.txt": ""})
    (folder / "links" / "1" / "double" / "answer.py").symlink_to(folder / "ada" / "1" / "double" / "answer.py")
    put("waits", "1/double", {})
    (folder / "waits" / "1" / "double").mkdir(parents=True)
    os.mkfifo(folder / "waits" / "1" / "double" / "answer.py")


def find_private(name: str):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXERCISES", str(PRIVATE))
        return find(name)


def digests(build: str) -> dict[str, str]:
    """A hash of each file that a submission might want to change."""
    paths = [*(ROOT / "common").rglob("*.py"), *Path(build, "objects").glob("*"), *PRIVATE.rglob("*.*")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


GRADES = ["Makefile", "tests/exercises/grading/exercises/**/*"]


def of_the_class(test: Callable) -> Callable:
    """A proof about what `graded` returns."""
    return pytest.mark.needs("bwrap", "make")(
        pytest.mark.proof("gradings", files=GRADES, uses=["common.commands"])(test)
    )


@of_the_class
def test_the_grader_s_own_memory_stays_small(graded):
    """Whatever the more than forty hostile submissions write. Most of it is torch."""
    assert len(HOSTILE) + len(FORGED) + len(HOSTILE_CPP) > 40
    assert 50_000 < graded["memory"] < 1_000_000


@of_the_class
def test_a_class_is_one_table(graded):
    assert len(graded["rows"]) == len(graded["marks"]) >= 30
    assert graded["rows"]["ada"] == {
        "student": "ada", "1/double": "2", "1/observed": "1", "2/triple": "3", "total": "6", "of": "6", "remarks": ""
    }  # fmt: skip
    assert graded["rows"]["late"]["total"] == "2"
    assert graded["rows"]["late"]["2/triple"] == ""
    assert graded["marks"]["late"]["2/triple"]["outcome"] == "not handed in"
    assert graded["rows"]["too deep"]["1/double"] == ""
    assert (
        "there is homework/1/double; answers are looked for in 1/double and" in graded["rows"]["too deep"]["remarks"]
    )
    assert graded["marks"]["began"]["1/double"]["outcome"] == "untouched"
    assert graded["result"]["exercises"][0] == {"id": "1/double", "title": "Double a tensor", "points": 2}
    assert graded["result"]["sandbox"] == (os.environ.get("SANDBOX") or "bubblewrap")


@of_the_class
def test_a_name_is_no_formula(graded):
    assert graded["rows"]["'=bob()"]["total"] == "5"


@of_the_class
@pytest.mark.parametrize("student", [*WRONG, *HOSTILE])
def test_wrong_and_hostile_work_gets_no_points_and_is_told_why(graded, student):
    mark, expected = graded["marks"][student]["1/double"], {**WRONG, **HOSTILE}[student][1]
    assert (mark["points"], mark["outcome"]) == (0, "failed")
    assert graded["filled"](expected) in mark["message"]
    assert mark["message"]
    assert graded["rows"][student]["total"] == "0"
    assert graded["rows"][student]["remarks"].startswith("1/double: ")


@of_the_class
@pytest.mark.parametrize("student", HOSTILE_CPP)
def test_hostile_builds_get_no_points_and_are_told_why(graded, student):
    mark = graded["marks"][student]["2/triple"]
    assert (mark["points"], mark["outcome"]) == (0, "failed")
    assert graded["filled"](HOSTILE_CPP[student][2]) in mark["message"]


@of_the_class
@pytest.mark.parametrize("student", FORGED)
def test_forged_results_get_no_points(graded, student):
    mark = graded["marks"][student]["1/observed"]
    assert (mark["points"], mark["outcome"]) == (0, "failed")
    assert FORGED[student][1] in mark["message"]


@of_the_class
def test_lines_to_look_at_are_marked(graded):
    mark = graded["marks"]["looks around"]["1/double"]
    assert (mark["points"], mark["look_at"]) == (2, ["answer.py:2 (sys.modules)"])
    assert graded["rows"]["looks around"]["remarks"] == "1/double: passed, but look at answer.py:2 (sys.modules)"


@of_the_class
def test_a_library_by_another_name_is_refused(graded):
    mark = graded["marks"]["brings a library"]["1/double"]
    assert (mark["points"], mark["outcome"]) == (0, "refused")
    assert mark["message"] == "notes.txt is not UTF-8 text; hand in the sources only, no build results"


@of_the_class
def test_links_and_pipes_are_not_looked_into(graded):
    for student in ("links", "waits"):
        mark = graded["marks"][student]["1/double"]
        assert (mark["points"], mark["outcome"]) == (0, "refused")
        assert "answer.py is not a regular file" in mark["message"]


@of_the_class
def test_nothing_leaks_and_nothing_is_left(graded):
    assert SECRET not in graded["written"]
    assert not set(graded["written"]) & {"\x1b", "\x07"}
    assert graded["left"] == []
    now = digests(graded["build"])
    assert {path: now.get(path) for path in graded["before"]} == graded["before"]
    assert not any("planted" in path for path in now)
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(SLEEP.encode() in command for command in commands)


@pytest.mark.needs("bwrap")
def test_a_build_that_never_ends_is_ended(tmp_path, monkeypatch):
    tmp_path.chmod(0o755)
    monkeypatch.setattr(isolation, "BUILD_SECONDS", 3)
    (tmp_path / "setup.py").write_text("while True:\n    pass\n")
    with (
        Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes,
        pytest.raises(UserError, match="does not build within 3 s"),
    ):
        boxes.library(tmp_path, "host")


@pytest.mark.needs("bwrap")
def test_a_program_runs_on_a_copy_and_plain_files_come_back(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "make.py").write_text(
        "import os, pathlib\npathlib.Path('out').mkdir()\npathlib.Path('out/made.txt').write_text('yes')\n"
        "os.symlink('/etc/passwd', 'out/link')\nprint('done')\n"
    )
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes:
        assert boxes.python(["make.py"], tmp_path, 30, {}) == (0, "done")
        assert (tmp_path / "out" / "made.txt").read_text() == "yes"
        assert not (tmp_path / "out" / "link").is_symlink()
        assert boxes.python(["-c", "print(open('out/made.txt').read())"], tmp_path, 30, {}) == (0, "yes")


@pytest.mark.needs("bwrap")
def test_why_the_sandbox_ended_a_program_is_said_wherever_it_runs(tmp_path):
    tmp_path.chmod(0o755)
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes:
        with pytest.raises(Stopped, match="sandbox: ended, it opens /etc/passwd, which does not belong to it"):
            boxes.python(["-c", "open('/etc/passwd')"], tmp_path, 30, {})
        boxes.python(["-c", "raise SystemExit('no numbers')"], tmp_path, 30, {})
        assert boxes.printed == "no numbers"


def test_what_our_own_solution_printed_is_shown_where_it_does_not_pass(monkeypatch):
    verdict = Verdict("1/double", False, "crash", "it ended", 0.1, "host", printed="bwrap: cannot mount /srv")
    monkeypatch.setattr(grade, "check_isolated", lambda *_: verdict)
    with pytest.raises(UserError, match=r"it ended\nIt printed:\n  bwrap: cannot mount /srv"):
        grade.check_solution(find("1/double"), None)


@pytest.mark.needs("bwrap", "g++")
def test_builds_see_objects_of_starters_only(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "build"))
    tmp_path.chmod(0o755)
    (tmp_path / "build" / "objects").mkdir(parents=True)
    (tmp_path / "build" / "objects" / "of-a-solution.o").touch()
    for name in ("starter", "work"):
        workspace.write_files(variants.starter(find("2/triple")), tmp_path / name)
    isolation.build_given(tmp_path / "starter", "host")
    (given,) = (tmp_path / "build" / "given" / "objects").glob("*.o")
    look = "raise ValueError(' '.join(map(str, pathlib.Path('@').rglob('*.o'))))\n"
    (tmp_path / "work" / "setup.py").write_text("import pathlib\n" + look.replace("@", str(tmp_path)))
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes, pytest.raises(UserError) as error:
        boxes.library(tmp_path / "work", "host")
    assert str(given) in str(error.value)
    assert "of-a-solution" not in str(error.value)


def test_what_was_handed_in_is_not_replaced_by_what_comes_back(tmp_path):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as files:
        for name in ("./given.py", "./made.txt"):
            member = tarfile.TarInfo(name)
            member.size = 1
            files.addfile(member, io.BytesIO(b"x"))
    (tmp_path / "given.py").write_text("given")
    isolation.extract_files(io.BytesIO(data.getvalue()), tmp_path, {tmp_path / "given.py"})
    assert (tmp_path / "given.py").read_text() == "given"
    assert (tmp_path / "made.txt").read_text() == "x"


def test_an_archive_writes_into_its_folder_only(tmp_path):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as files:
        for name in ("../outside", "/tmp/outside-of-all", "inside", "fine/inside"):
            member = tarfile.TarInfo(name)
            member.size = 1
            files.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        files.addfile(link)
    folder = tmp_path / "folder"
    folder.mkdir()
    isolation.extract_files(io.BytesIO(data.getvalue()), folder)
    isolation.extract_files(io.BytesIO(data.getvalue()[:700]), folder)
    isolation.extract_files(io.BytesIO(b"nonsense" * 100), folder)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["fine", "folder", "inside", "inside"]


def test_a_hidden_check_replaces_ours(tmp_path, monkeypatch):
    hidden = tmp_path / "1" / "double" / "check.py"
    hidden.parent.mkdir(parents=True)
    hidden.write_text(
        "from common.exercises.judge import Failure\n\n\ndef check(work):\n    raise Failure('hidden')\n"
    )
    monkeypatch.setenv("EXERCISES", f"{PRIVATE}:{tmp_path}")
    exercise = find("1/double")
    assert exercise.check_file == hidden
    assert exercise.points == 2
    assert exercise.folder == PRIVATE / "1" / "double"


def test_a_check_of_nothing_is_refused(tmp_path, monkeypatch):
    (tmp_path / "1" / "nothing").mkdir(parents=True)
    (tmp_path / "1" / "nothing" / "check.py").touch()
    monkeypatch.setenv("EXERCISES", str(tmp_path))
    with pytest.raises(
        UserError, match=r"1/nothing has no exercise\.ini, and there is no exercise 1/nothing that it could"
    ):
        find("1/nothing")


def test_our_own_solutions_are_graded_side_by_side(monkeypatch):
    both = threading.Barrier(2, timeout=30)
    monkeypatch.setattr(grade, "check_solution", lambda *_: both.wait())
    assert grade.check_solutions([find("1/double"), find("2/triple")], None, 2) == {}


def test_if_no_solution_passes_nothing_is_graded(tmp_path, monkeypatch):
    """Nobody loses points because a check, or the machine, is wrong."""
    (tmp_path / "class" / "ada").mkdir(parents=True)
    hidden = tmp_path / "1" / "double" / "check.py"
    hidden.parent.mkdir(parents=True)
    hidden.write_text("def check(work):\n    assert False, 'always'\n")
    monkeypatch.setenv("EXERCISES", f"{PRIVATE}:{tmp_path}")
    with pytest.raises(UserError, match="1/double: our own solution does not pass on this machine"):
        grade.grade(str(tmp_path / "class"), only=["1/double"], kind="none")


def test_without_a_sandbox_it_works_when_asked_and_says_so(tmp_path, capsys):
    (tmp_path / "class" / "ada" / "1" / "double").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "1" / "double" / "answer.py").write_text(RIGHT)
    paths = {"csv_path": str(tmp_path / "g.csv"), "json_path": str(tmp_path / "g.json")}
    assert grade.grade(str(tmp_path / "class"), only=["1/double"], kind="none", **paths) == 0
    assert "WITHOUT a sandbox" in capsys.readouterr().out
    assert (tmp_path / "g.csv").read_text().splitlines()[1] == "ada,2,2,2,"


def test_what_cannot_be_written_is_said_before_anything_is_graded(tmp_path, monkeypatch):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "file").touch()
    monkeypatch.setattr(grade, "check_solution", lambda *_: pytest.fail("too late"))
    with pytest.raises(UserError, match="cannot write"):
        grade.grade(
            str(tmp_path / "class"), only=["1/double"], kind="none", csv_path=str(tmp_path / "file" / "g.csv")
        )


def test_what_was_graded_is_written_when_something_stops_the_rest(tmp_path, monkeypatch):
    for student in ("ada", "bob"):
        (tmp_path / "class" / student).mkdir(parents=True)

    def row(student, exercises, box):
        if student.name == "bob":
            raise KeyboardInterrupt
        return grade.StudentRow(student.name, ())

    monkeypatch.setattr(grade, "check_solution", lambda *_: None)
    monkeypatch.setattr(grade, "grade_student", row)
    paths = {"csv_path": str(tmp_path / "g.csv"), "json_path": str(tmp_path / "g.json")}
    with pytest.raises(KeyboardInterrupt):
        grade.grade(str(tmp_path / "class"), only=["1/double"], kind="none", jobs=1, **paths)
    assert [line.split(",")[0] for line in (tmp_path / "g.csv").read_text().splitlines()] == ["student", "ada"]


def test_a_mistake_is_one_line(tmp_path):
    for arguments, message in (
        ([""], "error: DIR is missing: make grade DIR=submissions/"),
        ([str(tmp_path)], "error: "),
        ([str(tmp_path), "--only", "1/none"], "error: there is no exercise '1/none'"),
        ([str(tmp_path), "--sandbox", "vm"], "error: "),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "common", "grade", *arguments], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.startswith(message)
        assert "Traceback" not in done.stderr


SPLIT = re.compile(r"""[\s,;:|"']+""")  # at each of these a spreadsheet may begin another cell
FORMULAS = ["=1+1", "x;=1+1", "x,=1+1", "x\t=1+1", "x\n=1+1", 'x";=1+1', "x|-2+3+cmd", "x; +1", "x;@SUM(1)", "x;＝1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_students_text_begins_no_formula_however_the_table_is_split(text):
    mark = grade.Mark("1/double", 0, 2, "failed", text)
    shown = grade.as_csv([grade.StudentRow(grade.submissions.sanitize_name(text), (mark,))], [find("1/double")])
    assert len(shown.splitlines()) == 2
    for line in shown.splitlines()[1:]:
        for separator in (",", ";", "\t", "|", ":", " "):
            cells = [cell for row in csv.reader([line], delimiter=separator) for cell in row] + line.split(separator)
            assert not [cell for cell in cells if cell.strip(' "').startswith(("=", "+", "-", "@", "＝"))]


def test_a_name_cannot_forge_a_line(tmp_path, capsys):
    (tmp_path / "class" / "eve\nada   6 of 6").mkdir(parents=True)
    paths = {"csv_path": str(tmp_path / "g.csv"), "json_path": str(tmp_path / "g.json")}
    grade.grade(str(tmp_path / "class"), only=["1/double"], kind="none", **paths)
    assert r"  eve\nada   6 of 6" in capsys.readouterr().out.splitlines()[-2]
    assert len((tmp_path / "g.csv").read_text().splitlines()) == 2


def test_a_link_gets_no_points_and_what_is_not_a_folder_has_a_row(tmp_path, capsys):
    (tmp_path / "class" / "ada" / "1" / "double").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "1" / "double" / "answer.py").write_text(RIGHT)
    (tmp_path / "class" / "eve").symlink_to(tmp_path / "class" / "ada")
    (tmp_path / "class" / "bob.zip").touch()
    paths = {"csv_path": str(tmp_path / "g.csv"), "json_path": str(tmp_path / "g.json")}
    grade.grade(str(tmp_path / "class"), only=["1/double"], kind="none", **paths)
    assert "this is a link" in capsys.readouterr().out
    assert (tmp_path / "g.csv").read_text().splitlines()[1:] == [
        "bob.zip,0,0,2,this is an archive; unpack it into a folder",
        "eve,0,0,2,this is a link; hand in the files themselves",
        "ada,2,2,2,",
    ]


def test_an_exercise_that_cannot_be_checked_here_is_left_out_and_the_others_are_graded(tmp_path, monkeypatch, capsys):
    (tmp_path / "class" / "ada" / "1" / "double").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "1" / "double" / "answer.py").write_text(RIGHT)
    hidden = tmp_path / "1" / "observed" / "check.py"
    hidden.parent.mkdir(parents=True)
    hidden.write_text("def check(work):\n    assert False, 'always'\n")
    monkeypatch.setenv("EXERCISES", f"{PRIVATE}:{tmp_path}")
    paths = {"csv_path": str(tmp_path / "g.csv"), "json_path": str(tmp_path / "g.json")}
    assert grade.grade(str(tmp_path / "class"), only=["1/observed", "1/double"], kind="none", **paths) == 0
    shown = capsys.readouterr().out
    reason = "1/observed: our own solution does not pass on this machine.\nalways"
    assert shown.index(reason) < shown.index("  ada")
    assert (tmp_path / "g.csv").read_text().splitlines() == [
        "student,1/double,total,of,remarks", "ada,2,2,2,\"1/observed: not graded, see the JSON\""
    ]  # fmt: skip
    assert json.loads((tmp_path / "g.json").read_text())["not_graded"] == [{"id": "1/observed", "reason": reason}]


@pytest.mark.needs("bwrap")
def test_a_program_gets_more_arguments_than_bubblewrap_accepts(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "sum.cu").write_text(
        "#include <cstdio>\n#include <cstdlib>\nint main(int count, char** words) {\n  double sum = 0;\n"
        '  for (int k = 1; k < count; ++k) sum += std::atof(words[k]);\n  std::printf("%d %.9g\\n", count, sum);\n}\n'
    )
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes:
        for words in (["0.5"] * 40_050, [], ["a b\n", "", "1"]):
            status, text = boxes.program("sum.cu", words, tmp_path, 60, {}, tmp_path / "counts")
            said = f"{len(words) + 1} {sum(float(word) for word in words if word[:1].isdigit()):.9g}"
            assert (status, text.splitlines()[0]) == (0, said)


def headers(*types: bytes, size: int = 512) -> io.BytesIO:
    """An archive of members of these types and of this size, each followed by one block."""
    data = b""
    for kind in types:
        member = tarfile.TarInfo("made.txt")
        member.type, member.size = kind, size
        data += member.tobuf(tarfile.USTAR_FORMAT) + b"9 a=bcde\n".ljust(512, b"\0")
    return io.BytesIO(data)


@pytest.mark.parametrize("kind", isolation.EXTENDED)
def test_headers_of_any_size_are_not_read(tmp_path, kind):
    isolation.extract_files(headers(tarfile.REGTYPE, kind, tarfile.REGTYPE), tmp_path)
    isolation.extract_files(headers(kind, tarfile.REGTYPE), tmp_path / "nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["made.txt"]


def test_a_program_leaves_a_limited_number_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "MAX_FILES", 3)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as files:
        for k in range(10):
            files.addfile(tarfile.TarInfo(str(k)))
    data.seek(0)
    isolation.extract_files(data, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.needs("bwrap")
def test_a_result_of_any_size_does_not_fill_the_memory(tmp_path):
    tmp_path.chmod(0o755)
    code = "import sys\nfor _ in range(3000):\n    sys.stdout.buffer.write(b'1' * 10**6)"
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes, tempfile.TemporaryFile() as answer:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        boxes._fetch([sys.executable, "-c", code], tmp_path, 60, [], {}, answer)
        assert answer.tell() == isolation.MAX_BYTES
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB
