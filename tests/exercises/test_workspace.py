"""A learner's work is never lost: updates, interrupted runs, two terminals, broken files, reset, WORK=dir."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys

import pytest

from common.errors import UserError
from common.exercises import workspace
from common.paths import ROOT
from support.exercises import learner

MINE = "def number():\n    return 40 + 2  # mine\n"


@pytest.fixture
def exercise(tmp_path, monkeypatch):
    monkeypatch.setenv("WORK", str(tmp_path / "work"))
    return learner.read(tmp_path / "exercises")


def updated(exercise, answer: str = learner.ANSWER.replace("return 0", "return 1"), **others: str):
    """The exercise after an update of the workbook."""
    workspace.write_files(
        {"files/answer.py": answer, **{f"files/{name}": text for name, text in others.items()}}, exercise.folder
    )
    return exercise


def test_begin_never_overwrites(exercise):
    folder = workspace.begin(exercise)
    (folder / "answer.py").write_text(MINE)
    (folder / "notes.txt").write_text("my notes")
    assert workspace.begin(exercise) == folder
    assert (folder / "answer.py").read_text() == MINE
    assert (folder / "notes.txt").read_text() == "my notes"


def test_an_update_renews_what_was_not_touched(exercise):
    folder = workspace.begin(exercise)
    assert workspace.update_folder(exercise) == workspace.Update()
    updated(exercise)
    assert workspace.update_folder(exercise) == workspace.Update(updated=("answer.py",))
    assert "return 1" in (folder / "answer.py").read_text()
    assert workspace.update_folder(exercise) == workspace.Update()
    updated(exercise, learner.ANSWER)  # and once more
    assert workspace.update_folder(exercise).updated == ("answer.py",)


def test_an_update_keeps_what_was_touched_and_says_so_once(exercise):
    updated(exercise, learner.ANSWER, **{"other.py": "first = 1\n"})
    folder = workspace.begin(exercise)
    (folder / "answer.py").write_text(MINE)
    updated(exercise, **{"other.py": "second = 2\n"})
    assert workspace.update_folder(exercise) == workspace.Update(updated=("other.py",), conflicts=("answer.py",))
    assert (folder / "answer.py").read_text() == MINE
    assert (folder / "other.py").read_text() == "second = 2\n"
    assert workspace.update_folder(exercise) == workspace.Update()
    updated(exercise, learner.ANSWER.replace("return 0", "return 2"))
    assert workspace.update_folder(exercise).conflicts == ("answer.py",)
    assert (folder / "answer.py").read_text() == MINE


def test_an_update_adds_what_is_new_and_brings_back_nothing(exercise):
    updated(exercise, learner.ANSWER, **{"other.py": "first = 1\n"})
    folder = workspace.begin(exercise)
    (folder / "other.py").unlink()  # by the learner
    (folder / "third.py").write_text("mine = 3\n")  # a name that the workbook takes later
    updated(exercise, learner.ANSWER, **{"other.py": "x = 2\n", "new.py": "x = 1\n", "third.py": "x = 3\n"})
    assert workspace.update_folder(exercise) == workspace.Update(
        updated=("new.py",), conflicts=("other.py", "third.py")
    )
    assert not (folder / "other.py").exists()
    assert (folder / "third.py").read_text() == "mine = 3\n"


def test_nothing_is_renewed_when_nobody_knows_what_was_handed_out(exercise):
    folder = workspace.begin(exercise)
    before = (folder / "answer.py").read_text()
    next((workspace.root() / ".progress").glob("*.json")).unlink()
    updated(exercise)
    assert workspace.update_folder(exercise) == workspace.Update()
    assert (folder / "answer.py").read_text() == before


def test_reset_keeps_the_old_work(exercise):
    folder = workspace.begin(exercise)
    texts = [MINE, MINE + "# second\n", MINE + "# third\n"]
    kept = []
    for text in texts:
        (folder / "answer.py").write_text(text)
        kept.append(workspace.reset(exercise))
        assert "return 0" in (folder / "answer.py").read_text()
    assert [(one / "answer.py").read_text() for one in kept] == texts
    assert all(one.parent == workspace.root() / workspace.BACKUPS for one in kept)


def test_reset_begins_what_was_not_begun(exercise):
    assert workspace.reset(exercise) is None
    assert (workspace.folder_of(exercise) / "answer.py").exists()


def test_reset_forgets_hints_but_not_that_it_was_solved(exercise):
    workspace.record_check(exercise, passed=True)
    workspace.update_state(exercise, hints=2)
    workspace.reset(exercise)
    known = workspace.read_state(exercise)
    assert known.hints == 0
    assert known.passed
    assert known.tries == 1


@pytest.mark.parametrize("at", ["write_files", "_write_state"])
def test_an_interrupted_begin_leaves_nothing_half_done(exercise, monkeypatch, at):
    done = getattr(workspace, at)

    def interrupted(*arguments: object, **keywords: object) -> None:
        done(*arguments, **keywords)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(workspace, at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            workspace.begin(exercise)
    assert not workspace.folder_of(exercise).exists()
    folder = workspace.begin(exercise)
    assert [path.name for path in folder.iterdir()] == ["answer.py"]
    assert [path.name for path in folder.parent.iterdir()] == ["number"]


def test_an_interrupted_reset_keeps_the_old_work(exercise, monkeypatch):
    (workspace.begin(exercise) / "answer.py").write_text(MINE)
    with monkeypatch.context() as context:
        context.setattr(workspace, "begin", lambda exercise: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            workspace.reset(exercise)
    kept = list((workspace.root() / workspace.BACKUPS).glob("*/answer.py"))
    assert [path.read_text() for path in kept] == [MINE]
    assert (workspace.begin(exercise) / "answer.py").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "17", '{"hints": "many"}', '{"starter": 3}', "\udcff\udcfe"])
def test_a_broken_state_is_kept_aside_and_begun_anew(exercise, text):
    folder = workspace.begin(exercise)
    (folder / "answer.py").write_text(MINE)
    path = next((workspace.root() / ".progress").glob("*.json"))
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert workspace.read_state(exercise) == workspace.State()
    assert path.with_suffix(".broken").read_bytes() == text.encode(errors="surrogateescape")
    assert workspace.record_check(exercise, passed=True).passed
    assert workspace.read_state(exercise).tries == 1
    assert (folder / "answer.py").read_text() == MINE


def test_a_state_of_a_newer_workbook_is_read(exercise):
    workspace.update_state(exercise, hints=1)
    path = next((workspace.root() / ".progress").glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "stars": 5}))
    assert workspace.read_state(exercise).hints == 1


def many(folder: str, times: int) -> None:
    one = learner.exercise.read_exercise(learner.Path(folder), 1)
    for _ in range(times):
        workspace.begin(one)
        workspace.record_check(one, passed=False)
        workspace.reset(one)


def test_two_terminals_at_once(exercise):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        pool.starmap(many, [(str(exercise.folder), 5)] * 4)
    assert workspace.read_state(exercise).tries == 20
    assert (workspace.folder_of(exercise) / "answer.py").exists()
    kept = list((workspace.root() / workspace.BACKUPS).iterdir())
    assert 5 <= len(kept) <= 20  # one that another has just put aside cannot be put aside again
    assert all((path / "answer.py").exists() for path in kept)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(exercise):
    workspace.root().parent.chmod(0o500)
    with pytest.raises(UserError, match="WORK=dir sets another folder"):
        workspace.begin(exercise)


def test_a_file_where_the_folder_should_be(exercise):
    workspace.root().write_text("")
    with pytest.raises(UserError, match=r"cannot write in .*work/: .*WORK=dir sets another folder"):
        workspace.begin(exercise)


def test_work_names_another_folder(tmp_path):
    environment = {**os.environ, "WORK": str(tmp_path / "mine")}
    before = (ROOT / "work").exists()
    command = [sys.executable, "-m", "common", "hint"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.startswith("Hint 1 of ")
    assert list((tmp_path / "mine" / ".progress").glob("*.json"))
    assert (ROOT / "work").exists() == before
