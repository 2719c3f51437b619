"""Checkpoints that are complete or absent, written while the training goes on.

A checkpoint is a folder, `step-00000300`. All processes write their parts to `step-00000300.writing`. Then the first
process adds the file `manifest.json`, with a checksum of every other file, and renames the folder. On Linux, a
rename happens at once or not at all. If the run is killed before it, the folder keeps its other name and is never
read; if a file is damaged later, its checksum does not fit and the checkpoint before it is read.
"""

import copy
import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from .errors import TrainingError

KEPT = 2  # the newest, and the one before it in case the newest is damaged
MANIFEST = "manifest.json"


class Checkpoints:
    """The checkpoints of a run in a folder. Every process calls every method."""

    def __init__(self, folder, timeout):
        self.folder = Path(folder)
        self.is_first = dist.get_rank() == 0
        # Not the default group: while a thread writes, the collectives of the training use that one.
        self.group = dist.new_group(backend="gloo", timeout=timeout)
        self.thread = ThreadPoolExecutor(max_workers=1)
        self.pending = None

    def newest(self):
        """The notes of the newest complete checkpoint, with its `step`; None if there is none.

        The first process decides, and the others learn from it. It also removes what killed runs have left.
        """
        answer = [None]
        if self.is_first:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                for unfinished in self.folder.glob("step-*.writing"):
                    shutil.rmtree(unfinished)
                answer = [self._first_undamaged()]
            except OSError as error:
                answer = [f"--checkpoint {self.folder}: {error.strerror}"]
        dist.broadcast_object_list(answer, group=self.group)
        if isinstance(answer[0], str):
            raise TrainingError(answer[0])
        return answer[0]

    def _first_undamaged(self):
        """The notes of the newest checkpoint whose files fit their checksums. Newer ones get another name."""
        for folder in reversed(self.complete()):
            try:
                return read_manifest(folder)
            except (OSError, ValueError, KeyError) as error:
                print(f"{folder} is damaged and is not used: {error}", flush=True)
                folder.rename(folder.with_suffix(".damaged"))
        return None

    def complete(self):
        """The folders of all checkpoints that were written to their end, the oldest first."""
        return sorted(path for path in self.folder.glob("step-*") if not path.suffix)

    def load(self, step, tensors):
        """Reads a checkpoint into the tensors of a nested dictionary. The number of processes may be another."""
        dcp.load(tensors, checkpoint_id=self.folder / name_of(step), process_group=self.group)

    def save(self, step, tensors, notes):
        """Copies the arguments and returns. A thread writes them, `notes` as JSON, after the checkpoint before."""
        self.wait()
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
                last = next((path.name for path in reversed(self.complete())), "none")
                print(f"error: step {step} has no checkpoint: {error}; the last one is {last}", flush=True)
            return False
        return True

    def _publish(self, written, notes, writing):
        """Runs in the thread: waits until all processes have written their files; then the first one renames."""
        try:
            written.result()
            if self.is_first:
                write_manifest(writing, notes)
                writing.rename(writing.with_suffix(""))
                sync(self.folder)
        except (dcp.CheckpointException, OSError, RuntimeError) as error:
            # torch's own message for a full disk does not say that the disk is full.
            free = shutil.disk_usage(self.folder).free / 2**20
            raise TrainingError(f"{reason_of(error)} ({free:.1f} MiB are free in {self.folder})") from None
        finally:
            if self.is_first:
                shutil.rmtree(writing, ignore_errors=True)  # after a rename, there is nothing of that name
        for old in self.complete()[:-KEPT] if self.is_first else ():
            shutil.rmtree(old)


def name_of(step):
    """The name of a checkpoint. Names sort like their steps."""
    return f"step-{step:08}"


def write_manifest(folder, notes):
    """Adds the manifest to a checkpoint. Afterwards, everything in the folder is on the disk."""
    with (folder / MANIFEST).open("w") as file:
        json.dump({**notes, "sha256": checksums(folder)}, file)
        file.flush()
        os.fsync(file.fileno())
    sync(folder)


def read_manifest(folder):
    """The notes of a checkpoint. Raises an exception if a file of it is missing or damaged."""
    notes = json.loads((folder / MANIFEST).read_text())
    if notes.pop("sha256") != checksums(folder):
        raise ValueError("its files do not fit their checksums")
    return notes


def checksums(folder):
    """The checksum of each file of a checkpoint but the manifest."""
    paths = sorted(path for path in folder.iterdir() if path.name != MANIFEST)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


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
