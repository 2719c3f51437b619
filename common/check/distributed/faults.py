"""Trainings whose processes are killed at random moments, and what is left of them."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from .launching import launch
from .workers import stage9, train


@dataclass
class Killer:
    """Kills one of the processes of a training, again and again, a random time after the last restart."""

    folder: Path
    kills: int
    numbers: random.Random
    longest_life: float  # seconds from a restart to the next kill
    moments: list[dict] = field(default_factory=list)  # of each kill
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Runs in a thread until all kills are done or the training is over."""
        for attempt in range(self.kills):
            if not (process := self._await_process(attempt)):
                return
            self.is_over.wait(self.numbers.uniform(0, self.longest_life))
            if self.is_over.is_set():
                return
            complete = list_steps(self.folder / "checkpoints")
            is_writing = any((self.folder / "checkpoints").glob("*.writing"))
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:  # the training is over
                return
            self.moments.append({"newest": max(complete, default=0), "is_writing": is_writing})

    def _await_process(self, attempt: int) -> int | None:
        """The number of one of the processes of an attempt, as soon as it is known; None if the training is over."""
        path = self.folder / "processes" / f"{attempt}-{self.numbers.randrange(2)}"
        while not path.exists():
            if self.is_over.wait(0.01):
                return None
        return int(path.read_text())


def train_and_kill(folder: Path, kills: int, seed: int, arguments: list[str], longest_life: float) -> list[dict]:
    """Trains in two processes, and kills one of them up to `kills` times. Returns the moments of the kills."""
    killer = Killer(folder, kills, random.Random(seed), longest_life)
    thread = threading.Thread(target=killer.run)
    thread.start()
    try:
        launch(train, 2, str(folder), arguments, logs=folder / "logs", restarts=kills)
    finally:
        killer.is_over.set()
        thread.join()
    return killer.moments


def list_steps(checkpoints: Path) -> list[int]:
    """The steps of the complete checkpoints in a folder."""
    return [int(path.name.removeprefix("step-")) for path in checkpoints.glob("step-*") if not path.suffix]


def final_state(folder: Path) -> tuple[dict[str, Tensor], list[dict]]:
    """All numbers of a training's last checkpoint, and the history in it."""
    checkpoints = folder / "checkpoints"
    last = checkpoints / stage9.checkpoint.name_of(max(list_steps(checkpoints)))
    dcp_to_torch_save(last, folder / "state.pt")
    state = torch.load(folder / "state.pt", weights_only=True)
    return dict(flatten("", state)), stage9.checkpoint.read_manifest(last)["history"]


def flatten(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The leaves of nested dictionaries and lists, with the path to each."""
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flatten(f"{name}.{key}", part)
    else:
        yield name, value


def differences(one: Path, other: Path) -> list[str]:
    """The names of what differs between the last checkpoints of two trainings, in any bit."""
    (state, history), (wanted, wanted_history) = final_state(one), final_state(other)
    assert any(isinstance(value, Tensor) for value in wanted.values()), "the checkpoint has no tensors"
    found = sorted(state.keys() ^ wanted.keys())
    for name in state.keys() & wanted.keys():
        a, b = state[name], wanted[name]
        if not (torch.equal(a, b) if isinstance(a, Tensor) else a == b):
            found.append(name)
    return found + ["history"] * (history != wanted_history)
