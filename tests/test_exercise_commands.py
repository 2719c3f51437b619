"""The exercises' commands, as a learner meets them: what each says, and that `watch` checks on save."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import learner
import pytest

from common.console import wrapped
from common.errors import UserError
from common.exercises import commands, every, find, on_save, place, variants
from common.stages import ROOT

SOLVED = "def number():\n    return 42\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two exercises, the first of all, and a folder for their work."""
    learner.write(tmp_path / "exercises", "number", order=-2, stage=0)
    learner.write(tmp_path / "exercises", "again", order=-1, stage=0)
    monkeypatch.setenv("EXERCISES", str(tmp_path / "exercises"))
    monkeypatch.setenv("WORK", str(tmp_path / "work"))
    monkeypatch.setattr(on_save, "POLL", 0.05)
    return tmp_path / "work" / "0"


def judged(monkeypatch, passed: bool) -> None:
    """Replaces the judge: these tests are about what is said around it."""
    from common.exercises import checking

    def check(exercise, folder):
        kind, message = ("passed", "") if passed else ("wrong", "the number is 42")
        return checking.Verdict(exercise.id, passed, kind, message, 1.0, "host")

    monkeypatch.setattr(checking, "check", check)


def test_next_says_what_and_where(here, capsys):
    assert commands.next_one() == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Exercise 0/number (1 of {len(every())}): 2 minutes, one line\n\n# A number\n")
    assert f"  {here}/number/answer.py:2\n      TODO: return the number." in said
    assert (here / "number" / "answer.py").exists()
    assert "\nThen: make check     Stuck: make hint\n" in said
    assert said.endswith("Stage 0 is optional. To begin with the cell: make check EX=1/count_calls\n")
    place.record(find("0/number"), passed=True)
    commands.next_one()
    assert capsys.readouterr().out.endswith("\nThen: make check     Stuck: make hint\n")


def test_an_update_is_announced(here, capsys, tmp_path):
    commands.next_one()
    source = tmp_path / "exercises" / "0" / "number" / "files" / "answer.py"
    source.write_text(learner.ANSWER.replace("return 0", "return 1"))
    capsys.readouterr()
    commands.next_one()
    assert "you had not changed yours: renewed answer.py." in capsys.readouterr().out
    (here / "number" / "answer.py").write_text(SOLVED)
    source.write_text(learner.ANSWER)
    commands.next_one()
    said = capsys.readouterr().out
    assert "you changed yours, so they are kept: answer.py.\nmake reset gives you the new ones" in said
    assert (here / "number" / "answer.py").read_text() == SOLVED


def test_check_leads_on(here, capsys, monkeypatch):
    judged(monkeypatch, passed=False)
    assert commands.check(None) == 1
    assert capsys.readouterr().out.startswith("Exercise 0/number (1 of ")  # the task first, of what is new
    assert commands.check(None) == 1
    said = capsys.readouterr().out
    assert said == ("exercise 0/number: not yet (1.0 s)\nthe number is 42\n\nStuck? make hint (0 of 2 shown)\n")
    assert commands.check("0/again") == 1
    assert "Stuck? make hint EX=0/again (0 of 2 shown)" in capsys.readouterr().out
    judged(monkeypatch, passed=True)
    assert commands.check(None) == 0
    assert capsys.readouterr().out.startswith("exercise 0/number: solved (1.0 s)\nmake next goes on, with 0/again;")
    assert commands.first_open().id == "0/again"


def test_check_all(here, capsys, monkeypatch):
    with pytest.raises(UserError, match="nothing is begun yet: make next"):
        commands.check("all")
    judged(monkeypatch, passed=True)
    commands.check("number")
    assert commands.check("all") == 0
    assert "1 of 1 that you began are solved." in capsys.readouterr().out


def test_one_hint_more_each_time(here, capsys):
    said = []
    for _ in range(3):
        commands.hint(None)
        said.append(capsys.readouterr().out)
    assert said[0] == "Hint 1 of 2 for 0/number:\nWhich number?\n\n"
    assert said[1].startswith(said[0] + "Hint 2 of 2 for 0/number:\nIt is 42.\n")
    assert said[1].endswith("That is the last one. make solution EX=0/number shows ours.\n")
    assert said[2] == said[1]


def test_the_solution_beside_ones_own(here, capsys, monkeypatch):
    commands.next_one()
    (here / "number" / "answer.py").write_text(SOLVED.replace("42", "40 + 2"))
    capsys.readouterr()
    commands.solution("number")
    said = capsys.readouterr().out
    assert said.startswith("Exercise 0/number: yours (-) and ours (+)\n--- yours/answer.py\n+++ ours/answer.py\n")
    assert "-    return 40 + 2\n+    return 42" in said
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.solution("number")
    assert "They are the same, letter for letter." in capsys.readouterr().out


def test_the_solution_taken_over(here, capsys):
    mine = here / "number" / "answer.py"
    commands.next_one()
    mine.write_text(SOLVED.replace("42", "40 + 2"))
    capsys.readouterr()
    commands.solution("number")
    assert "make solution EX=0/number TAKE=1" in capsys.readouterr().out
    commands.solution("number", take=True)
    said = capsys.readouterr().out
    assert said.startswith(f"{here}/number/ has our solution now.\n")
    kept = said.rpartition("What you had is in ")[2].removesuffix("/.\n")
    assert "40 + 2" in (here / kept / "answer.py").read_text()
    assert mine.read_text() == variants.solution(find("0/number"))["answer.py"]


