"""No C++ file of the project includes itself, neither directly nor through others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.paths import ROOT

SUFFIXES = (".h", ".cuh", ".cpp", ".cu")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
# Included by name alone, like the headers of CUDA and torch that they replace.
EMULATED = ROOT / "common" / "emulator" / "runtime" / "include"
FOLDERS = [ROOT / "common", *sorted(ROOT.glob("stages/*/csrc"))]


def included_files(path: Path, search: tuple[Path, ...]) -> list[Path]:
    """The files that a file includes, from its own folder or else from those in `search`; others are left out."""
    found = []
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        places = [(folder / name).resolve() for folder in (path.parent, *search)]
        found += [place for place in places if place.is_file()][:1]
    return found


def find_cycle(graph: dict[Path, list[Path]]) -> list[Path]:
    """The files of one cycle, with the first file again at the end; empty if there is no cycle."""
    finished: set[Path] = set()

    def visit(path: Path, way: list[Path]) -> list[Path]:
        if path in way:
            return [*way[way.index(path) :], path]
        if path in finished:
            return []
        for other in graph.get(path, []):
            if cycle := visit(other, [*way, path]):
                return cycle
        finished.add(path)
        return []

    return next((cycle for path in graph if (cycle := visit(path, []))), [])


def graph_of(folder: Path, *search: Path) -> dict[Path, list[Path]]:
    """For each C++ file in a folder, the files that it includes."""
    paths = sorted(path.resolve() for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {path: included_files(path, search) for path in paths}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_file_includes_itself(folder):
    graph = graph_of(folder, EMULATED)
    assert graph
    assert [str(path.relative_to(ROOT)) for path in find_cycle(graph)] == []


def test_a_cycle_is_found(tmp_path):
    for name, other in (("a.h", "b.h"), ("b.h", "parts/c.h"), ("parts/c.h", "../a.h"), ("d.cpp", "a.h")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#pragma once\n#include <vector>\n#include "{other}"\n')
    cycle = find_cycle(graph_of(tmp_path))
    assert [path.name for path in cycle] == ["a.h", "b.h", "c.h", "a.h"]
    (tmp_path / "parts" / "c.h").write_text('#include "../missing.h"\n')
    assert find_cycle(graph_of(tmp_path)) == []
