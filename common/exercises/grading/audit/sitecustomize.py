"""Runs at the start of every Python in a sandbox and kills it if it opens foreign files, forks or uses the network.

The sandbox makes such attempts fail anyway, for programs in any language. This notices those of Python that would
hide the failure and go on. AUDIT_READABLE lists the folders that are there to be read.
"""

import os
import signal
import sys
import sysconfig

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/dev")
READABLE = (*SYSTEM, *os.environ.get("AUDIT_READABLE", "").split(":"))
HERE = os.getcwd()  # noqa: PTH109 (pathlib would be imported into every Python)
PACKAGES = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib"))
LIBRARY = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
NETWORK = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")


def is_within(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a path lies in one of the folders after all links are resolved."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders if folder)


def is_the_learners(frame) -> bool:
    """Whether the learner's code caused an event: the innermost frame outside Python's own library decides."""
    while frame:
        file = frame.f_code.co_filename
        own = file.startswith("<frozen") or file == __file__
        if not own and (is_within(file, PACKAGES) or not is_within(file, LIBRARY)):
            return is_within(file, (HERE,)) or not file.startswith("/")
        frame = frame.f_back
    return False


def describe_trespass(event: str, arguments: tuple) -> str | None:
    """What a forbidden event does, as a message; None for allowed events."""
    if event in NETWORK:
        return "uses the network"
    if event in ("os.fork", "os.forkpty"):
        return "forks"
    if event != "open" or not isinstance(arguments[0], str | bytes):
        return None
    path = os.path.realpath(os.fsdecode(arguments[0]))
    writes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    if is_within(path, ("/dev", HERE)) or (is_within(path, READABLE) and not writes):
        return None
    if is_within(path, ("/tmp",)) and is_there(path, writes):
        return None
    return f"opens {path}, which does not belong to it"


def is_there(path: str, writes: bool) -> bool:
    """Whether a file can be read, or written; in the /tmp inside that goes only for its own files."""
    exists = os.path.exists(path)  # noqa: PTH110
    return os.access(path if exists else os.path.dirname(path), os.W_OK) if writes else exists  # noqa: PTH120


def audit(event, arguments, kill=os.kill, write=os.write, me=os.getpid, frame=sys._getframe):
    """The audit hook. It keeps its own references to functions, so that the learner's code cannot replace them."""
    if event in ("open", "os.fork", "os.forkpty") or event in NETWORK:
        what = describe_trespass(event, arguments)
        if what and is_the_learners(frame(1)):
            write(2, f"\nsandbox: ended, it {what}\n".encode(errors="replace"))
            kill(me(), signal.SIGKILL)


if "AUDIT_READABLE" in os.environ:
    sys.addaudithook(audit)
