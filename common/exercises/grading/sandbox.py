"""Runs processes in a sandbox: without network, as another user, with read-only access to only the files they need.

Bubblewrap builds a sandbox from the kernel's namespaces and needs no root; podman and docker build one from an image.
A `Sandbox` turns a command into the longer one that runs it inside. Everything that comes out of it, text and numbers
alike, is untrusted.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UserError
from ...versions import OLDEST_BUBBLEWRAP, release

KINDS = ("bubblewrap", "podman", "docker", "none")
SUPERVISOR = Path(__file__).with_name("supervisor.py")
AUDIT = Path(__file__).with_name("audit")
GIVEN = "/given"  # the folder as it was handed in
COPY = f'cp -r {GIVEN}/. . && exec "$@"'
# Passed on from the teacher's environment: variables that a build depends on, and none that could be secret.
HANDED_ON = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
NOBODY = 65534
USERS = range(61184, 65520)  # systemd takes its temporary users from this range, too
NEXT_USER = itertools.count(os.getpid())  # another start in each process: the kernel counts processes by user
GIB = 2**30
# Times the limit on processes, from where the kernel creates no more. The supervisor must see the excess before that:
# in a storm of forks it misses many processes, and one whose fork fails may end the storm and go on to answer.
REFUSED_ABOVE = 4


@dataclass(frozen=True)
class Limits:
    """Limits for all processes of one command together, in bytes; `files` limits what they write to each place."""

    memory: int = 4 * GIB
    processes: int = 256  # and threads
    files: int = GIB // 2


@dataclass(frozen=True)
class Sandbox:
    """A kind of sandbox, the folders that can be read inside, and the limits. `image` is for podman and docker."""

    kind: str
    readable: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    image: str = ""

    def command(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        readable: Sequence[Path] = (),
        read_only: bool = False,
    ) -> list[str]:
        """The command line that runs `command` in `folder`, with the variables that are not secret.

        Inside, `readable` and what Python is made of can be read; `folder` is a copy, and that and /tmp can be
        written until the command ends. With `read_only`, `folder` is no copy, and only /tmp can be written.
        """
        readable = _with_link_targets([*self.readable, AUDIT, *readable])
        audit = {"PYTHONPATH": str(AUDIT), "AUDIT_READABLE": ":".join(map(str, readable))}
        variables = [f"{name}={value}" for name, value in {**filter_environment(environment), **audit}.items()]
        if read_only:
            readable = [*readable, folder.absolute()]
        else:
            command = ["sh", "-c", COPY, "sh", *command]
        container = "" if self.kind == "bubblewrap" else f"lltm-{uuid.uuid4().hex}"
        if self.kind == "bubblewrap":
            # Started with these variables only: a process can read the initial environment of its ancestors.
            inner = ["env", "-i", *variables, *_bubblewrap(readable, folder, self.limits, read_only), *command]
        else:
            inner = [*_container(self, container, variables, readable, folder, read_only), *command]
        limits = [str(n) for n in (self.limits.memory, self.limits.processes, self.limits.files)]
        # -I, -S: quick to start, and nothing of the environment or the current folder is imported.
        return [sys.executable, "-I", "-S", str(SUPERVISOR), *limits, container, *inner]


def _with_link_targets(paths: Sequence[Path]) -> list[Path]:
    """Absolute paths, each with the target if it is a link: inside, both names are separate folders."""
    return list(dict.fromkeys(name for path in paths for name in (path.absolute(), path.resolve())))


def _bubblewrap(readable: Sequence[Path], folder: Path, limits: Limits, read_only: bool) -> list[str]:
    """The prefix of a command that bubblewrap runs."""
    away = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    command = ["bwrap", *away, "--hostname", "sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if os.geteuid() == 0:  # root can really become another user, once everything is mounted
        user = str(USERS[next(NEXT_USER) % len(USERS)])
        command += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    else:
        command += ["--unshare-user", "--disable-userns", "--uid", str(NOBODY), "--gid", str(NOBODY)]
        become = []
    command += [*_system(), "--proc", "/proc", "--dev", "/dev"]
    here = str(folder.absolute())
    for place in ("/dev/shm", "/tmp"):
        command += ["--perms", "1777", "--size", str(limits.files), "--tmpfs", place]
    command += [word for path in readable for word in _mounted("--ro-bind", path)]
    if not read_only:
        command += ["--ro-bind", here, GIVEN, *_parents(folder.absolute())]
        command += ["--perms", "1777", "--size", str(limits.files), "--tmpfs", here]
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", here, "--"]
    return [*command, *become, "prlimit", f"--nproc={REFUSED_ABOVE * limits.processes}", "--"]


def _system() -> list[str]:
    """Bubblewrap's options for programs and libraries of the system, and the files in /etc needed to find them."""
    options = ["--ro-bind", "/usr", "/usr"]
    for path in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64")):
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            options += ["--ro-bind", str(path), str(path)]
    for path in map(Path, ("/etc/alternatives", "/etc/ld.so.cache")):
        options += _mounted("--ro-bind-try", path)
    return options


def _mounted(option: str, path: Path) -> list[str]:
    """Bubblewrap's options for a path that has the same name inside."""
    return [*_parents(path), option, str(path), str(path)]


