"""Every solution passes inside the sandbox, handed in as a student's, and no line of it is marked for the teacher."""

from __future__ import annotations

import pytest

from common.exercises import every
from common.exercises.exercise import Exercise
from common.exercises.grading import grade, sandbox
from support.exercises.variants import Variant

pytestmark = pytest.mark.needs("bwrap", "g++")


def proof_of(exercise: Exercise) -> pytest.MarkDecorator:
    # The scripts of the sandbox and of the learner's process are not imported.
    uses = ["common.exercises.grading", "common.exercises.runner"]
    files = Variant(exercise, "solution").sources
    return pytest.mark.proof("exercises in the sandbox", part=exercise.id, files=files, uses=uses)


@pytest.mark.parametrize(
    "exercise", [pytest.param(exercise, id=exercise.id, marks=proof_of(exercise)) for exercise in every()]
)
def test_the_solution_passes_in_the_sandbox(exercise):
    mark = grade.check_solution(exercise, sandbox.choose_sandbox())
    assert (mark.points, mark.look_at) == (exercise.points, ())
