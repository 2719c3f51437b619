"""Holds docs/troubleshooting.md and its tests, in this folder, together."""

from __future__ import annotations

import re
from pathlib import Path

from support.sandbox import PAGE, sections


def test_every_section_is_tried() -> None:
    tests = Path(__file__).parent.glob("test_*.py")
    tried = {title for test in tests for title in re.findall(r'problem\("(.+?)"\)', test.read_text())}
    assert tried == set(sections())


def test_the_table_leads_to_every_section() -> None:
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in sections()}
    table = PAGE.partition("Two habits")[0]
    assert set(re.findall(r"\]\(#(.+?)\)", table)) == anchors
    assert set(re.findall(r"\]\(#(.+?)\)", PAGE)) == anchors