def _parents(path: Path) -> list[str]:
    """Bubblewrap's options for the parent folders of a path; by default only its own user could read them."""
    return [word for each in reversed(path.parents[:-1]) for word in ("--perms", "0755", "--dir", str(each))]


def _container(
    sandbox: Sandbox, name: str, variables: Sequence[str], readable: Sequence[Path], folder: Path, read_only: bool
) -> list[str]:
    """The prefix of a command that podman or docker runs."""
    limits, here = sandbox.limits, str(folder.absolute())
    options = [f"--name={name}", "--rm", "--interactive", "--init", "--pull=never", "--network=none", "--read-only"]
    options += [f"--user={NOBODY}:{NOBODY}", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    options += [f"--memory={limits.memory}", f"--memory-swap={limits.memory}", f"--pids-limit={limits.processes}"]
    options += [f"--ulimit=fsize={limits.files}", "--ulimit=core=0"]
    writable = ["/tmp"] if read_only else ["/tmp", here]
    options += [f"--tmpfs={place}:rw,exec,nosuid,nodev,mode=1777,size={limits.files}" for place in writable]
    options += [] if read_only else [f"--volume={here}:{GIVEN}:ro"]
    options += [f"--volume={path}:{path}:ro" for path in readable]
    options += [f"--env={variable}" for variable in variables]
    return [sandbox.kind, "run", *options, f"--workdir={folder.absolute()}", sandbox.image]


def find_message(printed: str) -> str:
    """The message of the supervisor or the audit hook if it ended a command; otherwise empty.

    A submission that prints such a line itself only loses its points.
    """
    return next((line for line in printed.splitlines() if line.startswith("sandbox: ")), "")


def choose_sandbox(kind: str | None = None, image: str = "", **options: object) -> Sandbox | None:
    """The requested sandbox, by default bubblewrap; None for "none".

    Raises `UserError` if it does not work on this machine.
    """
    if kind not in (None, *KINDS):
        raise UserError(f"there is no sandbox {kind!r}; the sandboxes are {', '.join(KINDS)}")
    if kind == "none":
        return None
    sandbox = Sandbox(kind or "bubblewrap", readable=environment_folders(), image=image, **options)
    if sandbox.kind in ("podman", "docker") and not image:
        raise UserError(
            f"SANDBOX={kind} needs IMAGE=..., an image with g++; docs/teaching.md lists what it must contain"
        )
    problem = find_problem(sandbox)
    if problem and kind is None:
        others = [name for name in ("podman", "docker") if shutil.which(name)]
        instead = f"SANDBOX={others[0]} IMAGE=... grades in containers; " if others else ""
        raise UserError(
            f"submissions are untrusted programs, and this machine has no sandbox to run them in. {problem}\n"
            f"{instead}SANDBOX=none runs them with all your permissions: use it only where they can do no harm"
        )
    if problem:
        raise UserError(f"SANDBOX={kind}: {problem}")
    return sandbox


def find_problem(sandbox: Sandbox) -> str | None:
    """Why a sandbox does not work on this machine, with the fix; None if it works."""
    program = "bwrap" if sandbox.kind == "bubblewrap" else sandbox.kind
    if not shutil.which(program):
        return f"{sandbox.kind} is not installed: sudo apt install {sandbox.kind} (on Fedora, dnf)"
    if sandbox.kind == "bubblewrap":
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[-1]
        if release(version) < release(OLDEST_BUBBLEWRAP):
            return f"bubblewrap {version} is too old: {OLDEST_BUBBLEWRAP} or newer is needed"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the sandbox runs as another user
        trial = sandbox.command(["true"], Path(folder), os.environ)
        done = subprocess.run(trial, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return None
    said = " ".join(done.stderr.split()) or f"status {done.returncode}"
    return f"{sandbox.kind} is installed, but cannot run ({said}). {_why_not(sandbox.kind)}"


def _why_not(kind: str) -> str:
    """The most frequent reason why a kind of sandbox cannot run."""
    if kind != "bubblewrap":
        return f"Does `{kind} run` work with this image?"
    restriction = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if restriction.exists() and restriction.read_text().strip() != "0":
        return "AppArmor forbids it (Ubuntu 24.04 does): sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return "Within a container, start that with --privileged, or grade outside of it"


def environment_folders() -> tuple[Path, ...]:
    """The folders of Python and its packages that lie outside of the system folders."""
    torch = importlib.util.find_spec("torch")
    wanted = [sys.prefix, sys.base_prefix, *([Path(torch.origin).parents[1]] if torch else [])]
    found: list[Path] = []
    for path in map(Path, wanted):
        if not any(path.is_relative_to(other) for other in ("/usr", *found)):
            found.append(path)
    return tuple(found)


def filter_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that builds depend on, those that were added for the check, and the necessary ones."""
    wanted = {
        name: value
        for name, value in environment.items()
        if name in HANDED_ON or name.startswith("EMULATOR_") or os.environ.get(name) != value
    }
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    fixed = {"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "nobody", "LC_ALL": "C.UTF-8"}
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "CUDA_VISIBLE_DEVICES": "", "MAX_JOBS": "2", "OMP_NUM_THREADS": "2"}
    return {**wanted, **fixed, **quiet}
