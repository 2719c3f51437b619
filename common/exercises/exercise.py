"""Reads one exercise from its exercise.ini. docs/teaching.md describes the other files of the folder."""

from __future__ import annotations

import configparser
import re
from dataclasses import dataclass
from pathlib import Path

from .. import stages
from ..errors import UserError
from ..stages import Stage

MANIFEST, CHECK_FILE, EQUIVALENT_FILE = "exercise.ini", "check.py", "equivalent.txt"
KINDS = ("write", "file", "predict")
NEEDS = ("cpp", "emulator")


@dataclass(frozen=True)
class Region:
    """Lines of a stage's source that the learner writes, from a line that contains `first` to one with `last`."""

    name: str
    file: str
    after: str  # the search starts at the line that contains this; at the top if empty
    first: str
    last: str
    todo: str  # the text of the comment in the starter
    placeholder: str  # code that keeps the starter compilable


@dataclass(frozen=True)
class Question:
    """A question of an exercise of kind `predict`, with the answer that check.py measures."""

    name: str
    ask: str
    answer: str


@dataclass(frozen=True)
class Exercise:
    """One exercise, as its manifest describes it; `folder` is where its own files are."""

    folder: Path
    check_file: Path  # check.py, or a teacher's replacement for it
    stage: int
    name: str
    order: int
    kind: str
    title: str
    minutes: int
    size: str
    syllabus: tuple[str, ...]
    points: int
    needs: tuple[str, ...]
    seconds: int  # the time limit of the learner's code, without builds
    without: tuple[str, ...]  # files of the stage that are not handed out, because they show the answer
    builds: bool  # whether the starter builds; it does not if the build is the exercise
    regions: tuple[Region, ...]
    questions: tuple[Question, ...]

    @property
    def id(self) -> str:
        """The name that commands use, such as `3/guard`."""
        return f"{self.stage}/{self.name}"

    @property
    def source(self) -> Stage:
        """The stage that it belongs to."""
        return stages.get_stage(self.stage)

    @property
    def task(self) -> str:
        """The README: its first line is the title."""
        return (self.folder / "README.md").read_text(encoding="utf-8")

    @property
    def hints(self) -> list[str]:
        """The hints, from a first question to almost the answer."""
        text = (self.folder / "hints.md").read_text(encoding="utf-8")
        return [hint.strip() for hint in re.split(r"^---\s*$", text, flags=re.MULTILINE)]


def read_exercise(folder: Path, stage: int) -> Exercise:
    """The exercise in a folder. Raises `UserError`, with the exercise's name, if its manifest is invalid."""
    manifest = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), comment_prefixes=(";",), default_section="nothing"
    )
    name = f"{stage}/{folder.name}"
    try:
        manifest.read_string((folder / MANIFEST).read_text(encoding="utf-8"))
        head = manifest["exercise"]
        kind = _one_of(head["kind"], KINDS, "kind")
        regions = [_region(manifest[section]) for section in manifest.sections() if section.startswith("region ")]
        questions = [
            Question(
                section.removeprefix("question ").strip(),
                _text(manifest[section]["ask"]),
                manifest[section]["answer"],
            )
            for section in manifest.sections()
            if section.startswith("question ")
        ]
        if (kind == "write") != bool(regions) or (kind == "predict") != bool(questions):
            raise ValueError(
                "kind `write` needs regions, kind `predict` needs questions, and no other kind may have them"
            )
        return Exercise(
            folder=folder,
            check_file=folder / CHECK_FILE,
            stage=stage,
            name=folder.name,
            order=int(head["order"]),
            kind=kind,
            title=head["title"],
            minutes=int(head["minutes"]),
            size=head["size"],
            syllabus=tuple(head["syllabus"].split()),
            points=int(head.get("points", "1")),
            needs=tuple(_one_of(need, NEEDS, "needs") for need in head.get("needs", "").split()),
            seconds=int(head.get("seconds", "60")),
            without=tuple(head.get("without", "").split()),
            builds=_one_of(head.get("builds", "yes"), ("yes", "no"), "builds") == "yes",
            regions=tuple(regions),
            questions=tuple(questions),
        )
    except KeyError as error:
        raise UserError(f"exercise {name}: {MANIFEST} has no {error.args[0]}") from None
    except (OSError, ValueError, configparser.Error) as error:
        raise UserError(f"exercise {name}: {MANIFEST}: {error}") from None


def _region(section: configparser.SectionProxy) -> Region:
    return Region(
        name=section.name.removeprefix("region ").strip(),
        file=section["file"],
        after=section.get("after", ""),
        first=section["from"],
        last=section["to"],
        todo=_text(section["todo"]),
        placeholder=_text(section.get("placeholder", "")),
    )


def _one_of(value: str, allowed: tuple[str, ...], what: str) -> str:
    if value not in allowed:
        raise ValueError(f"{what} = {value}: expected one of {', '.join(allowed)}")
    return value


def _text(value: str) -> str:
    """A text of several lines. A leading `|`, which protects indentation, # and ;, is removed from each line."""
    return "\n".join(re.sub(r"^\| ?", "", line) for line in value.strip("\n").splitlines())
