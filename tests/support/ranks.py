"""Processes of stage 9's program that are started by hand, without torchrun: each may have other arguments."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from common.check.distributed.launching import PRELOADED, START_METHOD
from common.check.distributed.workers import stage9


@dataclass(frozen=True)
class Ended:
    """The exit status of a process, and what it printed."""

    status: int
    output: str

    @property
    def errors(self) -> list[str]:
        """The program's own messages."""
        return [line for line in self.output.splitlines() if line.startswith("error: ")]


def run_ranks(
    *arguments: list[str],
    folder: Path,
    port: int | None = None,
    world_size: int | None = None,
    prepare: dict[int, Callable[[], None]] | None = None,
    timeout: float = 60,
) -> list[Ended]:
    """Runs the program once for each list of arguments, as ranks 0, 1, ...; a process that hangs is a failure.

    `prepare` are functions that a rank calls first; `world_size` may be larger than the number of processes.
    """
    multiprocessing.set_forkserver_preload([PRELOADED])
    context, port = multiprocessing.get_context(START_METHOD), port or free_port()
    processes = []
    for rank, given in enumerate(arguments):
        environment = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": world_size or len(arguments),
            "LOCAL_WORLD_SIZE": world_size or len(arguments),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        first = (prepare or {}).get(rank)
        processes.append(context.Process(target=run, args=(given, environment, folder / f"{rank}.log", first)))
        processes[-1].start()
    for process in processes:
        process.join(timeout)
    hanging = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for rank in hanging:
        processes[rank].kill()
    assert not hanging, f"ranks {hanging} hang"
    return [Ended(process.exitcode, (folder / f"{k}.log").read_text()) for k, process in enumerate(processes)]


def run(arguments: list[str], environment: dict, log: Path, first: Callable[[], None] | None) -> None:
    """One process: its output goes to a file."""
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update({name: str(value) for name, value in environment.items()})
    torch.set_num_threads(1)
    if first:
        first()
    sys.exit(stage9.train.main(arguments))


def free_port() -> int:
    """A port that nothing uses now."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def another_torch() -> None:
    """As if this process had another version of torch."""
    torch.__version__ = "2.11.0"


def two_gpus_without_nccl() -> None:
    """As if torch were built without NCCL, on a machine with two GPUs."""
    torch.cuda.device_count = lambda: 2
    dist.is_nccl_available = lambda: False


def one_gpu() -> None:
    """As if the machine had one GPU."""
    torch.cuda.device_count = lambda: 1


def dies() -> None:
    """The process ends without a word in its tenth step."""
    update = stage9.Training.update

    def last_update(training: object, batch: torch.Tensor) -> torch.Tensor:
        if training.step == 10:
            os._exit(9)
        return update(training, batch)

    stage9.Training.update = last_update


def full_disk() -> None:
    """From the second checkpoint on, files cannot grow beyond a few bytes."""
    import resource

    save = stage9.Checkpoints.save

    def limited(checkpoints: object, step: int, *rest: object) -> None:
        if step == 20:
            checkpoints.wait()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        if step == 40:
            checkpoints.wait()
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        save(checkpoints, step, *rest)

    stage9.Checkpoints.save = limited


def before_save(of_step: int, function: Callable[[Path], None]) -> None:
    """Calls a function, in the first process, with the folder of the checkpoints before one is saved."""
    save = stage9.Checkpoints.save

    def save_after(checkpoints: object, step: int, *rest: object) -> None:
        checkpoints.wait()
        if step == of_step and checkpoints.is_first:
            function(checkpoints.folder)
        dist.barrier(group=checkpoints.group)
        save(checkpoints, step, *rest)

    stage9.Checkpoints.save = save_after


def folder_removed() -> None:
    """The user removes the folder of the checkpoints."""
    before_save(60, shutil.rmtree)


def folder_becomes_a_file() -> None:
    """The user replaces the folder of the checkpoints by a file."""
    before_save(40, lambda folder: (shutil.rmtree(folder), folder.touch()))


def folder_of_another_run() -> None:
    """The user removes the folder of the checkpoints and starts another run, which makes it again."""
    before_save(40, lambda folder: (shutil.rmtree(folder), lock_elsewhere(folder)))


def lock_elsewhere(folder: Path) -> None:
    """A forked process, which ends with this one, takes the lock of a folder."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        stage9.lock.FolderLock(folder).acquire()
        os.write(writing, b"1")
        ctypes.CDLL(None).prctl(1, 9)  # SIGKILL when the parent ends
        signal.pause()
    os.read(reading, 1)


def nothing_can_be_removed() -> None:
    """As if the file system refused to remove folders."""

    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(13, "Permission denied", str(path))

    shutil.rmtree = refuse
