"""The exercises' commands, as a learner meets them: what each says, and that `watch` checks on save."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time

import pytest

from common.console import wrapped
from common.errors import UserError
from common.exercises import commands, every, find, variants, watch, workspace
from common.paths import ROOT
from support.exercises import learner

SOLVED = "def number():\n    return 42\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Two exercises, the first of stage 1, and a folder for their work."""
    learner.write(tmp_path / "exercises", "number", order=-2)
    learner.write(tmp_path / "exercises", "again", order=-1)
    monkeypatch.setenv("EXERCISES", str(tmp_path / "exercises"))
    monkeypatch.setenv("WORK", str(tmp_path / "work"))
    monkeypatch.setattr(commands, "work_option", lambda: "")  # test_commands_name_the_folder is about it
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.05)
    return tmp_path / "work" / "1"


def judged(monkeypatch, passed: bool) -> None:
    """Replaces the judge: these tests are about what is said around it."""
    from common.exercises import checking

    def check(exercise, folder):
        kind, message = ("passed", "") if passed else ("wrong", "the number is 42")
        return checking.Verdict(exercise.id, passed, kind, message, 1.0, "host")

    monkeypatch.setattr(checking, "check_folder", check)


def test_next_says_what_and_where(here, capsys):
    assert commands.show_next() == 0
    said = capsys.readouterr().out
    of_stage = sum(exercise.stage == 1 for exercise in every())
    assert said.startswith(f"Exercise 1/number (1 of {of_stage} in stage 1): 2 minutes, one line\n\n# A number\n")
    assert f"  {here}/number/answer.py:2\n      TODO: return the number." in said
    assert (here / "number" / "answer.py").exists()
    assert "\nWhen done: make check     If stuck: make hint\n" in said
    assert said.endswith("Begin with stage 0: make next EX=0/through_numpy\n")
    workspace.record_check(find("1/number"), passed=True)
    commands.show_next()
    assert capsys.readouterr().out.endswith("\nWhen done: make check     If stuck: make hint\n")


