"""Every link in the pages and notebooks leads somewhere.

Files, and headings in them, are looked up. Of addresses in the net only the form is checked: tests run without one.
"""

from __future__ import annotations

import itertools
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.paths import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "stages/*/*.md", "stages/*/exercises/*/*.md", "notebooks/*.py")
    for path in ROOT.glob(pattern)
)


def prose(page: Path) -> str:
    """The Markdown of a page or notebook, without code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".py":
        cells = re.split(r"^# %%", text, flags=re.MULTILINE)
        text = "\n".join(re.sub(r"^# ?", "", cell, flags=re.MULTILINE) for cell in cells if "[markdown]" in cell[:20])
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links and pictures."""
    without_code = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", prose(page), flags=re.DOTALL)
    yield from re.findall(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)", without_code)
    yield from re.findall(r"^ *\[[^\]]+\]: +(\S+)$", without_code, re.MULTILINE)
    yield from re.findall(r'<(?:img|a)\b[^>]*\b(?:src|href)="([^"]*)"', without_code)


def anchors(page: Path) -> set[str]:
    """GitHub's names for the headings of a page; of several that are the same all but the first are numbered.

    And those that the page gives itself: `<a id="line-0.1"></a>`.
    """
    seen: Counter[str] = Counter()
    found = set(re.findall(r'<a id="([^"]+)"></a>', prose(page)))
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(page), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        found.add(name if not seen[name] else f"{name}-{seen[name]}")
        seen[name] += 1
    return found


def wrong(page: Path, link: str) -> str | None:
    """What is wrong with a link on a page; None where nothing is."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme:
        good = parts.scheme == "https" and "." in parts.netloc
        return None if good else "no address that begins with https:// and a host"
    target = page if not parts.path else page.parent / urllib.parse.unquote(parts.path)
    if not target.exists():
        return "there is no such file"
    if not target.resolve().is_relative_to(ROOT) and page.resolve().is_relative_to(ROOT):
        return "outside of the repository"
    if parts.fragment and (target.suffix != ".md" or parts.fragment not in anchors(target)):
        return "there is no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path):
    broken = {link: why for link in links(page) if (why := wrong(page, link))}
    assert not broken


def test_pages_of_all_kinds_are_read():
    kinds = Counter(page.parent.name if page.parent != ROOT else "." for page in PAGES if list(links(page)))
    assert all(kinds[folder] for folder in (".", "docs", "results", "notebooks", "stage4_cuda_accessors"))
    assert any(page.name == "hints.md" for page in PAGES)


def test_what_is_a_link_and_what_leads_nowhere(tmp_path: Path):
    page = tmp_path / "page.md"
    other = "# The `load` [call](x.md)!\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n"
    (tmp_path / "other.md").write_text(other)
    good = ["other.md", "other.md#the-load-call", "other.md#twice-1", "#here", "https://a.org/b_(c)"]
    bad = ["gone.md", "other.md#no-heading", "other.md#twice-2", "#there", "http://a.org", "https://here"]
    shown = itertools.chain((f"[a]({link})" for link in good), (f"![b]({link})" for link in bad))
    page.write_text("# Here\n\n" + "\n".join(shown) + "\n\n`x[0](gone.md)` is code\n\n```cpp\nv[0](gone.md);\n```\n")
    assert list(links(page)) == good + bad
    assert [link for link in links(page) if wrong(page, link)] == bad


def test_links_of_a_notebook_stand_in_markdown(tmp_path: Path):
    page = tmp_path / "notebook.py"
    page.write_text("# %% [markdown]\n# See [a](gone.md)\n# [b](too.md).\n\n# %%\n# [c](comment.md)\nx = [1](2)\n")
    assert list(links(page)) == ["gone.md", "too.md"]
