"""README.md: what a visitor sees first is true, and short."""

from __future__ import annotations

import re

from common.paths import ROOT

PAGE = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short():
    by_hand = re.sub(r"<!-- generated.*?<!-- end[^>]*>", "", PAGE, flags=re.DOTALL)
    assert len(by_hand.splitlines()) <= 120


def test_its_table_of_results_has_at_most_eight_rows_and_seven_columns():
    table = re.search(r"<!-- generated: ladder -->.*?(\|.*\|)\n\n<!-- end", PAGE, re.DOTALL)[1].splitlines()
    assert len(table) - 2 <= 8
    assert {line.count("|") - 1 for line in table} == {7}


def test_its_kernel_is_the_one_that_start_here_breaks():
    kernel = re.search(r"```cuda\n(.*?)```", PAGE, re.DOTALL)[1]
    source = (ROOT / "notebooks" / "start_here.py").read_text(encoding="utf-8")
    assert kernel.replace("i <= n", "i < n") in source
    assert 'KERNEL.replace("if (i < n)", "if (i <= n)")' in source
