"""The processes that train together: they find one another, make sure that they agree, and add up numbers."""

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from .errors import LostContact, TrainingError


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
        """As torchrun's environment variables say. Without torchrun there is one process."""
        names = ("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1)
        return cls(*(int(os.environ.get(name, default)) for name, default in names), timeout)

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
            raise TrainingError(f"process {rank} of {self.world_size} did not start in {self.timeout:g} s") from None
        return json.loads(store.get(f"facts of {rank}"))

    def group_for(self, device):
        """A process group for the gradients on a device: NCCL moves them from GPU to GPU."""
        return dist.new_group(backend="nccl" if device.type == "cuda" else "gloo", timeout=self.limit)

    def sum(self, *numbers):
        """The sum of each number over all processes; every process gets it."""
        totals = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(totals)
        return totals.tolist()
