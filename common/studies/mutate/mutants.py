"""The mutants of an exercise: its solution with one small change to the code that the learner writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...exercises import variants
from ...exercises.exercise import Exercise
from ...exercises.variants.answers import ANSWERS, format_answers
from ...exercises.variants.diffs import make_diff
from .cpp_edits import cpp_edits
from .edits import Edit, other_number
from .python_edits import python_edits

EDITS_OF: dict[str, Callable[[str], list[Edit]]] = {
    ".py": python_edits, ".cpp": cpp_edits, ".cu": cpp_edits, ".h": cpp_edits, ".cuh": cpp_edits
}  # fmt: skip


class Mutant(NamedTuple):
    """One mutant: a file of the solution with a change, and the change as a diff, which identifies it."""

    file: str
    line: int  # from 1
    text: str
    diff: str

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the mutant as long as the lines that it changes stay the same and in the same place."""
        return self.file, self.diff.strip("\n") + "\n"  # empty lines around it are not kept in equivalent.txt


def find_mutants(exercise: Exercise) -> list[Mutant]:
    """All mutants of an exercise, by file and line."""
    if exercise.kind == "predict":
        return other_answers(exercise)
    found = []
    for file, numbers in sorted(variants.learner_lines(exercise).items()):
        text = variants.solution(exercise)[file]
        edits_of = EDITS_OF.get(Path(file).suffix)
        changed = {text}
        for edit in sorted(edits_of(text)) if edits_of else []:
            first, last = (text.count("\n", 0, offset) for offset in (edit.start, edit.end))
            mutated = edit.apply(text)
            if numbers.issuperset(range(first, last + 1)) and mutated not in changed:
                changed.add(mutated)
                found.append(Mutant(file, first + 1, mutated, make_diff(text, mutated)))
    return found


def other_answers(exercise: Exercise) -> list[Mutant]:
    """A wrong answer to each question: another number, or the right answer to another question."""
    right = {question.name: question.answer for question in exercise.questions}
    ours, found = format_answers(exercise.questions, right), []
    for name, answer in right.items():
        others = sorted({other for other in right.values() if other != answer and not other_number(other)})
        for other in [number] if (number := other_number(answer)) else others:
            text = format_answers(exercise.questions, {**right, name: other})
            line = next(k for k, said in enumerate(text.splitlines(), 1) if said.startswith(f"{name} = "))
            found.append(Mutant(ANSWERS, line, text, make_diff(ours, text)))
    return found
