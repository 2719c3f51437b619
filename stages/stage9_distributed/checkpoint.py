"""Checkpoints that are complete or absent, written while the training goes on.

A checkpoint is a folder, `step-00000300`. All processes write their parts to `step-00000300.writing`. Then the first
process adds the file `manifest.json`, with a checksum of every other file, and renames the folder. On Linux, a
rename happens at once or not at all. If the run is killed before it, the folder keeps its other name and is never
read; if a file is damaged later, its checksum does not fit and the checkpoint before it is read.
"""

import copy
import hashlib
import itertools
import json
import os
import re
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from .errors import FolderInUse, TrainingError
from .lock import FolderLock

KEPT = 2  # the newest, and the one before it in case the newest is damaged
MANIFEST = "manifest.json"
NAME = re.compile(r"step-(\d{8,})")


class Checkpoints:
    """The checkpoints of a run in a folder, which it locks. Every process calls every method."""

    def __init__(self, folder, timeout):
        self.folder = Path(folder)
        self.is_first = dist.get_rank() == 0
        # Not the default group: while a thread writes, the collectives of the training use that one.
        self.group = dist.new_group(backend="gloo", timeout=timeout)
        self.thread = ThreadPoolExecutor(max_workers=1)
        self.pending = None
        self.lock = FolderLock(self.folder)
        try:
            self._own_folder()
        except TrainingError:
            self.close()
            raise

    def newest(self):
        """The notes of the newest complete checkpoint, with its `step`; None if there is none.

        The first process decides, and the others learn from it. It also removes what killed runs have left.
        """
        return self._agree(lambda: self._find_newest() if self.is_first else None)[0]

    def _own_folder(self):
        """Makes sure that this run has the lock of the folder, which may have been removed since the last time."""
        self._agree(lambda: self.is_first and self.lock.acquire())
        self._agree(lambda: self.is_first or self.lock.join())

    def _agree(self, function):
        """Calls a function in every process. Returns the results of all; an error in one is raised in all."""
        result, problem = None, None
        try:
            result = function()
        except TrainingError as error:
            problem = error
        except OSError as error:
            problem = TrainingError(f"--checkpoint {self.folder}: {error.strerror or error}")
        answers = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(answers, (result, problem), group=self.group)
        for _, problem in answers:
            if problem:
                raise problem
        return [result for result, _ in answers]

    def _find_newest(self):
        for unfinished in self.folder.glob("step-*.writing"):
            remove(unfinished)
        return self._first_undamaged()

    def _first_undamaged(self):
        """The notes of the newest checkpoint whose files fit their checksums. Newer ones get another name."""
        for folder in reversed(self.complete()):
            try:
                return read_manifest(folder)
            except (OSError, ValueError) as error:
                print(f"{folder} is damaged and is not used: {error}", flush=True)
                folder.rename(unused_name(folder.with_suffix(".damaged")))
        return None

    def complete(self):
        """The folders of all checkpoints that were written to their end, the oldest first."""
        return sorted((path for path in self.folder.iterdir() if NAME.fullmatch(path.name)), key=step_of)

    def load(self, step, tensors):
        """Reads a checkpoint into the tensors of a nested dictionary. The number of processes may be another."""
        dcp.load(tensors, checkpoint_id=self.folder / name_of(step), process_group=self.group)

    def save(self, step, tensors, notes):
        """Copies the arguments and returns. A thread writes them, `notes` as JSON, after the checkpoint before.

        Raises `FolderInUse` if the folder was removed, and now belongs to another run.
        """
        self.wait()
        try:
            self._own_folder()
        except FolderInUse:
            raise
        except TrainingError as error:
            self.pending = step, Future()
            self.pending[1].set_exception(error)
            return
        writing = self.folder / f"{name_of(step)}.writing"
        written = dcp.async_save(tensors, checkpoint_id=writing, process_group=self.group)
        notes = copy.deepcopy({"step": step, **notes})  # the training may go on to change them
        self.pending = step, self.thread.submit(self._publish, written, notes, writing)

    def wait(self):
        """Waits until the last checkpoint is written. Returns whether it is; if not, the first process says why."""
        if self.pending is None:
            return True
        (step, written), self.pending = self.pending, None
        try:
            written.result()
        except TrainingError as error:
            if self.is_first:
                print(f"error: step {step} has no checkpoint: {error}; the last one is {self._last()}", flush=True)
            return False
        return True

    def close(self):
        """Ends the thread, and lets other runs use the folder."""
        self.thread.shutdown()
        self.lock.release()

    def _last(self):
        """The name of the newest checkpoint, for a message."""
        try:
            return next((path.name for path in reversed(self.complete())), "none")
        except OSError:  # the folder is no longer there
            return "none"

    def _publish(self, written, notes, writing):
        """Runs in the thread: waits until all processes have written their files; then the first one renames."""
        try:
            written.result()
            if self.is_first:
                write_manifest(writing, notes)
                writing.rename(writing.with_suffix(""))
                sync(self.folder)
        except (dcp.CheckpointException, OSError, RuntimeError) as error:
            raise TrainingError(f"{reason_of(error)} ({describe_space(self.folder)})") from None
        finally:
            if self.is_first:
                shutil.rmtree(writing, ignore_errors=True)  # after a rename, there is nothing of that name
        if self.is_first:
            self._remove_old()

    def _remove_old(self):
        """Keeps the newest checkpoints. One that cannot be removed is no reason to end the training."""
        try:
            for old in self.complete()[:-KEPT]:
                remove(old)
        except OSError as error:
            print(f"an old checkpoint cannot be removed: {error}", flush=True)


