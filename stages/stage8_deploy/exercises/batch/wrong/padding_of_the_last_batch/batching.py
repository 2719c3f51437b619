"""Joins requests into one call of the model."""

import torch

buffers = {}  # for padded steps by shape and dtype: their memory is used again


def predict_together(model, requests):
    """The result of each request, in their order: scores (C), h (S) and cell (S); or the exception that it causes.

    A request is a tuple `(steps, h, cell)` of shapes (T, I), (S), (S); T differs between requests.
    `model(steps, lengths, h, cell)` takes the shapes (B, T, I), (B), (B, S), (B, S), and returns scores (B, C), h and
    cell (B, S), all after the first `lengths[k]` steps of each row k.
    """
    if not requests:
        return []
    try:
        return call(model, requests)
    except Exception as error:
        if len(requests) == 1:
            return [error]
    half = len(requests) // 2
    return predict_together(model, requests[:half]) + predict_together(model, requests[half:])


def padded(steps):
    """The steps of all requests, (B, T, I)."""
    shape = len(steps), max(len(one) for one in steps), steps[0].size(1)
    key = shape, steps[0].dtype
    if key not in buffers:
        buffers[key] = steps[0].new_zeros(shape)
    for row, one in zip(buffers[key], steps, strict=True):
        row[: len(one)] = one
    return buffers[key]


def call(model, requests):
    """The results of one call."""
    steps, h, cell = zip(*requests, strict=True)
    lengths = torch.tensor([len(one) for one in steps])
    outputs = model(padded(steps), lengths, torch.stack(h), torch.stack(cell))
    return [tuple(one.clone() for one in row) for row in zip(*outputs, strict=True)]
