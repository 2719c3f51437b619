"""Holds docs/troubleshooting.md and its tests, in this folder, together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.sandbox import PAGE, sections

TEXTS = [line for line in Path(__file__).with_name("texts.txt").read_text().splitlines() if line[0] != "#"]


def test_every_section_is_tried() -> None:
    tests = Path(__file__).parent.glob("test_*.py")
    tried = {title for test in tests for title in re.findall(r'problem\("(.+?)"\)', test.read_text())}
    assert tried == set(sections())


def test_the_table_leads_to_every_section() -> None:
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in sections()}
    table = PAGE.partition("Two habits")[0]
    assert set(re.findall(r"\]\(#(.+?)\)", table)) == anchors
    assert set(re.findall(r"\]\(#(.+?)\)", PAGE)) == anchors


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_people_search_for_is_in_the_table(text: str) -> None:
    assert text in PAGE.partition("Two habits")[0]