def name_of(step):
    """The name of a checkpoint."""
    return f"step-{step:08}"


def step_of(folder):
    """The step of a checkpoint, from the name of its folder."""
    return int(NAME.fullmatch(folder.name)[1])


def unused_name(path):
    """The path, or one with a number behind it if it exists: a step may be damaged more than once."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(candidate for candidate in itertools.chain([path], numbered) if not os.path.lexists(candidate))


def remove(path):
    """Removes a folder with its content, a file or a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def describe_space(folder):
    """How much of the disk is free: torch's own message for a full disk does not say that it is full."""
    try:
        return f"{shutil.disk_usage(folder).free / 2**20:.1f} MiB are free in {folder}"
    except OSError as error:
        return f"{folder}: {error.strerror}"


def write_manifest(folder, notes):
    """Adds the manifest to a checkpoint. Afterwards, everything in the folder is on the disk."""
    sums = {**checksums(folder), MANIFEST: checksum_of_notes(notes)}
    with (folder / MANIFEST).open("w") as file:
        json.dump({**notes, "sha256": sums}, file)
        file.flush()
        os.fsync(file.fileno())
    sync(folder)


def read_manifest(folder):
    """The notes of a checkpoint. Raises `OSError` or `ValueError` if a file of it is missing or damaged."""
    try:
        notes = json.loads((folder / MANIFEST).read_text())
        sums = dict(notes.pop("sha256"))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise ValueError("its manifest cannot be read") from None
    expected = checksums(folder)
    if MANIFEST in sums:  # earlier versions of this program did not write it
        expected[MANIFEST] = checksum_of_notes(notes)
    if sums != expected:
        raise ValueError("its files do not fit their checksums")
    if notes.get("step") != step_of(folder):
        raise ValueError(f"it is a copy of step {notes.get('step')}")
    return notes


def checksum_of_notes(notes):
    """The checksum of what the manifest contains beside the checksums."""
    return hashlib.sha256(json.dumps(notes, sort_keys=True).encode()).hexdigest()


def checksums(folder):
    """The checksum of each file of a checkpoint but the manifest. Raises `ValueError` for anything but a file."""
    found = {}
    for path in sorted(path for path in folder.iterdir() if path.name != MANIFEST):
        if not path.is_file():
            raise ValueError(f"{path.name} is not a file")
        found[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def sync(folder):
    """Makes sure that the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason_of(error):
    """One line for an exception of torch.distributed.checkpoint, which holds one for each process that failed."""
    failures = getattr(error, "failures", {})
    first = next((failure[0] for failure in failures.values()), error)
    return str(first).strip().splitlines()[0] if str(first).strip() else type(first).__name__
