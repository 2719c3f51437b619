"""The processes that train together: they find one another, make sure that they agree, and add up numbers."""

import json
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from .errors import LostContact, TrainingError

NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
VARIABLES = (*NUMBERS, "MASTER_ADDR")
START = "start with torchrun"
WAIT_FOR_TORCHRUN = 30.0  # seconds, after which a process ends by itself


@dataclass(frozen=True)
class Processes:
    """This process among all: `rank` of `world_size`, and `local_rank` of `local_world_size` on this machine.

    A collective that does not end within `timeout` seconds raises an exception.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    timeout: float

    @classmethod
    def from_environment(cls, timeout):
        """As torchrun's environment variables say. Without torchrun there is one process.

        Raises `TrainingError` if only some of the variables are set, or if their numbers do not fit.
        """
        if "RANK" not in os.environ and "WORLD_SIZE" not in os.environ:
            return cls(0, 1, 0, 1, timeout)
        absent = [name for name in VARIABLES if name not in os.environ]
        if absent:
            raise TrainingError(f"RANK or WORLD_SIZE is set, but not {' and '.join(absent)}; {START}")
        given = {name: os.environ[name] for name in VARIABLES}
        try:
            rank, world_size, local_rank, local_world_size, port = (int(given[name]) for name in NUMBERS)
        except ValueError:
            rank, world_size, local_rank, local_world_size, port = -1, 0, -1, 0, 0
        fits = 0 <= rank < world_size and 0 <= local_rank < local_world_size <= world_size and 0 < port < 2**16
        if not fits:
            shown = " ".join(f"{name}={text}" for name, text in given.items())
            raise TrainingError(f"{shown} is not the environment of a process among several; {START}")
        return cls(rank, world_size, local_rank, local_world_size, timeout)

    @property
    def limit(self):
        """The time limit of a collective, as torch wants it."""
        return timedelta(seconds=self.timeout)

    def device(self, kind):
        """The device of this process. Raises `TrainingError` if there are fewer GPUs than processes, or no NCCL."""
        if kind == "cpu":
            return torch.device("cpu")
        if (gpus := torch.cuda.device_count()) < self.local_world_size:
            raise TrainingError(
                f"--device cuda: {self.local_world_size} processes need as many GPUs, and torch finds {gpus} here; "
                f"choose --nproc-per-node {gpus} or --device cpu"
                if gpus
                else "--device cuda: torch finds no GPU here; choose --device cpu"
            )
        if not dist.is_nccl_available():
            raise TrainingError("--device cuda: this build of torch has no NCCL; choose --device cpu")
        return torch.device("cuda", self.local_rank)

    @contextmanager
    def connected(self, facts, problem=None):
        """Connects the processes, if none has a `problem` and all have the same `facts` (a flat dictionary).

        The default process group is gloo's, which can also exchange Python objects. Raises `TrainingError`, with the
        same message in every process, and `LostContact` if another process dies or hangs afterwards.
        """
        store = self._store()
        self._compare(store, {"problem": problem, **facts})
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size, timeout=self.limit)
        try:
            yield
        except (dist.DistError, RuntimeError) as error:
            if not isinstance(error, dist.DistError) and "gloo" not in str(error):
                raise
            reason = str(error).rpartition("] ")[2].splitlines()[0].partition(". ")[0]
            raise LostContact(f"process {self.rank} lost contact with another process: {reason}") from None
        finally:
            dist.destroy_process_group()

    def _store(self):
        """A table in the first process (or in torchrun) that all processes read and write."""
        if self.world_size == 1:
            return dist.HashStore()
        address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        try:
            store, _, _ = next(dist.rendezvous("env://", timeout=self.limit))
        except (dist.DistNetworkError, dist.DistStoreError) as error:
            if "EADDRINUSE" in str(error):
                raise TrainingError(f"port {address} is in use; `torchrun --standalone` takes a free one") from None
            raise LostContact(
                f"process {self.rank} of {self.world_size} waited {self.timeout:g} s for the others at {address}"
            ) from None
        # torchrun keeps its store when it restarts the processes: these must not read what their predecessors wrote.
        return dist.PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", store)

    def _compare(self, store, facts):
        """Writes this process's facts into the store, reads those of all, and raises `TrainingError` if they differ.

        This comes before any collective: processes that run different code may wait for each other forever.
        """
        store.set(f"facts of {self.rank}", json.dumps(facts))
        everyone = [self._read(store, rank) for rank in range(self.world_size)]
        store.set(f"read by {self.rank}", "")
        if self.rank == 0:  # the store may end with this process, so the others must have read first
            with suppress(dist.DistError, RuntimeError):
                store.wait([f"read by {rank}" for rank in range(self.world_size)], self.limit)
        problems = {rank: facts["problem"] for rank, facts in enumerate(everyone) if facts["problem"]}
        if problems:
            same = len(problems) == self.world_size and len({*problems.values()}) == 1
            lines = [text if same else f"process {rank}: {text}" for rank, text in problems.items()]
            raise TrainingError("; ".join(dict.fromkeys(lines)))
        for rank, theirs in enumerate(everyone):
            for name, value in everyone[0].items():
                if theirs.get(name) != value:
                    raise TrainingError(
                        f"process {rank} runs with {name} {theirs.get(name)}, process 0 with {name} {value}"
                    )

    def _read(self, store, rank):
        try:
            store.wait([f"facts of {rank}"], self.limit)
        except (dist.DistStoreError, RuntimeError):
            raise LostContact(f"process {rank} of {self.world_size} did not start in {self.timeout:g} s") from None
        return json.loads(store.get(f"facts of {rank}"))

    def group_for(self, device):
        """A process group for the gradients on a device: NCCL moves them from GPU to GPU."""
        return dist.new_group(backend="nccl" if device.type == "cuda" else "gloo", timeout=self.limit)

    def sum(self, *numbers):
        """The sum of each number over all processes; every process gets it."""
        totals = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(totals)
        return totals.tolist()


def stop_torchrun():
    """Ends torchrun, which would otherwise start all processes again although the same error would come again.

    torchrun does so after every exit status except 0. For SIGTERM it ends the processes, this one too, and itself,
    with exit status 1. Does nothing if torchrun did not start this process or would not start it again.
    """
    if not (is_from_torchrun(os.getppid()) and can_restart(os.environ)):
        return
    if os.environ["LOCAL_RANK"] == "0":
        sys.stderr.flush()
        os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(WAIT_FOR_TORCHRUN)  # a process that ends first would make torchrun start all of them again


def is_from_torchrun(process):
    """Whether a process, by its number, is torchrun."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word in (b"torch.distributed.run", b"torch.distributed.launch") for word in command) or any(
        word.endswith((b"/torchrun", b"/torch/distributed/run.py")) for word in command[:3]
    )


def can_restart(environment):
    """Whether torchrun would start this process again, as its variables say."""
    try:
        done, most = (int(environment[f"TORCHELASTIC_{name}"]) for name in ("RESTART_COUNT", "MAX_RESTARTS"))
    except (KeyError, ValueError):
        return False
    return done < most
