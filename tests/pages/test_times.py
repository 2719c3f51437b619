"""The times in the README are the sums of what notebooks and exercises state."""

from __future__ import annotations

import pytest

from common.pages.notebooks import notebook_sources
from common.pages.tables import times_summary


def test_every_notebook_states_its_minutes():
    stated = {source.stem: times_summary.reading_minutes(source.stem) for source in notebook_sources()}
    assert [name for name, minutes in stated.items() if minutes == 10] == ["compare", "start_here"]
    assert stated["03c_threads_together"] == 75
    assert stated["01_python"] == 35


def test_the_core_path_takes_ten_hours():
    assert "A core path of 10 hours: the notebooks `01`, `02`, `03`," in times_summary.times_summary()


def test_a_time_in_other_words_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(times_summary, "NOTEBOOKS", tmp_path)
    (tmp_path / "x.py").write_text("# The notebook takes about a day.\n")
    with pytest.raises(KeyError, match="a day"):
        times_summary.reading_minutes("x")
