"""Keys, and that each file of a stage's code is part of every key that depends on the stage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from common import stages
from common.build import library
from common.check import earlier
from common.key import Key
from common.results import sources
from common.stages import Stage, code_of

FILES = {"b.py": "b", "csrc/a.cpp": "a"}


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_equal_parts_make_equal_keys(folder, tmp_path_factory):
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("copy"), dirs_exist_ok=True)
    paths = [[place / name for name in names] for place, names in ((folder, FILES), (copy, reversed(FILES)))]
    keys = [Key("1").add_files(paths[0], folder).text, Key("1").add_files(paths[1], copy).text]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 20


def test_what_differs_makes_another_key(folder):
    paths = [folder / name for name in FILES]
    keys = [
        Key(),
        Key(""),
        Key("ab", "c"),
        Key("a", "bc"),
        Key("abc"),
        Key().add_variables(["A", "B"], {"A": "1"}),
        Key().add_variables(["A", "B"], {"B": "1"}),
        Key().add_variables(["A"], {"A": ""}),
        Key().add_files(paths, folder),
        Key().add_files(paths[:1], folder),
        Key().add_files(paths, folder.parent),
        Key().add_files(paths, folder, lambda path: "same"),
    ]
    (folder / "b.py").write_text("c")
    keys.append(Key().add_files(paths, folder))
    texts = [key.text for key in keys]
    assert len(set(texts)) == len(texts)


def test_the_variables_are_those_of_now(monkeypatch):
    monkeypatch.setenv("A", "1")
    one = Key().add_variables(["A"]).text
    monkeypatch.setenv("A", "2")
    assert Key().add_variables(["A"]).text != one == Key().add_variables(["A"], {"A": "1"}).text


@pytest.fixture(params=[stage.number for stage in stages.STAGES])
def copied(request, tmp_path, monkeypatch) -> Stage:
    """A stage whose folder may be changed."""
    stage = stages.find_stage(request.param)
    folder = tmp_path / stage.folder_name
    shutil.copytree(stage.folder, folder, ignore=shutil.ignore_patterns("exercises", "__pycache__"))
    monkeypatch.setattr(Stage, "folder", folder)
    monkeypatch.setattr(earlier, "ROOT", tmp_path)
    monkeypatch.setattr(earlier, "PACKAGES", ())
    return stage


def test_a_change_of_any_file_makes_all_that_depends_on_it_stale(copied):
    """Records, checks, and for setup.py and csrc/ the build."""
    is_built = (copied.folder / "setup.py").exists()
    for path in copied.sources:
        of_build = is_built and (path.name == "setup.py" or "csrc" in path.parts)
        before = keys_of(copied, of_build)
        path.write_text(path.read_text() + ("\nMORE = 1\n" if path.suffix == ".py" else "\nint more;\n"))
        assert not set(before) & set(keys_of(copied, of_build)), path


def keys_of(stage: Stage, of_build: bool) -> list[str]:
    """The keys of the stage's records and checks, and of its build."""
    builds = [library.folder_key(stage.folder, "host")] if of_build else []
    return [sources.hash_stage(stage), earlier.key_of(stage), *builds]


def test_the_code_is_all_that_python_and_the_compilers_read():
    seven = {path.name for path in stages.find_stage(7).sources}
    assert {"graphs.py", "sequence.py", "modules.py", "setup.py", "cells.h", "double_lltm.cu"} <= seven
    assert stages.find_stage(8).folder / "CMakeLists.txt" in code_of(stages.find_stage(8).folder)
    for stage in stages.STAGES:
        assert not {path.suffix for path in stage.sources} & {".md", ".ini", ".pyc"}