def test_commands_name_the_folder(here, capsys, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("WORK", f"{here.parent} 2")
    assert commands.show_next("3/guard") == 0
    commands.check_work(None)
    commands.show_solution("3/guard")
    said, option = capsys.readouterr().out, f" WORK='{here.parent} 2'"
    assert f"make check{option}     If stuck: make hint{option}\n" in said
    assert f"make check{option} STARTER=1" in said
    assert f"make solution EX=3/guard{option} TAKE=1" in said


def test_check_says_that_files_of_another_exercise_are_newer(here, capsys, monkeypatch):
    judged(monkeypatch, passed=False)
    for name in ("again", "number"):
        commands.show_next(f"1/{name}")
    hint = "Your files of 1/again are newer. To check those: make check EX=1/again\n"
    commands.check_work(None)
    assert "are newer" not in capsys.readouterr().out  # both are as they were handed out
    (here / "again" / "answer.py").write_text(SOLVED)
    commands.check_work(None)
    assert capsys.readouterr().out.endswith(hint)
    commands.check_work("1/number")
    assert "are newer" not in capsys.readouterr().out
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.check_work(None)
    assert "are newer" not in capsys.readouterr().out


def test_an_update_is_announced(here, capsys, tmp_path):
    commands.show_next()
    source = tmp_path / "exercises" / "1" / "number" / "files" / "answer.py"
    source.write_text(learner.ANSWER.replace("return 0", "return 1"))
    capsys.readouterr()
    commands.show_next()
    assert "you had not changed yours, so these were updated: answer.py." in capsys.readouterr().out
    (here / "number" / "answer.py").write_text(SOLVED)
    source.write_text(learner.ANSWER)
    commands.show_next()
    said = capsys.readouterr().out
    assert "you changed yours, so yours were kept: answer.py.\nmake reset installs the new files" in said
    assert (here / "number" / "answer.py").read_text() == SOLVED


def test_check_leads_on(here, capsys, monkeypatch):
    judged(monkeypatch, passed=False)
    assert commands.check_work(None) == commands.NOT_YET
    assert capsys.readouterr().out.startswith("Exercise 1/number (1 of ")  # the task first, of what is new
    (here / "number" / "answer.py").write_text(SOLVED)
    assert commands.check_work(None) == commands.NOT_YET
    said = capsys.readouterr().out
    assert said == ("exercise 1/number: not yet (0.0 s)\nthe number is 42\n\nStuck? make hint (0 of 2 shown)\n")
    (here / "number" / "answer.py").write_text(SOLVED.replace("42", "43"))
    judged(monkeypatch, passed=True)
    assert commands.check_work(None) == 0
    assert capsys.readouterr().out.startswith("exercise 1/number: solved (0.0 s)\nmake next continues with 1/again;")
    assert commands.check_work(None) == commands.NOT_YET
    assert capsys.readouterr().out.startswith("Exercise 1/again (2 of ")


@pytest.mark.parametrize("command", [commands.check_work, commands.show_next, commands.show_hint])
def test_the_exercise_that_was_named_is_meant_from_then_on(here, capsys, monkeypatch, command):
    judged(monkeypatch, passed=True)
    command("1/again")
    capsys.readouterr()
    commands.show_next()
    said = capsys.readouterr().out
    assert said.startswith("Exercise 1/again (2 of ")
    assert "The first exercise that you have not solved yet: make next EX=1/number\n" in said
    commands.show_progress()
    assert capsys.readouterr().out.endswith(" Next: 1/again (make next)\n")
    commands.show_hint(None)
    assert " for 1/again:" in capsys.readouterr().out
    commands.show_solution(None)
    assert capsys.readouterr().out.startswith("Exercise 1/again: your solution (-) and ours (+)")
    (here / "again" / "answer.py").write_text(SOLVED)
    for _ in range(2):  # after it has been solved, too
        assert commands.check_work(None) == 0
        assert capsys.readouterr().out.startswith("exercise 1/again: solved")
    commands.show_next()  # goes on
    assert capsys.readouterr().out.startswith("Exercise 1/number (1 of ")
    assert commands.find_current().id == "1/number"


def test_only_looking_at_a_solution_changes_nothing(here, capsys):
    commands.check_work("1/again")
    commands.show_solution("1/number")
    assert commands.find_current().id == "1/again"
    commands.show_solution("1/number", take=True)
    assert commands.find_current().id == "1/number"


def test_a_remembered_exercise_that_is_gone_is_forgotten(here):
    commands.check_work("1/again")
    (here.parent / ".progress" / "current").write_text("1/of_an_older_version")
    assert commands.find_current().id == "1/number"


def test_the_time_of_a_check_is_the_whole_time(here, capsys, monkeypatch):
    from common.exercises import checking

    def slow(exercise, folder):
        time.sleep(0.3)  # such as an import of torch: nothing that the judge measures
        return checking.Verdict(exercise.id, False, "wrong", "the number is 42", 0.1, "host")

    monkeypatch.setattr(checking, "check_folder", slow)
    commands.check_work("1/number", starter=True)
    took = float(capsys.readouterr().out.partition("1/number: not yet (")[2].partition(" s)")[0])
    assert 0.3 <= took < 10


def test_an_unchanged_starter_is_not_checked(here, capsys, monkeypatch):
    from common.exercises import checking

    monkeypatch.setattr(checking, "check_folder", lambda *_: pytest.fail("it was checked"))
    commands.show_next()
    capsys.readouterr()
    assert commands.check_work(None) == commands.NOT_YET
    assert capsys.readouterr().out == (
        "exercise 1/number: not yet\n"
        f"This is still the starter, so nothing was built or run. Begin here, in {here}/number/:\n"
        "  answer.py:2: TODO: return the number.\n\nStuck? make hint (0 of 2 shown)\n"
    )
    assert workspace.read_state(find("1/number")).tries == 1
    assert commands.check_work("all") == commands.NOT_YET
    assert "0 of 1 exercises that you began are solved." in capsys.readouterr().out


def test_a_starter_is_checked_when_asked_or_changed(here, capsys, monkeypatch):
    commands.show_next()
    judged(monkeypatch, passed=False)
    capsys.readouterr()
    assert commands.check_work(None, starter=True) == commands.NOT_YET
    assert "the number is 42" in capsys.readouterr().out
    for name in ("csrc/more.cpp", "more.py"):
        workspace.write_files({name: ""}, here / "number")
        commands.check_work(None)
        assert "the number is 42" in capsys.readouterr().out
        (here / "number" / name).unlink()
    (here / "number" / "answer.py").unlink()
    commands.check_work(None)
    assert "the number is 42" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["3/guard", "2/repair_the_build"])
