"""The sandbox: what runs in it sees, keeps and reaches nothing, and takes no more than it may."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from common.errors import UserError
from common.exercises.grading import sandbox
from common.exercises.grading.sandbox import Limits, Sandbox

MIB = 2**20
LIMITS = Limits(memory=200 * MIB, processes=40, files=50 * MIB)
bubblewrap = pytest.mark.needs("bwrap")


@pytest.fixture(params=["as root", "as an ordinary user"] if os.geteuid() == 0 else ["as an ordinary user"])
def user(request, monkeypatch) -> None:
    """Root's sandbox is made in another way; root can make the other one too."""
    if request.param == "as an ordinary user":
        monkeypatch.setattr(sandbox.os, "geteuid", lambda: 1000)
        if problem := sandbox.find_problem(Sandbox("bubblewrap")):
            pytest.skip(f"only root can use bubblewrap here: {problem}")


@pytest.fixture
def folder(tmp_path, user) -> Path:
    """A submission's folder, which the user inside may enter."""
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    made = tmp_path / "submission"
    made.mkdir()
    return made


def command(folder: Path, code: str, limits: Limits = LIMITS, readable=(), **variables: str) -> list[str]:
    box = sandbox.choose_sandbox("bubblewrap", limits=limits)
    return box.command([sys.executable, "-c", code], folder, {**os.environ, **variables}, readable)


