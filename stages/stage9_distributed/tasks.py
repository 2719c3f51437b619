"""What the network learns: handwritten digits, read as sequences, and the adding problem."""

import importlib.util
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from torch.nn.functional import cross_entropy, mse_loss

from .errors import TrainingError

ADDING_SAMPLES = 20_000
CLOSE = 0.1  # a sum counts as correct if it is off by less; always answering 1 is this close in 19 % of all cases


class Samples(NamedTuple):
    """Inputs (N, T, I), and targets (N): the label, or the number to predict."""

    inputs: torch.Tensor
    targets: torch.Tensor

    def __getitem__(self, rows):
        """Some of the samples, with the shapes above."""
        return Samples(*(tensor[rows] for tensor in self))

    def to(self, device):
        """The samples on a device."""
        return Samples(*(tensor.to(device) for tensor in self))


@dataclass(frozen=True)
class Task:
    """Samples to train and to test with, and how outputs (N, O) are compared with targets (N).

    `loss` is a sum over samples, not their mean: sums of several processes can be added.
    """

    train: Samples
    test: Samples
    output_size: int  # O
    loss: Callable  # of outputs and targets, a number
    is_correct: Callable  # of outputs and targets, (N) of bool

    @property
    def input_size(self):
        """I, the features of a step."""
        return self.train.inputs.size(2)


def make_task(name, *, length, seed, data):
    """The task of that name. Raises `TrainingError` if its samples cannot be read.

    `length` is the number of steps of the adding problem, `data` a file of digits, or None for scikit-learn's.
    """
    return adding(length, seed) if name == "adding" else digits(data, pixels_a_step=1 if name == "digits" else 8)


def digits(path, pixels_a_step):
    """Images of 8 x 8 pixels, read from left to right and from top to bottom: 64 steps of a pixel, or 8 of a row."""
    pixels, labels = read_digits(path or scikit_learn_digits())
    inputs = pixels.reshape(len(pixels), -1, pixels_a_step) / 16
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))  # the same split in every run
    samples = Samples(inputs, labels)[order]
    return Task(
        samples[: len(order) * 4 // 5],
        samples[len(order) * 4 // 5 :],
        output_size=10,
        loss=lambda outputs, labels: cross_entropy(outputs, labels, reduction="sum"),
        is_correct=lambda outputs, labels: outputs.argmax(dim=1) == labels,
    )


def adding(length, seed):
    """Steps of (number, mark): the target is the sum of the two numbers that are marked."""
    if length < 2:
        raise TrainingError(f"--length {length}: the adding problem marks two steps")
    generator = torch.Generator().manual_seed(seed)
    shape = (ADDING_SAMPLES, length)
    numbers = torch.rand(shape, generator=generator)
    marked = torch.rand(shape, generator=generator).topk(2, dim=1).indices
    marks = torch.zeros(shape).scatter_(1, marked, 1.0)
    samples = Samples(torch.stack([numbers, marks], dim=2), (numbers * marks).sum(dim=1))
    return Task(
        samples[: ADDING_SAMPLES * 9 // 10],
        samples[ADDING_SAMPLES * 9 // 10 :],
        output_size=1,
        loss=lambda outputs, sums: mse_loss(outputs[:, 0], sums, reduction="sum"),
        is_correct=lambda outputs, sums: (outputs[:, 0] - sums).abs() < CLOSE,
    )


def scikit_learn_digits():
    """The file of the 1797 handwritten digits in scikit-learn. To import scikit-learn instead takes seconds."""
    found = importlib.util.find_spec("sklearn")
    if found is None:
        raise TrainingError(
            "the digits are a file of scikit-learn: pip install scikit-learn, or name one with --data"
        )
    return Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"


def read_digits(path):
    """Pixels (N, 64) from 0 to 16, and labels (N), from a file in scikit-learn's format: a line for each digit."""
    try:
        table = numpy.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise TrainingError(f"cannot read digits from {path}: {str(error).splitlines()[0]}") from None
    if table.shape[1] != 65 or len(table) < 10:
        raise TrainingError(f"cannot read digits from {path}: {table.shape} numbers, expected 65 in each line")
    labels = torch.tensor(table[:, 64]).long()
    if not torch.equal(labels.double(), torch.tensor(table[:, 64])) or labels.min() < 0 or labels.max() > 9:
        raise TrainingError(f"cannot read digits from {path}: the last number of a line must be a digit from 0 to 9")
    return torch.tensor(table[:, :64], dtype=torch.float32), labels