def test_a_task_fits_the_terminal():
    code = "    make check " + "x" * 100
    text = f"# A title\n\n{'word ' * 40}\nmore\n\n{code}\n\n- {'one ' * 30}\n- two"
    lines = wrapped(text, 60).splitlines()
    assert code in lines
    assert all(len(line) <= 60 for line in lines if line != code)
    assert lines[0] == "# A title"
    assert lines[-1] == "- two"
    assert sum(line.startswith("  one") for line in lines) == 2  # what goes on hangs under its item
    assert " ".join("\n".join(lines).split()) == " ".join(text.split())


def test_the_solution_of_what_was_solved_last(here, capsys):
    commands.solution(None)
    assert "Exercise 0/number" in capsys.readouterr().out
    for name in ("0/again", "0/number"):
        place.record(find(name), passed=True)
        time.sleep(1.1)
    commands.solution(None)
    assert "Exercise 0/number" in capsys.readouterr().out


def test_reset_says_where_the_old_work_is(here, capsys):
    commands.reset("number")
    assert capsys.readouterr().out == f"{here}/number/ is as new.\n"
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.reset("number")
    kept = capsys.readouterr().out.rpartition("What you had is in ")[2].removesuffix("/.\n")
    assert (here / kept / "answer.py").read_text() == SOLVED


def test_progress_has_a_bar_for_each_stage(here, capsys):
    place.record(find("0/again"), passed=True)
    place.update(find("0/number"), hints=2)
    place.begin(find("0/number"))
    assert commands.progress() == 0
    lines = capsys.readouterr().out.splitlines()
    stage_0 = sum(exercise.stage == 0 for exercise in every())
    assert lines[0].startswith("Stage 0  █" + "░" * (stage_0 - 1))
    assert f"  1 of {stage_0}, 1 of " in lines[0]
    assert lines[1] == "  · 0/number                     A number (2 min, 2 hints)"
    assert lines[2] == "  ✓ 0/again                      A number (2 min)"
    assert lines[-1] == f"1 of {len(every())} solved (✓); · is begun. Next: 0/number (make next)"
    assert {line[6] for line in lines if line.startswith("Stage")} == {str(one.stage) for one in every()}


def test_a_primer_that_was_skipped_stays_aside(here):
    place.record(find("1/cell"), passed=True)
    assert commands.first_open().id == "1/count_calls"
    place.record(find("0/again"), passed=True)  # not skipped, after all
    assert commands.first_open().id == "0/number"


def test_a_skipped_primer_comes_last(here):
    for exercise in every():
        place.record(exercise, passed=exercise.stage != 0)
    assert commands.first_open().id == "0/number"


def test_all_solved(here, capsys):
    for exercise in every():
        place.record(exercise, passed=True)
    assert commands.next_one() == 0
    assert capsys.readouterr().out.startswith("All exercises are solved.")
    assert commands.hint(None) == 0  # of the one that was solved last
    assert capsys.readouterr().out.startswith("Hint 1 of")


def test_an_unknown_exercise(here):
    with pytest.raises(UserError, match="there is no exercise '0/nubmer'; there are 0/number, 0/again"):
        commands.check("0/nubmer")


def test_a_build_in_the_folder_is_no_save(here):
    place.begin(find("0/number"))
    before = on_save.stamps(here / "number")
    for name in ("build/lib/answer.py", ".answer.py.swp", "answer.so", "out/temp/a.cpp"):
        place.write({name: ""}, here / "number")
    assert on_save.stamps(here / "number") == before
    place.write({"csrc/more.cu": ""}, here / "number")
    assert on_save.stamps(here / "number") != before


def test_watch_checks_on_save_and_goes_on(here):
    for exercise in every():
        if exercise.id not in ("0/number", "0/again"):
            place.record(exercise, passed=True)
    command = [sys.executable, "-m", "common", "watch"]
    watching = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in watching.stdout:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()

    def until(words: str) -> None:
        said = []
        while not said or words not in said[-1]:
            try:
                said.append(lines.get(timeout=60))
            except queue.Empty:
                raise AssertionError(f"{words!r} was not said, but {''.join(said)}") from None

    try:
        until("every time you save, it is checked")
        until("exercise 0/number: not yet")
        until("Stuck?")
        made = here / "number" / "new.txt"  # as many editors save: a new file takes the old one's place
        made.write_text(SOLVED.replace("42", "41"))
        made.replace(here / "number" / "answer.py")
        until("the number is 42")
        until("Stuck?")
        (here / "number" / "answer.py").write_text(SOLVED)
        until("exercise 0/number: solved")
        until("Exercise 0/again")
        until("Then: make check")
        (here / "again" / "answer.py").write_text(SOLVED)
        until("exercise 0/again: solved")
        until("All exercises are solved.")
        assert watching.wait(timeout=30) == 0
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


def test_ctrl_c_ends_watch_quietly(here):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "common", "watch", "0/number"]
    watching = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=learner.hear_ctrl_c,
    )
    assert watching.stdout.readline().startswith("Watching ")
    time.sleep(0.5)
    watching.send_signal(signal.SIGINT)
    _, complaint = watching.communicate(timeout=60)
    # Python ends itself by the signal where it came while C code was running Python: 130 to a shell, too.
    assert watching.returncode in (130, -signal.SIGINT)
    assert complaint == "interrupted\n"
