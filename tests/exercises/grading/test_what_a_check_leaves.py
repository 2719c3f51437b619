"""What a check leaves behind in a sandbox, and whose mistake it is when it fails there."""

from __future__ import annotations

import pytest

from common.exercises import find, variants, workspace
from common.exercises.checking import Verdict, check_folder
from common.exercises.grading import grade, sandbox
from common.exercises.grading.isolation import Isolation
from support.exercises import learner


def test_a_program_that_a_check_has_built_costs_no_points(tmp_path, monkeypatch):
    exercise = find("4/program_of_its_own")
    answer = tmp_path / "student" / exercise.id / "build.py"
    answer.parent.mkdir(parents=True)
    answer.write_text("import sys\nsys.modules\n")

    def check(exercise, folder, box):
        (folder / "built").mkdir()
        (folder / "built" / "total").write_bytes(b"\x7fELF\xff\x00")
        return Verdict(exercise.id, True, "passed", "", 0.1, "host")

    monkeypatch.setattr(grade, "check_isolated", check)
    mark = grade.grade_exercise(tmp_path / "student", exercise, None)
    assert (mark.outcome, mark.message) == ("passed", "")
    assert mark.look_at == ("build.py:2 (sys.modules)",)


@pytest.mark.needs("bwrap")
def test_an_error_in_a_check_counts_as_the_submissions_mistake(tmp_path):
    """In a sandbox, a forged reply may have caused it."""
    exercise = learner.read(tmp_path / "exercises", rule="def check(work):\n    1 / 0\n")
    folder = tmp_path / "work"
    workspace.write_files(variants.starter(exercise) | {"answer.py": ""}, folder)
    for path in (tmp_path, folder):
        path.chmod(0o755)
    with Isolation(sandbox.choose_sandbox("bubblewrap")) as boxes:
        verdict = check_folder(exercise, folder, isolation=boxes)
    assert "not your mistake" not in verdict.message
    assert "the check cannot process what your code returned or printed: ZeroDivisionError" in verdict.message
