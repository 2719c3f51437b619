"""docs/development.md: its paths exist, its commands are those of make, and its diagram shows the enforced layers."""

from __future__ import annotations

import re

import pytest

from common.commands.table import COMMANDS
from common.paths import ROOT

PAGE = (ROOT / "docs" / "development.md").read_text()


def test_every_path_exists():
    paths = re.findall(r"`((?:common|stages|tests|docs)/[\w./]*|Makefile|pyproject\.toml|\.ci/run)`", PAGE)
    missing = [path for path in paths if not re.search("stageN|NAME|PACKAGE", path) and not (ROOT / path).exists()]
    assert len(paths) > 10
    assert missing == []


def test_every_command_exists():
    named = {name for found in re.findall(r"`make ([a-z -]+)", PAGE) for name in found.split()}
    assert {"lint", "test", "prove"} <= named <= set(COMMANDS)


def test_it_fits_two_screens():
    assert len(PAGE.splitlines()) <= 100


@pytest.mark.needs("matplotlib")
def test_the_diagram_shows_the_layers_that_lint_enforces(tmp_path):
    from common.figures.diagrams import cell_diagram, packages_diagram

    names = [name for layer in packages_diagram.layers() for name in layer]
    assert set(names) == set(packages_diagram.HOLDS)
    assert set(packages_diagram.ROUTE) <= set(names)

    def words(path):
        return re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))

    drawn = words(packages_diagram.write_diagram(tmp_path))
    assert drawn == words(cell_diagram.PICTURES / "packages.svg"), (
        "run python -m common.figures.diagrams.packages_diagram"
    )
    assert "pictures/packages.svg" in PAGE


def test_no_folder_of_modules_is_too_long_to_read():
    """Headers and programs with mistakes are collections; the folders of modules should read like contents."""
    collections = {"include", "programs"}
    sizes: dict[str, set[str]] = {}
    for path in (ROOT / "common").rglob("*"):
        folder = path.relative_to(ROOT).parent
        if path.suffix in {".py", ".cpp", ".h", ".cu", ".cuh"} and not collections & set(folder.parts):
            sizes.setdefault(str(folder), set()).add(path.stem)
    assert {folder: len(names) for folder, names in sizes.items() if len(names - {"__init__"}) > 12} == {}
