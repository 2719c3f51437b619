"""A lock on a folder. The system releases it when the process that holds it ends, however it ends."""

import fcntl
import os
import struct
from pathlib import Path

from .errors import FolderInUse

NAME = ".lock"
FLOCK = "hhqqi"  # struct flock of Linux: type, whence, start, length, process


class FolderLock:
    """The lock that all processes of a run share, and that no process of another run can get meanwhile.

    `acquire` and `join` do nothing if this process has the lock. They take it again if the folder was removed.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.descriptor = None

    def acquire(self):
        """For the first process of a run. Raises `FolderInUse` if a process of another run holds the lock."""
        if not self._is_held():
            self._open()
            # Exclusive, to be sure that no other process holds it. Then shared, in one step, for the other processes.
            self._lock(fcntl.LOCK_EX)
            self._lock(fcntl.LOCK_SH)

    def join(self):
        """For the other processes, while the first one holds the lock. If it is killed, they still hold it."""
        if not self._is_held():
            self._open()
            self._lock(fcntl.LOCK_SH)

    def release(self):
        """For a run that ends before its process does."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _is_held(self):
        """Whether this process has the lock of the file that is in the folder now."""
        try:
            return self.descriptor is not None and os.path.samestat(
                os.fstat(self.descriptor), (self.folder / NAME).stat()
            )
        except FileNotFoundError:
            return False

    def _open(self):
        self.release()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(self.folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)

    def _lock(self, kind):
        try:
            fcntl.lockf(self.descriptor, kind | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # POSIX allows either
            raise FolderInUse(f"{self.folder} is in use by {self._holder()}") from None

    def _holder(self):
        """The process that holds the lock, as the system knows it."""
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = struct.unpack(FLOCK, fcntl.fcntl(self.descriptor, fcntl.F_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return "a process that has just ended"
        return f"process {process}" if process > 0 else "a process of another machine or container"
