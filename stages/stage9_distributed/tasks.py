"""What the network learns: handwritten digits, read as sequences, and the adding problem, which needs a long memory."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy
import torch
from torch.nn.functional import cross_entropy, mse_loss

from .errors import TrainingError

ADDING_SAMPLES = 20_000
CLOSE = 0.1  # a sum counts as correct if it is off by less; always answering 1 is this close in 19 % of all cases


class Samples(NamedTuple):
    """Inputs (N, T, I), and targets (N): the class, or the number to predict."""

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
    """The task of that name. Raises `TrainingError` if its data cannot be read.

    `length` is the number of steps of the adding problem. `data` is None or an .npz file that replaces the digits of
    scikit-learn.
    """
    if name == "adding":
        return adding(length, seed)
    return classification(*(read_digits() if data is None else read_arrays(data)), by_pixel=name == "digits")


def classification(images, labels, by_pixel):
    """Sequences (N, T, I) with a class each. `by_pixel`: one number a step, so T*I steps instead of T."""
    N, T, I = images.shape
    inputs = images.reshape(N, T * I, 1) if by_pixel else images
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))  # one split into train and test for all
    samples = Samples(inputs, labels)[order]
    train, test = samples[: N * 4 // 5], samples[N * 4 // 5 :]
    return Task(
        train,
        test,
        output_size=int(labels.max()) + 1,
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


def read_digits():
    """Scikit-learn's 1797 handwritten digits: images (N, 8, 8) between 0 and 1, and labels (N)."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise TrainingError("the digits are a part of scikit-learn: pip install scikit-learn") from None
    digits = load_digits()
    return torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)


def read_arrays(path):
    """The arrays `inputs` (N, T, I) and `labels` (N) of an .npz file."""
    try:
        with numpy.load(path) as arrays:
            inputs, labels = arrays["inputs"], arrays["labels"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise TrainingError(f"--data {path}: {error}") from None
    if inputs.ndim != 3 or labels.shape != inputs.shape[:1] or labels.dtype.kind not in "iu":
        raise TrainingError(
            f"--data {path}: inputs of shape {inputs.shape} and labels of shape {labels.shape}, {labels.dtype}; "
            "expected (N, T, I) and (N) integers"
        )
    return torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)
