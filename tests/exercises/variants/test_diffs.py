"""Diffs of wrong answers and broken starters: what they change, and what is refused."""

from __future__ import annotations

import pytest

from common.exercises.variants.diffs import apply_diff, make_diff

OLD = "one\ntwo\n\nthree\ntwo\nfour\n"


@pytest.mark.parametrize(
    "new",
    [
        "one\nTWO\n\nthree\ntwo\nfour\n",  # the first of two equal lines
        "one\ntwo\n\nthree\ntwo\nand\nfour\n",
        "two\n\nthree\ntwo\n",
        "none\none\ntwo\n\nthree\ntwo\nfour\nfive\n",
        "one\ntwo\nthree\ntwo\nfour\n",
    ],
)
def test_a_diff_gives_the_new_text(new):
    diff = make_diff(OLD, new)
    assert diff != new
    assert apply_diff(OLD, diff) == new


def test_a_hunk_is_read_as_written():
    assert apply_diff(OLD, " three\n-two\n+2\n@@\n-one\n") == "two\n\nthree\n2\nfour\n"
    assert apply_diff(OLD, " two\n\n-three\n+3\n") == "one\ntwo\n\n3\ntwo\nfour\n"  # an editor took the space off


@pytest.mark.parametrize(
    ("diff", "says"),
    [
        ("-two\n+2\n", "2 times there: 'two'"),
        ("-tw\n+2\n", "not found: 'tw'"),
        ("+five\n", "not found: ''"),
        (" one\n two\n", "changes nothing: 'one"),
        ("", "not found"),
    ],
)
def test_what_fits_nowhere_or_twice_is_refused(diff, says):
    with pytest.raises(ValueError, match=says):
        apply_diff(OLD, diff)
