"""A check may leave programs in the folder that it runs in; they are not what the student handed in."""

from __future__ import annotations

from common.exercises import find
from common.exercises.checking import Verdict
from common.exercises.grading import grade


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
