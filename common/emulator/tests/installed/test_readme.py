"""The README's first example is a real one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "README.md").read_text()


def block(language: str) -> str:
    """The first block of code in a language."""
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_report_is_what_is_printed(tmp_path, cuemu):
    (tmp_path / "fill.cu").write_text(block("cpp"))
    done = cuemu("run", "fill.cu")
    assert (done.returncode, done.stdout, done.stderr) == (66, "", block("text"))


def test_the_python_of_the_readme_compiles():
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        compile(code, "README.md", "exec")
