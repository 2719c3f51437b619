"""Joins requests into one call of the model."""

import torch
from torch.nn.utils.rnn import pad_sequence


def predict_together(model, requests):
    """The result of each request, in their order: scores (C), h (S) and cell (S); or the exception that it causes.

    A request is a tuple `(steps, h, cell)` of shapes (T, I), (S), (S); T differs between requests.
    `model(steps, lengths, h, cell)` takes the shapes (B, T, I), (B), (B, S), (B, S), and returns scores (B, C), h and
    cell (B, S), all after the first `lengths[k]` steps of each row k.
    """
    steps, h, cell = zip(*requests, strict=True)
    lengths = torch.tensor([len(one) for one in steps])
    padded, h, cell = pad_sequence(steps, batch_first=True), torch.stack(h), torch.stack(cell)
    try:
        results = model(padded, lengths, h, cell)
        return [tuple(one[k].clone() for one in results) for k in range(len(requests))]
    except Exception:
        pass
    answers = []
    for k, T in enumerate(lengths):
        try:
            results = model(padded[k : k + 1, :T], lengths[k : k + 1], h[k : k + 1], cell[k : k + 1])
            answers.append(tuple(one[0].clone() for one in results))
        except Exception as error:
            answers.append(error)
    return answers
