"""The protocol between judge and learner: a frame is JSON text and the bytes of its tensors. It cannot run code.

Both sides use this file, the learner's without the rest of `common`. Before each frame come `NONCE` random bytes,
which an answer repeats from its request. The judge compares them before it reads any size, and checks each number of
a frame before it allocates memory for it, because code in the learner's process can write anything.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable

import torch
from torch import Tensor

NONCE = 32  # bytes before each frame
MOST = 2**27  # bytes of a frame, and of any tensor in it, even if its elements share memory
MOST_TEXT = 2**21  # bytes of its JSON text, whose objects take up to 50 times as much memory
MOST_DIMENSIONS = 64  # as in torch
OFFSETS = 16  # from 0 to 15: of a tensor's first element
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
    shown = max(
        [size, *(tensor.numel() * tensor.element_size() for tensor in tensors if tensor.device.type != "meta")]
    )
    if shown + len(text) > MOST:
        raise ValueError(f"tensors of {shown / 1e6:,.0f} MB: a check accepts at most {MOST / 1e6:,.0f} MB")
    if len(text) > MOST_TEXT:
        raise ValueError(f"values of {len(text) / 1e6:,.0f} MB: a check accepts at most {MOST_TEXT / 1e6:,.0f} MB")
    parts = [_bytes(tensor) for tensor in tensors]
    return [struct.pack("<QQ", len(text), sum(map(len, parts))), text, *parts]


def unpack(read: Callable[[int], bytes]) -> object:
    """The tree of the next frame; `read(n)` returns n bytes. Raises an exception if it is invalid."""
    size, rest = struct.unpack("<QQ", read(16))
    if size > MOST_TEXT or size + rest > MOST:
        raise ValueError(f"a message of {size + rest} bytes")
    head, data = json.loads(read(size)), read(rest)
    data = memoryview(data if isinstance(data, bytearray) else bytearray(data))
    tensors, at = [], 0
    for described in head["tensors"]:
        end = at + require_number(described["bytes"], len(data) - at)
        tensors.append(_tensor(described, data[at:end]))
        at = end
    return decode(head["value"], tensors)


def require_number(value: object, most: int) -> int:
    """The value if it is a whole number from 0 to `most`; otherwise raises ValueError."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("a number of the message is out of range")
    return value


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
        "offset": tensor.storage_offset() % OFFSETS,  # enough to keep how it is aligned
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


def _checked_layout(described: dict, most: int) -> tuple[list[int], list[int], int]:
    """Size, stride and offset of a tensor with at most that many elements; ValueError if a number is out of range."""
    size, stride = described["size"], described["stride"]
    if len(size) > MOST_DIMENSIONS or len(stride) != len(size):
        raise ValueError(f"a tensor of {len(size)} dimensions with {len(stride)} strides")
    for number in (*size, *stride):
        require_number(number, 2**62)
    require_number(math.prod(size), most)
    return size, stride, require_number(described["offset"], OFFSETS - 1)


def _tensor(described: dict, data: memoryview) -> Tensor:
    dtype, device = DTYPES[described["dtype"]], torch.device(described["device"])
    is_meta = device.type == "meta"
    size, stride, offset = _checked_layout(described, 2**62 if is_meta else MOST // dtype.itemsize)
    if is_meta:
        return torch.empty_strided(size, stride, dtype=dtype, device="meta")
    if math.prod(size) == 0:
        return torch.empty(size, dtype=dtype, device=device).requires_grad_(described["requires_grad"])
    count = len(data) // dtype.itemsize
    storage = torch.empty(offset + count, dtype=torch.uint8 if dtype == torch.bool else dtype)
    storage.view(torch.uint8).fill_(255)  # NaN before the first element
    storage = storage.view(dtype)
    storage[offset:].copy_(torch.frombuffer(data, dtype=dtype))
    plain = storage.to(device).as_strided(size, stride, offset)
    return _marked(plain, described["conj"], described["neg"]).requires_grad_(described["requires_grad"])