def run(folder: Path, code: str, **options) -> subprocess.CompletedProcess:
    started = command(folder, code, **options)
    return subprocess.run(started, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


@bubblewrap
def test_a_program_runs_in_its_folder_with_python_and_its_packages(folder):
    (folder / "lltm.py").write_text("answer = 42\n")
    done = run(
        folder, "import lltm, os, torch; print(lltm.answer, torch.ones(3).sum().item(), os.getcwd())", limits=Limits()
    )
    assert done.stdout.split() == ["42", "3.0", str(folder)], done.stderr


@bubblewrap
def test_it_is_another_user_with_no_rights(folder):
    code = "import os; print(os.getuid(), os.geteuid(), os.getgroups()); print(open('/proc/self/status').read())"
    done = run(folder, code)
    lines = done.stdout.splitlines()
    uid, euid, _ = lines[0].split(" ", 2)
    assert uid == euid
    assert int(uid) not in (0, os.getuid())
    assert "CapEff:\t0000000000000000" in lines
    assert "NoNewPrivs:\t1" in lines


@bubblewrap
def test_files_outside_are_not_there(folder, tmp_path):
    (tmp_path / "grades.csv").write_text("secret\n")
    code = f"""
import os
from pathlib import Path
for path in ({str(tmp_path / "grades.csv")!r}, {str(Path.home())!r} + "/.ssh", {__file__!r}, "/etc/passwd", "/home"):
    print(Path(path).exists())
print(sorted(os.listdir({str(tmp_path)!r})))
"""
    assert run(folder, code).stdout.split("\n") == [*["False"] * 5, "['submission']", ""]


@bubblewrap
def test_nothing_outside_of_tmp_can_be_written(folder):
    script = "; ".join(
        f"touch {path}/planted 2>&1" for path in (sandbox.AUDIT, sys.prefix, "/", "/usr", "/dev", "/etc", "/given")
    )
    done = run(folder, f"import os; os.system({script!r})")
    assert done.stdout.count("Read-only file system") + done.stdout.count("No such file") == 7, done.stdout
    assert not any(Path(folder, "planted").exists() for folder in ("/usr", "/", sandbox.AUDIT))


@bubblewrap
def test_its_own_folder_is_a_copy(folder):
    (folder / "lltm.py").write_text("answer = 42\n")
    mine = Path(f"/tmp/mine-{os.getpid()}")
    done = run(folder, f"open('lltm.py', 'a').write('1'); open('{mine}', 'w'); print(open('lltm.py').read())")
    assert done.stdout == "answer = 42\n1\n"
    assert (folder / "lltm.py").read_text() == "answer = 42\n"
    assert not mine.exists()


TRESPASSES = {
    "opens /tmp/grades.csv, which does not belong to it": "open('/tmp/grades.csv')",
    "opens /etc/passwd, which does not belong to it": "open('/etc/passwd')",
    "opens /usr/planted, which does not belong to it": "import pathlib; pathlib.Path('/usr/planted').write_text('')",
    "uses the network": "import socket; socket.create_connection(('127.0.0.1', 9))",
    "forks": "import os; os.fork() or os._exit(0)",
}


@bubblewrap
@pytest.mark.parametrize(("what", "code"), TRESPASSES.items())
def test_who_reaches_for_what_is_not_theirs_is_ended_even_if_it_hides_the_failure(folder, what, code):
    done = run(folder, f"try:\n    {code}\nexcept BaseException: pass\nprint('went on')")
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == ""
    assert f"sandbox: ended, it {what}" in done.stderr


@bubblewrap
def test_what_packages_open_is_their_business(folder):
    code = "import pathlib, setuptools, torch; open('notes', 'w'); pathlib.Path('/tmp/x').touch(); print('went on')"
    done = run(folder, code, limits=Limits())
    assert done.stdout == "went on\n", done.stderr


@bubblewrap
def test_a_file_that_is_handed_in_can_be_read_and_nothing_beside_it(folder, tmp_path):
    (tmp_path / "library").write_text("yes")
    (tmp_path / "solution").write_text("no")
    code = f"import os; os.chdir({str(tmp_path)!r}); print(open('library').read(), os.path.exists('solution'))"
    assert run(folder, code, readable=[tmp_path / "library"]).stdout == "yes False\n"


@bubblewrap
def test_what_is_put_into_a_readable_folder_meanwhile_is_found(folder, tmp_path):
    """The learner's process starts while its extension is still being built."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(0o755)
    started = subprocess.Popen(
        command(folder, f"input(); print(open({str(place / 'made')!r}).read())", readable=[place]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    time.sleep(0.3)
    (place / "made").write_text("late")
    assert started.communicate(b"\n", timeout=60)[0] == b"late\n"


@bubblewrap
def test_the_network_is_not_there_not_even_this_machine(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {connect(port)!r}])"
        assert "ConnectionRefusedError" in run(folder, code).stderr


def connect(port: int) -> str:
    return f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"


@bubblewrap
def test_variables_of_the_teacher_are_not_seen_by_any_process(folder, monkeypatch):
    monkeypatch.setenv("CLASS_SECRET", "hunter2")
    monkeypatch.setenv("CXXFLAGS", "-g")
    code = """
import os
seen = dict(os.environ)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        seen[pid] = open(f"/proc/{pid}/environ").read()
    except OSError:
        pass
print(len(seen), "hunter2" in str(seen), os.environ.get("CXXFLAGS"), os.environ.get("ADDED"))
"""
    count, found, flags, added = run(folder, code, ADDED="by-the-judge").stdout.split()
    assert int(count) > 5
    assert (found, flags, added) == ("False", "-g", "by-the-judge")


@bubblewrap
def test_other_processes_can_be_neither_seen_nor_ended(folder):
    me = os.getpid()
    done = run(folder, f"import os, signal; print(os.path.exists('/proc/{me}')); os.kill({me}, signal.SIGTERM)")
    assert done.stdout == "False\n"
    assert "ProcessLookupError" in done.stderr


@bubblewrap
def test_forking_without_end_stops_at_the_limit(folder):
    code = """
import subprocess
made = 0
while True:
    try:
        subprocess.Popen(["sleep", "60"])
        made += 1
    except BlockingIOError:
        print(made)
        break
"""
    done = run(folder, code)
    if done.stdout:
        assert 20 < int(done.stdout) <= LIMITS.processes
    else:  # the kernel excepts root, the watch does not
        assert "sandbox: ended, it started more than 40 processes and threads" in done.stderr


TOO_MUCH = {
    "one process": ("x = []\nwhile True: x.append(bytearray(b'1' * 10**7))", r"\d processes"),
    "many processes": ("""
import subprocess, sys, time
each = "import time; x = bytearray(b'1' * 10**7); time.sleep(9)"
for _ in range(30): subprocess.Popen([sys.executable, "-I", "-S", "-c", each])
time.sleep(9)
""", r"\d\d processes"),
    "files that lie in no process": ("""
import os
files = [os.memfd_create(str(k)) for k in range(64)]
while True:
    for file in files: os.write(file, b'x' * 10**6)
""", "memory-backed files"),
}  # fmt: skip


@bubblewrap
def test_memory_that_forked_processes_share_counts_once(folder):
    code = """
import ctypes, time
x = bytearray(b'1' * 10**8)
for _ in range(9):
    if ctypes.CDLL(None).fork() == 0:
        time.sleep(2)
        break
else:
    time.sleep(1)
    print("went on")
"""
    done = run(folder, code)
    assert done.stdout == "went on\n", done.stderr


@bubblewrap
def test_an_environment_behind_a_link_can_be_used(folder, tmp_path, monkeypatch):
    """Inside, the link and what it leads to are two folders, and Python's files are found under either name."""
    link = tmp_path / "link"
    link.symlink_to(Path(sys.prefix).resolve())
    monkeypatch.setattr(sandbox.sys, "prefix", str(link))
    python = link / "bin" / Path(sys.executable).name
    box = sandbox.choose_sandbox("bubblewrap")
    code = "import setuptools, torch; print('went on')"
    done = subprocess.run(
        box.command([str(python), "-c", code], folder, os.environ), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "went on\n", done.stderr


@bubblewrap
@pytest.mark.parametrize(("code", "where"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_who_takes_too_much_memory_is_ended_and_told(folder, code, where):
    done = run(folder, code)
    assert done.returncode == -signal.SIGKILL
    assert re.search(f"sandbox: ended, it took more than 0.2 GB of memory, in {where}\n", done.stderr), done.stderr


@bubblewrap
def test_the_disk_cannot_be_filled(folder):
    code = """
import os
total = 0
for place in ("/tmp", "/dev/shm"):
    try:
        for k in range(100):
            with open(f"{place}/{k}", "wb", buffering=0) as file: total += file.write(b"1" * 2**22)
    except OSError as error:
        print(error.strerror)
print(total)
"""
    *errors, total = run(folder, code).stdout.splitlines()
    assert errors == ["No space left on device"] * 2
    assert int(total) <= 2 * LIMITS.files


@bubblewrap
def test_a_crash_is_seen_as_that_signal(folder):
    assert run(folder, "import ctypes; ctypes.string_at(0)").returncode == -signal.SIGSEGV
    assert run(folder, "raise SystemExit(200)").returncode == 200


@bubblewrap
def test_it_can_be_asked_where_it_is(folder):
    code = """
import faulthandler, signal, subprocess
faulthandler.register(signal.SIGUSR1)
child = subprocess.Popen(["sleep", "9"])
print("ready", flush=True)
child.wait()
"""
    started = subprocess.Popen(command(folder, code), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert started.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    os.kill(started.pid, signal.SIGUSR1)
    time.sleep(0.3)
    assert started.poll() is None
    started.kill()
    assert b'File "<string>", line 6 in <module>' in started.communicate()[1]


@bubblewrap
def test_when_the_outer_process_is_killed_nothing_is_left(folder):
    mark = f"mark-{os.getpid()}"
    code = (
        f"import os, time\nos.setsid()\nos.system('sleep 9 &')\nprint('ready', flush=True)\ntime.sleep(9)  # {mark}"
    )
    started = subprocess.Popen(command(folder, code), stdout=subprocess.PIPE)
    assert started.stdout.readline() == b"ready\n"
    assert alive(mark)
    started.kill()
    started.wait()
    deadline = time.monotonic() + 5
    while alive(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(mark)


def alive(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += [path.parent.name] if mark in path.read_text() else []
    return found


@bubblewrap
def test_input_and_other_descriptors_arrive(folder):
    """A judge talks to a submission through pipes of its own."""
    read, write = os.pipe()
    started = command(folder, f"import os, sys; os.write({write}, sys.stdin.read().upper().encode())")
    subprocess.run(started, input=b"hello", pass_fds=[write], timeout=60, check=True)
    assert os.read(read, 100) == b"HELLO"
    os.close(read)
    os.close(write)


@bubblewrap
def test_two_at_once(folder):
    results = []
    work = [threading.Thread(target=lambda: results.append(run(folder, "print(1)").stdout)) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert results == ["1\n"] * 4


def test_without_bubblewrap_it_is_refused_and_says_what_would_help(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: "/usr/bin/podman" if name == "podman" else None)
    with pytest.raises(UserError) as error:
        sandbox.choose_sandbox()
    message = str(error.value)
    assert "bubblewrap is not installed: sudo apt install bubblewrap" in message
    assert "SANDBOX=podman IMAGE=" in message
    assert "SANDBOX=none" in message


def test_an_old_bubblewrap_is_refused(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: name)
    shown = subprocess.CompletedProcess([], 0, stdout="bubblewrap 0.6.1\n")
    monkeypatch.setattr(sandbox.subprocess, "run", lambda *_, **__: shown)
    with pytest.raises(UserError, match=r"bubblewrap 0\.6\.1 is too old: 0\.8 or newer is needed"):
        sandbox.choose_sandbox()


def test_one_that_cannot_run_here_says_why(monkeypatch, tmp_path):
    (tmp_path / "bwrap").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit 0\n'
        "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sandbox, "filter_environment", lambda _: {"PATH": os.environ["PATH"]})
    with pytest.raises(UserError, match=r"cannot run \(bwrap: setting up uid map: Permission denied\)"):
        sandbox.choose_sandbox("bubblewrap")


def test_none_must_be_asked_for():
    assert sandbox.choose_sandbox("none") is None


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_the_command_line_of_a_container(kind, folder, tmp_path):
    """What is asked of podman and docker; a run needs one of them, and an image."""
    box = Sandbox(kind, readable=(Path("/opt/env"),), limits=LIMITS, image="course:2026")
    started = box.command(["python3", "-c", "1"], folder, {"ADDED": "yes"}, readable=[tmp_path])
    inner = started[started.index(kind) :]
    assert inner[:2] == [kind, "run"]
    assert inner[-8:] == ["course:2026", "sh", "-c", sandbox.COPY, "sh", "python3", "-c", "1"]
    for option in (
        *("--rm", "--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        *("--user=65534:65534", "--pids-limit=40", f"--memory={200 * MIB}", f"--memory-swap={200 * MIB}"),
        *(f"--ulimit=fsize={50 * MIB}", "--env=ADDED=yes", f"--workdir={folder}"),
        *(
            "--volume=/opt/env:/opt/env:ro",
            f"--volume={folder}:/given:ro",
            f"--volume={tmp_path}:{tmp_path}:ro",
        ),
    ):
        assert option in inner


def test_a_container_needs_an_image():
    with pytest.raises(UserError, match="SANDBOX=podman needs IMAGE="):
        sandbox.choose_sandbox("podman")


def test_an_unknown_kind_is_refused():
    with pytest.raises(UserError, match="there is no sandbox 'vm'; the sandboxes are bubblewrap, podman"):
        sandbox.choose_sandbox("vm")
