"""What several tests of notebooks use."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def compiles_anew():
    """torch.compile takes no graph from disk: one that is there does not know of a new fake kernel."""
    torch._dynamo.reset()
    with torch._inductor.config.patch(fx_graph_cache=False):
        yield
    torch._dynamo.reset()
