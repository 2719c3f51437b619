"""Inspects your Function. Do not change this file; edit answer.py."""

import gc

import torch


def tensors() -> dict[int, torch.Tensor]:
    """Every tensor that exists in Python, wherever it is stored."""
    return {id(one): one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)}


def left_over(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[tuple[int, ...]]:
    """The shapes of the tensors that forward created and that still exist while only the graph does."""
    from .answer import LinearGelu

    gc.collect()
    before = tensors()
    node = LinearGelu.apply(input, weight, bias).grad_fn  # the result itself is gone
    gc.collect()
    left = [tuple(one.shape) for key, one in tensors().items() if key not in before]
    del node
    return left
