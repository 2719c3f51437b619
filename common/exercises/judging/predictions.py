"""The learner's answers to the questions of an exercise of kind `predict`."""

from __future__ import annotations

import configparser
import math

from ..failures import Failure, require
from ..variants.answers import ANSWERS, read_answers
from .folder import Folder


class Predictions(Folder):
    """The answers in a learner's answers.ini."""

    def answers(self) -> dict[str, str]:
        """The learner's answers in answers.ini, by question. Raises `Failure` if one is missing."""
        try:
            found = read_answers(self.text(ANSWERS))
        except configparser.Error as error:
            raise Failure(f"{ANSWERS} cannot be read: {str(error).splitlines()[0]}") from None
        for question in self.exercise.questions:
            if not found.get(question.name.lower()):
                raise Failure(f"{question.name} has no answer yet: write one after its = sign in {ANSWERS}")
        return found

    def number(self, name: str, whole: bool = True) -> int | float:
        """The answer to a question. With `whole=False`, it may have decimals."""
        said = self.answers()[name.lower()]
        text = said.replace(",", "").replace("_", "")
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            number = math.nan
        require(abs(number) < math.inf, f"{name} = {said}: write a {'whole ' if whole else ''}number")
        return number
