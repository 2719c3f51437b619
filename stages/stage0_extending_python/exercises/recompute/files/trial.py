"""What looks at your Function. Leave this file as it is: answer.py is yours."""

import gc

import torch


def tensors() -> dict[int, torch.Tensor]:
    """Every tensor that Python holds, wherever it is kept."""
    return {id(one): one for one in gc.get_objects() if issubclass(type(one), torch.Tensor)}


def left_over(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[tuple[int, ...]]:
    """The shapes of the tensors that forward made and that are still there after it, beside its result."""
    from .answer import LinearGelu

    gc.collect()
    before = tensors()
    output = LinearGelu.apply(input, weight, bias)
    gc.collect()
    return [tuple(one.shape) for key, one in tensors().items() if key not in before and one is not output]
