"""Tensors arrive as they were sent: numbers, strides, and what a view is marked with."""

from __future__ import annotations

import io
import json
import resource
import struct
import tracemalloc

import pytest
import torch
from torch import Tensor

from common.exercises.runner import wire

Z = torch.randn(5, 6, dtype=torch.complex64)
SENT = {
    "complex": Z,
    "conjugated": Z.conj(),
    "negated": Z.conj().imag,
    "conjugated and sliced": Z.t().conj()[1:, ::2],
    "needs a gradient": Z.conj().requires_grad_(),
    "bool": torch.tensor([True, False]),
}


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_a_tensor_arrives_as_it_was_sent(sent):
    got = wire.unpack(io.BytesIO(b"".join(wire.pack(sent))).read)
    assert torch.equal(got, sent)
    for property in (Tensor.stride, Tensor.is_conj, Tensor.is_neg):
        assert property(got) == property(sent)
    assert (got.requires_grad, got.is_leaf) == (sent.requires_grad, True)


def frame(head: object, data: bytes = b"") -> io.BytesIO:
    text = json.dumps(head).encode()
    return io.BytesIO(struct.pack("<QQ", len(text), len(data)) + text + data)


PLAIN = {
    "dtype": "float64", "device": "cpu", "size": [1], "stride": [1], "offset": 0, "bytes": 8, "requires_grad": False,
    "conj": False, "neg": False,
}  # fmt: skip
FORGED = {
    "an offset of 48 GB": {"offset": 6_000_000_000},
    "a negative offset": {"offset": -1},
    "a petabyte in 8 bytes": {"size": [10**9, 10**6], "stride": [0, 0]},
    "more dimensions than torch has": {"size": [1] * 65, "stride": [1] * 65},
    "sizes whose product takes long": {"size": [9] * 100_000, "stride": [0] * 100_000},
    "a negative size": {"size": [-1]},
    "a fraction": {"offset": 0.5},
    "true as a number": {"offset": True},
    "fewer strides than sizes": {"stride": []},
    "a negative number of bytes": {"bytes": -8},
    "more bytes than there are": {"bytes": 16},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_numbers_are_checked_before_memory_is_allocated(change):
    tracemalloc.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"out of range|dimensions"):
        wire.unpack(frame({"value": {"tensor": 0}, "tensors": [PLAIN | change]}, bytes(8)).read)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


def test_bytes_belong_to_one_tensor_only():
    tensors = [PLAIN, PLAIN | {"bytes": -8}, PLAIN]
    with pytest.raises(ValueError, match="out of range"):
        wire.unpack(frame({"value": 0, "tensors": tensors}, bytes(8)).read)


@pytest.mark.parametrize("sizes", [(wire.MOST_TEXT + 1, 0), (2, wire.MOST), (0, 2**63)])
def test_a_frame_has_a_largest_size(sizes):
    asked = []

    def read(count: int) -> bytes:
        asked.append(count)
        return struct.pack("<QQ", *sizes)

    with pytest.raises(ValueError, match="a message of"):
        wire.unpack(read)
    assert asked == [16]


@pytest.mark.parametrize("value", [torch.ones(1).expand(2**26), torch.empty(2**26), "x" * (wire.MOST_TEXT + 1)])
def test_what_is_too_large_is_not_sent(value):
    with pytest.raises(ValueError, match="a check accepts at most"):
        wire.pack(value)
