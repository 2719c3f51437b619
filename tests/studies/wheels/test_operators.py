"""Stage 8's operators in torch's stable ABI, called by several versions of torch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from common import deploy
from common.studies.wheels import STUDY, operators
from support.serving import DEPLOY_MARKS

pytestmark = DEPLOY_MARKS


def test_a_version_of_torch_is_compared_with_a_plain_loop(monkeypatch):
    row = operators.call_with(Path(sys.executable), deploy.stable_operators())
    assert 0 < row["difference"] <= operators.TOLERANCE
    monkeypatch.setattr(operators, "TOLERANCE", 0.0)
    with pytest.raises(operators.UserError, match="the results differ by"):
        operators.call_with(Path(sys.executable), deploy.stable_operators())


def test_the_record_is_of_these_sources_and_of_two_versions():
    record = STUDY.read_record("operators")
    assert record["sources"] == operators.hash_sources()
    found = {row["torch"].rpartition(".")[0] for row in record["rows"]}
    assert {"2.11", "2.15"} <= found
    assert all(row["difference"] <= operators.TOLERANCE for row in record["rows"])
