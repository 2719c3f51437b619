"""Generated tables: what stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->` in the pages.

To add a table, write a function that takes the page's path and returns Markdown, and name it in `GENERATORS`. The
tables of a study are named in its folder (common/study.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .. import console, stages
from ..errors import UserError
from ..paths import ROOT, display_path
from ..study import find_studies
from .syllabus import syllabus_table
from .tables.decision import cell_decision, pointwise_decision
from .tables.exercise_tables import exercises_table, wrong_answers_table
from .tables.features_table import features_table
from .tables.headline import headline
from .tables.kernels_table import kernels_table
from .tables.ladder import ladder_picture, ladder_table, results_table, stage_table, stages_table
from .tables.published_table import published_table
from .tables.sequences_table import sequences_table
from .tables.times_summary import times_summary

Generator = Callable[[Path], str]
BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end: (?P<end>[\w-]+) -->)", re.DOTALL)


def update_tables(check: bool = False) -> int:
    """Rewrites every generated table; with `check`, changes nothing and returns 1 when one is out of date."""
    outdated = []
    for page in list_pages():
        old = page.read_text()
        new = fill_blocks(old, page)
        if new != old:
            outdated.append(page)
            if not check:
                page.write_text(new)
    for page in outdated:
        name = display_path(page)
        console.say(f"{name} is out of date: python -m common tables" if check else f"{name} rewritten")
    if not outdated:
        console.say("every generated table is up to date")
    return int(check and bool(outdated))


def list_pages() -> list[Path]:
    """The pages that may hold generated tables."""
    return [p for pattern in ("README.md", "stages/*/README.md", "docs/**/*.md") for p in sorted(ROOT.glob(pattern))]


def fill_blocks(text: str, page: Path) -> str:
    """The text of a page with every block written anew. Raises `UserError` for one that nothing can write."""

    def block(found: re.Match) -> str:
        name = found["name"]
        if found["end"] != name:
            raise UserError(f"{display_path(page)}: 'generated: {name}' is closed by 'end: {found['end']}'")
        return f"{found[1]}\n{find_generator(name, page)(page).strip()}\n\n{found[4]}"

    if text.count("<!-- generated:") != len(BLOCK.findall(text)):
        raise UserError(f"{display_path(page)}: a generated block is not closed by '<!-- end: NAME -->'")
    return BLOCK.sub(block, text)


def find_generator(name: str, page: Path) -> Generator:
    """The function that writes the block of that name."""
    if name in GENERATORS:
        return GENERATORS[name]
    if number := re.fullmatch(r"stage-(\d+)", name):
        return partial(stage_table, stages.find_stage(int(number[1])))
    known = ", ".join([*GENERATORS, "stage-N"])
    raise UserError(f"{display_path(page)}: nothing generates {name!r}; known are {known}")


def ignoring_page(table: Callable[[], str]) -> Generator:
    """A generator of a table that is the same on every page."""
    return lambda page: table()


GENERATORS: dict[str, Generator] = {
    "stages": stages_table,
    "ladder": ladder_table,
    "headline": ignoring_page(headline),
    "ladder-chart": ladder_picture,
    "results": results_table,
    "kernels": kernels_table,
    "features": features_table,
    "published": ignoring_page(published_table),
    "sequences": ignoring_page(sequences_table),
    "times": ignoring_page(times_summary),
    "syllabus": ignoring_page(syllabus_table),
    "decision": ignoring_page(cell_decision),
    "pointwise-decision": ignoring_page(pointwise_decision),
    "exercises": exercises_table,
    "wrong-answers": wrong_answers_table,
    **{name: ignoring_page(partial(study.write_table, name)) for study in find_studies() for name in study.tables},
}
