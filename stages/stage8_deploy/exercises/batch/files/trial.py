"""What `make check` calls. Do not change this file; edit batching.py."""

import torch

from .batching import predict_together

LARGEST = 100.0


class TooLarge(Exception):
    """What the model raises for an input that is too large."""


class Model:
    """A small recurrent model that counts its calls. It fails if an input is larger than 100 or a batch too large."""

    def __init__(self, weights, recurrent, head, most_rows):
        self.weights, self.recurrent, self.head, self.most_rows = weights, recurrent, head, most_rows
        self.batch_sizes = []
        self.misuse = ""

    def __call__(self, steps, lengths, h, cell):
        """The scores, h and cell after the steps of each row."""
        self.misuse = self.misuse or self.find_misuse(steps, lengths, h, cell)
        if self.misuse:
            raise ValueError(self.misuse)
        T = steps.size(1)
        self.batch_sizes.append(len(steps))
        if len(steps) > self.most_rows:
            raise MemoryError(f"not enough memory for {len(steps)} rows")
        if bool((steps > LARGEST).any()):
            raise TooLarge(f"an input is {steps.max().item():.0f}, expected at most {LARGEST:.0f}")
        for t in range(T):
            is_real = (t < lengths)[:, None]
            new_cell = 0.9 * cell + torch.tanh(steps[:, t] @ self.weights + h @ self.recurrent)
            h, cell = torch.where(is_real, torch.tanh(new_cell), h), torch.where(is_real, new_cell, cell)
        return h @ self.head, h, cell

    def find_misuse(self, steps, lengths, h, cell):
        """What is wrong with the arguments; empty if nothing is."""
        for name, one in (("steps", steps), ("lengths", lengths), ("h", h), ("cell", cell)):
            if not isinstance(one, torch.Tensor):
                return f"{name} is a {type(one).__name__}, expected a tensor"
        if steps.dim() != 3:
            return f"steps has shape {tuple(steps.shape)}, expected (B, T, I)"
        B, T, _ = steps.shape
        S = len(self.recurrent)
        for name, one, shape in (("lengths", lengths, (B,)), ("h", h, (B, S)), ("cell", cell, (B, S))):
            if tuple(one.shape) != shape:
                return f"steps has shape {tuple(steps.shape)} and {name} {tuple(one.shape)}, expected {shape}"
        if B == 0 or int(lengths.min()) < 1 or int(lengths.max()) > T:
            return f"lengths are {lengths.tolist()}, expected 1 to {T} steps in each row"
        return ""


def trial(parameters, requests, most_rows=1000):
    """Each result, with the bytes of memory that its tensors keep; the batch sizes of the calls; and a misuse.

    Also whether the list of requests is as before. A text instead of a result is the exception that it is.
    """
    model = Model(*parameters, most_rows)
    given = [tuple(request) for request in requests]
    before = list(given)
    with torch.no_grad():
        results = predict_together(model, given)
    is_kept = list(map(id, given)) == list(map(id, before))
    return [[describe(result) for result in results], model.batch_sizes, model.misuse, is_kept]


def describe(result):
    """A result with its bytes, or a text."""
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {result}"
    if not isinstance(result, tuple | list) or not all(isinstance(one, torch.Tensor) for one in result):
        return f"{result!r:.60}"
    return [[one.clone() for one in result], [one.untyped_storage().nbytes() for one in result]]
