"""Joins requests into one call of the model."""

import torch
from torch.nn.utils.rnn import pad_sequence


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
    except ValueError as error:
        if len(requests) == 1:
            return [error]
        return [result for request in requests for result in predict_together(model, [request])]


def call(model, requests):
    """The results of one call of the model. Each has memory of its own."""
    steps, h, cell = zip(*requests, strict=True)
    lengths = torch.tensor([len(one) for one in steps])
    scores, h, cell = model(pad_sequence(steps, batch_first=True), lengths, torch.stack(h), torch.stack(cell))
    return [(scores[k].clone(), h[k].clone(), cell[k].clone()) for k in range(len(requests))]
