"""Tensors arrive as they were sent: numbers, strides, and what a view is marked with."""

from __future__ import annotations

import io

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