def test_a_starter_with_a_mistake_says_how_to_see_it(here, capsys, monkeypatch, name):
    judged(monkeypatch, passed=False)
    commands.check_work(name)
    capsys.readouterr()
    assert commands.check_work(name) == commands.NOT_YET
    said = capsys.readouterr().out
    starter, solution = variants.starter(find(name)), variants.solution(find(name))
    assert all(f"\n  {file}\n" in said for file in solution if solution[file] != starter[file])
    assert "\nTo check the starter anyway: make check STARTER=1\n" in said


@pytest.mark.parametrize("exercise", every(), ids=lambda exercise: exercise.id)
def test_every_unchanged_starter_is_recognised_and_says_where_to_begin(exercise, tmp_path):
    workspace.write_files(variants.starter(exercise), tmp_path / "starter")
    assert variants.is_unchanged(exercise, tmp_path / "starter")
    assert len(commands.where_to_begin(exercise, tmp_path / "starter").splitlines()) > 1
    workspace.write_files(variants.solution(exercise), tmp_path / "solution")
    assert not variants.is_unchanged(exercise, tmp_path / "solution")


def test_an_unchanged_starter_is_answered_without_torch(tmp_path):
    code = "import sys\nfrom common.exercises import commands\n"
    code += "status = commands.check_work('3/guard')\nassert 'torch' not in sys.modules\nsys.exit(status)"
    environment = {**os.environ, "WORK": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (commands.NOT_YET, "")
    assert "exercise 3/guard: not yet\nThis is still the starter" in done.stdout


def test_check_all(here, capsys, monkeypatch):
    with pytest.raises(UserError, match="you have not begun any exercise yet: make next"):
        commands.check_work("all")
    judged(monkeypatch, passed=True)
    commands.show_next()
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.check_work("number")
    assert commands.check_work("all") == 0
    assert "1 of 1 exercises that you began are solved." in capsys.readouterr().out


def test_one_hint_more_each_time(here, capsys):
    said = []
    for _ in range(3):
        commands.show_hint(None)
        said.append(capsys.readouterr().out)
    assert said[0] == "Hint 1 of 2 for 1/number:\nWhich number?\n\n"
    assert said[1].startswith(said[0] + "Hint 2 of 2 for 1/number:\nIt is 42.\n")
    assert said[1].endswith("That is the last hint. make solution EX=1/number shows our solution.\n")
    assert said[2] == said[1]


def test_the_solution_beside_ones_own(here, capsys, monkeypatch):
    commands.show_next()
    (here / "number" / "answer.py").write_text(SOLVED.replace("42", "40 + 2"))
    capsys.readouterr()
    commands.show_solution("number")
    said = capsys.readouterr().out
    first = "Exercise 1/number: your solution (-) and ours (+)\n"
    assert said.startswith(f"{first}--- yours/answer.py\n+++ ours/answer.py\n")
    assert "-    return 40 + 2\n+    return 42" in said
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.show_solution("number")
    assert "The two are identical." in capsys.readouterr().out


def test_the_solution_taken_over(here, capsys):
    mine = here / "number" / "answer.py"
    commands.show_next()
    mine.write_text(SOLVED.replace("42", "40 + 2"))
    capsys.readouterr()
    commands.show_solution("number")
    assert "make solution EX=1/number TAKE=1" in capsys.readouterr().out
    commands.show_solution("number", take=True)
    said = capsys.readouterr().out
    assert said.startswith(f"{here}/number/ now contains our solution.\n")
    kept = said.rpartition("Your earlier files are in ")[2].removesuffix("/.\n")
    assert "40 + 2" in (here / kept / "answer.py").read_text()
    assert mine.read_text() == variants.solution(find("1/number"))["answer.py"]


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
    commands.show_solution(None)
    assert "Exercise 1/number" in capsys.readouterr().out
    for name in ("1/again", "1/number"):
        workspace.record_check(find(name), passed=True)
        time.sleep(1.1)
    commands.show_solution(None)
    assert "Exercise 1/number" in capsys.readouterr().out


def test_reset_says_where_the_old_work_is(here, capsys):
    commands.reset_exercise("number")
    assert capsys.readouterr().out == f"{here}/number/ is reset to the starter.\n"
    (here / "number" / "answer.py").write_text(SOLVED)
    commands.reset_exercise("number")
    kept = capsys.readouterr().out.rpartition("Your earlier files are in ")[2].removesuffix("/.\n")
    assert (here / kept / "answer.py").read_text() == SOLVED


def test_progress_has_a_bar_for_each_stage(here, capsys):
    workspace.record_check(find("1/again"), passed=True)
    workspace.update_state(find("1/number"), hints=2)
    workspace.begin(find("1/number"))
    assert commands.show_progress() == 0
    lines = capsys.readouterr().out.splitlines()
    stage_1 = sum(exercise.stage == 1 for exercise in every())
    first = next(k for k, line in enumerate(lines) if line.startswith("Stage 1"))
    assert lines[first].startswith("Stage 1  █" + "░" * (stage_1 - 1))
    assert f"  1 of {stage_1}, 1 of " in lines[first]
    assert lines[first + 1] == "  · 1/number                     A number (2 min, 2 hints)"
    assert lines[first + 2] == "  ✓ 1/again                      A number (2 min)"
    assert lines[-1] == f"1 of {len(every())} solved (✓); · means begun. Next: 1/number (make next)"
    assert {line[6] for line in lines if line.startswith("Stage")} == {str(one.stage) for one in every()}


def test_the_primer_comes_last_unless_begun(here):
    assert commands.first_unsolved().id == "1/number"
    workspace.record_check(find("0/through_numpy"), passed=True)
    assert commands.first_unsolved().id == "0/repair_the_function"


def test_a_skipped_primer_comes_last(here):
    for exercise in every():
        workspace.record_check(exercise, passed=exercise.stage != 0)
    assert commands.first_unsolved().id == "0/through_numpy"


def test_all_solved(here, capsys):
    for exercise in every():
        workspace.record_check(exercise, passed=True)
    assert commands.show_next() == 0
    assert capsys.readouterr().out.startswith("All exercises are solved.")
    assert commands.show_hint(None) == 0  # of the one that was solved last
    assert capsys.readouterr().out.startswith("Hint 1 of")


def test_an_unknown_exercise(here):
    with pytest.raises(UserError, match="there is no exercise '1/nubmer'; the exercises are 1/number, 1/again"):
        commands.check_work("1/nubmer")


def test_a_build_in_the_folder_is_no_save(here):
    workspace.begin(find("1/number"))
    before = watch.modification_times(here / "number")
    for name in ("build/lib/answer.py", ".answer.py.swp", "answer.so", "out/temp/a.cpp"):
        workspace.write_files({name: ""}, here / "number")
    assert watch.modification_times(here / "number") == before
    workspace.write_files({"csrc/more.cu": ""}, here / "number")
    assert watch.modification_times(here / "number") != before


def test_watch_checks_on_save_and_goes_on(here):
    for exercise in every():
        if exercise.id not in ("1/number", "1/again"):
            workspace.record_check(exercise, passed=True)
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
        until("each save starts a check")
        until("exercise 1/number: not yet")
        until("Stuck?")
        made = here / "number" / "new.txt"  # as many editors save: a new file takes the old one's place
        made.write_text(SOLVED.replace("42", "41"))
        made.replace(here / "number" / "answer.py")
        until("the number is 42")
        until("Stuck?")
        (here / "number" / "answer.py").write_text(SOLVED)
        until("exercise 1/number: solved")
        until("Exercise 1/again")
        until("When done: make check")
        (here / "again" / "answer.py").write_text(SOLVED)
        until("exercise 1/again: solved")
        until("All exercises are solved.")
        assert watching.wait(timeout=30) == 0
    finally:
        watching.kill()
        watching.wait()
        watching.stdout.close()


@pytest.mark.parametrize("answer", [SOLVED.replace("42", "41"), None])
def test_ctrl_c_ends_watch_quietly(here, answer):
    """While torch is imported for a check, and while the starter waits for its first change."""
    folder = workspace.begin(find("1/number"))
    if answer:
        (folder / "answer.py").write_text(answer)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "common", "watch", "1/number"]
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
