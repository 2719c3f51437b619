"""No C++ file of the project includes itself, and folders of the runtime include only what is below them."""

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


RUNTIME = ROOT / "common" / "emulator" / "runtime" / "src"
# From the bottom up; those of one row do not include each other.
LAYERS = (
    ("state",),
    ("report",),
    ("memory",),
    ("scheduler",),
    ("synchronisation",),
    ("ordering",),
    ("races",),
    ("counts",),
    ("accesses",),
    ("device", "tensors"),
    ("api",),
    ("textures", "launch"),
)


def wrong_includes(root: Path, layers: tuple[tuple[str, ...], ...]) -> list[str]:
    """The includes between folders of `root` that do not go down, as "a.cpp includes b.h"."""
    row = {folder: number for number, folders in enumerate(layers) for folder in folders}
    pairs = [
        (path.relative_to(root), other.relative_to(root))
        for path, others in graph_of(root).items()
        for other in others
        if other.is_relative_to(root)
    ]
    return [
        f"{one} includes {other}"
        for one, other in pairs
        if one.parts[0] != other.parts[0] and row[other.parts[0]] >= row[one.parts[0]]
    ]


def test_folders_of_the_runtime_include_only_what_is_below_them():
    assert {path.name for path in RUNTIME.iterdir()} == {folder for layer in LAYERS for folder in layer}
    assert wrong_includes(RUNTIME, LAYERS) == []


def test_an_include_that_does_not_go_down_is_found(tmp_path):
    files = {"low/a.h": "", "low/b.cpp": "../high/c.h", "high/c.h": "../low/a.h", "other/d.cpp": "../high/c.h"}
    for name, included in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#include "{included}"\n' if included else "")
    found = wrong_includes(tmp_path, (("low",), ("high", "other")))
    assert found == ["low/b.cpp includes high/c.h", "other/d.cpp includes high/c.h"]
