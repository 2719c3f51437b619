"""Trains the classifier on scikit-learn's handwritten digits, read row by row: 8 steps of 8 grey values."""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import OneCycleLR

from .model import SequenceClassifier

TEST_SIZE, BATCH_SIZE = 297, 25  # 1500 images for training, in 60 batches


def load_data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Images (N, 8, 8) from 0 to 1 and labels (N) for training, and the same for the test."""
    digits = load_digits()
    images = torch.from_numpy((digits.images / 16).astype(np.float32))
    labels = torch.from_numpy(digits.target)
    return images[:-TEST_SIZE], labels[:-TEST_SIZE], images[-TEST_SIZE:], labels[-TEST_SIZE:]


def make_model(lltm_sequence: Callable) -> SequenceClassifier:
    """An untrained model for the digits."""
    return SequenceClassifier(lltm_sequence, I=8, S=64, C=10)


def train_model(lltm_sequence: Callable, epochs: int = 30, seed: int = 0) -> SequenceClassifier:
    """A trained model. It learns from beginnings of 1 to 8 rows, so that it has scores after each row."""
    torch.manual_seed(seed)
    images, labels, _, _ = load_data()
    model = make_model(lltm_sequence)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = OneCycleLR(optimizer, max_lr=0.01, total_steps=epochs * (len(images) // BATCH_SIZE))
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH_SIZE):
            lengths = torch.randint(1, 9, (BATCH_SIZE,))
            scores, _, _ = model(images[rows], lengths, *model.first_state(BATCH_SIZE))
            optimizer.zero_grad()
            cross_entropy(scores, labels[rows]).backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def measure_accuracy(model: SequenceClassifier, rows: int = 8) -> float:
    """The share of the test images that the model classifies correctly after a number of rows."""
    _, _, images, labels = load_data()
    lengths = torch.full((len(images),), rows)
    scores, _, _ = model(images, lengths, *model.first_state(len(images)))
    return (scores.argmax(1) == labels).float().mean().item()
