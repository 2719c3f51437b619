"""The protocol between judge and learner: a frame is JSON text and the bytes of its tensors. It cannot run code.

Both sides use this file, the learner's without the rest of `common`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable

import torch
from torch import Tensor

MOST = 2**30  # bytes of a frame
MOST_TEXT = 2**24  # bytes of its JSON text
PIPE_LOST = 77  # the exit status of a learner's process that can no longer answer
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128),
        *(torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool),
    )
}


def pack(value: object) -> list[bytes]:
    """A frame of any tree of tensors, numbers, texts, lists, tuples and dictionaries; TypeError for others."""
    tensors: list[Tensor] = []
    text = json.dumps(
        {"value": encode(value, tensors), "tensors": [_described(tensor) for tensor in tensors]}
    ).encode()
    size = sum(_span(tensor) * tensor.element_size() for tensor in tensors)
    if size + len(text) > MOST:
        raise ValueError(f"tensors of {size / 1e6:,.0f} MB: a check accepts at most {MOST / 1e6:,.0f} MB")
    parts = [_bytes(tensor) for tensor in tensors]
    return [struct.pack("<QQ", len(text), sum(map(len, parts))), text, *parts]


def unpack(read: Callable[[int], bytes]) -> object:
    """The tree of the next frame; `read(n)` returns n bytes. Raises ValueError for an invalid frame."""
    size, rest = struct.unpack("<QQ", read(16))
    if size > MOST_TEXT or size + rest > MOST:
        raise ValueError(f"a message of {size + rest} bytes")
    head, data = json.loads(read(size)), bytearray(read(rest))
    tensors, at = [], 0
    for described in head["tensors"]:
        end = at + int(described["bytes"])
        tensors.append(_tensor(described, data[at:end]))
        at = end
    return decode(head["value"], tensors)


def leaves(value: object) -> list:
    """The leaves of a tree."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, list | tuple) else [value]


def encode(value: object, tensors: list[Tensor]) -> object:
    """A tree in a form that JSON can represent; its tensors are added to a list."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"tuple": [encode(one, tensors) for one in value]}
    if isinstance(value, list | torch.Size):
        return [encode(one, tensors) for one in value]
    if isinstance(value, dict):
        return {"dict": [[encode(key, tensors), encode(one, tensors)] for key, one in value.items()]}
    raise TypeError(f"a {type(value).__name__} cannot be handed over")


def decode(value: object, tensors: list[Tensor]) -> object:
    """The tree, decoded."""
    if isinstance(value, list):
        return [decode(one, tensors) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "dtype":
        return DTYPES[inner]
    if kind == "tuple":
        return tuple(decode(one, tensors) for one in inner)
    return {decode(key, tensors): decode(one, tensors) for key, one in inner}


def _described(tensor: Tensor) -> dict:
    """The properties of a tensor besides its bytes. The bytes include the gaps, so the strides stay valid."""
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "size": list(tensor.shape),
        "stride": list(tensor.stride()),
        "offset": tensor.storage_offset() % 16,  # enough to keep how it is aligned
        "bytes": 0 if tensor.device.type == "meta" else _span(tensor) * tensor.element_size(),
        "requires_grad": tensor.requires_grad,
        "conj": tensor.is_conj(),  # a view whose numbers are conjugated when they are read
        "neg": tensor.is_neg(),
    }


def _span(tensor: Tensor) -> int:
    """The number of elements from the first to the last, including gaps between them."""
    if tensor.numel() == 0 or tensor.device.type == "meta":
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _bytes(tensor: Tensor) -> bytes:
    if _span(tensor) == 0:
        return b""
    flat = _marked(tensor.detach(), tensor.is_conj(), tensor.is_neg()).as_strided((_span(tensor),), (1,))
    return flat.cpu().view(torch.uint8).numpy().tobytes()


def _marked(tensor: Tensor, conj: bool, neg: bool) -> Tensor:
    """A view with these marks added, or removed if the tensor has them."""
    tensor = tensor.conj() if conj else tensor
    return torch._neg_view(tensor) if neg else tensor


def _tensor(described: dict, data: bytearray) -> Tensor:
    dtype, device, size = DTYPES[described["dtype"]], torch.device(described["device"]), described["size"]
    if device.type == "meta":
        return torch.empty_strided(size, described["stride"], dtype=dtype, device="meta")
    if math.prod(size) == 0:
        return torch.empty(size, dtype=dtype, device=device).requires_grad_(described["requires_grad"])
    offset, count = described["offset"], len(data) // dtype.itemsize
    storage = torch.empty(offset + count, dtype=torch.uint8 if dtype == torch.bool else dtype)
    storage.view(torch.uint8).fill_(255)  # NaN before the first element
    storage = storage.view(dtype)
    storage[offset:].copy_(torch.frombuffer(data, dtype=dtype))
    plain = storage.to(device).as_strided(size, described["stride"], offset)
    return _marked(plain, described["conj"], described["neg"]).requires_grad_(described["requires_grad"])
