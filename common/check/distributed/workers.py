"""What each of the processes computes for a check. They import this module before they are forked."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import torch
import torch._dynamo  # an optimizer imports it, which takes seconds; here, it is imported once
from torch import Tensor, nn

from ...build import modules

stage9 = modules.load_stage(9)
modules.load_stage(1)


def gradients(cell: str, stage: str, size: int, device: str = "cpu") -> tuple[bool, float]:
    """Compares the gradients of a batch of `size` samples with those that this process computes alone.

    Whether they are equal, bit for bit, to the sum over the shares of all processes; and by how much they differ
    from those of the batch as a whole, relative to the largest.
    """
    torch.set_num_threads(1)
    processes = stage9.Processes.from_environment(60)
    with processes.connected({}):
        training = make_training(processes, cell, stage, device)
        network, batch = training.network, torch.arange(size)
        training.gradients(batch)
        averaged = take_gradients(network)
        for rank in range(processes.world_size):
            backward(training, stage9.share(batch, rank, processes.world_size), size)
        added = take_gradients(network)
        backward(training, batch, size)
        whole = take_gradients(network)
    equal = all(map(torch.equal, averaged, added))
    return equal, max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(averaged, whole, strict=True))


def make_training(processes: object, cell: str = "lltm", stage: str = "1", device: str = "cpu") -> object:
    """A small training in float64."""
    task = stage9.make_task("rows", length=0, seed=0, data=None)
    train, test = (stage9.Samples(inputs.double(), targets) for inputs, targets in (task.train, task.test))
    task = dataclasses.replace(task, train=train, test=test)
    torch.manual_seed(0)
    network = stage9.make_network(task, cell, stage, 16).double()
    place = processes.device(device)
    return stage9.Training(task, network, processes, place, batch_size=64, learning_rate=1e-3, seed=0)


def backward(training: object, rows: Tensor, size: int) -> None:
    """Adds the gradients of some rows' part of the mean loss of `size` samples, without the other processes."""
    samples = training.train[rows]
    (training.task.loss(training.network(samples.inputs), samples.targets) * (1 / size)).backward()


def take_gradients(network: nn.Module) -> list[Tensor]:
    """The gradients of all parameters, which then have none."""
    found = [parameter.grad for parameter in network.parameters()]
    network.zero_grad()
    return found


def evaluation() -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean loss and accuracy on the test samples, from all processes, and from this one alone."""
    torch.set_num_threads(1)
    processes = stage9.Processes.from_environment(60)
    with processes.connected({}):
        training = make_training(processes)
        together = training.evaluate()
        with torch.no_grad():
            outputs = training.network(training.test.inputs)
            loss = training.task.loss(outputs, training.test.targets) / len(outputs)
            correct = training.task.is_correct(outputs, training.test.targets).double().mean()
    return together, (float(loss), float(correct))


def train(folder: str, arguments: list[str]) -> int:
    """Runs the training program with a checkpoint in `folder`. Writes the process's number there first."""
    attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
    place = Path(folder) / "processes"
    place.mkdir(parents=True, exist_ok=True)
    beside = place / f"{attempt}-{rank}.new"
    beside.write_text(str(os.getpid()))
    beside.rename(beside.with_suffix(""))
    torch.set_num_threads(1)
    return stage9.train.main([*arguments, "--checkpoint", str(Path(folder) / "checkpoints"), "--device", "cpu"])
