"""Splits C++ into tokens, matches brackets and finds macro bodies, so that the rules ignore comments and literals."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ..errors import UserError
from .conditions import is_certain

TOKEN = re.compile(
    r"""
    (?:[ \t\r\f\v] | \\\r?\n | //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z))*  # blanks and comments
    (?: (?P<newline>\n)
      | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
          |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
          |(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
      | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
      | (?P<name>[^\W\d]\w*|\$\w*)
      | (?P<punctuator>::|->|<=|>=|==|.)
      | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)
HEADERS = (".cuh", ".h", ".hpp", ".hxx", ".inl", ".hh", ".inc")
OPENERS = {"(": ")", "[": "]", "{": "}"}


class Token(NamedTuple):
    """A token. `directive` is the number of the preprocessor directive that it belongs to, or 0."""

    kind: str  # "name", "number", "string" (or a character) or "punctuator"
    text: str
    start: int
    directive: int

    @property
    def end(self) -> int:
        """The offset after the token."""
        return self.start + len(self.text)


class Branch(NamedTuple):
    """A branch of an `#if`: the brackets open at the `#if`, and what g++ certainly does."""

    open_brackets: list[int]
    is_skipped: bool
    is_taken: bool  # it, or an earlier branch
    is_uncertain: bool  # whether g++ compiles it depends on macros that are unknown
    maybe_taken: bool  # it, or an earlier branch


@dataclass
class Source:
    """A file's text and its tokens. Positions are indices of tokens, unless they are called offsets.

    `matching` maps each bracket to its counterpart, `macro_bodies` the number of a `#define` to the first token of
    the macro's body. `own_headers` are the names by which the file includes headers of its own program or extension.
    `macros` are those of the command line that are numbers. `skipped` are the tokens in branches of `#if` that g++
    certainly does not compile, and `uncertain` those in branches that it may or may not compile.
    """

    path: str
    text: str
    own_headers: frozenset[str] = frozenset()
    macros: Mapping[str, int] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    matching: dict[int, int] = field(default_factory=dict)
    macro_bodies: dict[int, int] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)
    uncertain: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.positions: dict[str, list[int]] = defaultdict(list)  # of each token's text
        self._split()
        self._match_brackets()
        for index in self.find("define"):
            directive = self.tokens[index].directive
            has_name = self.is_name(index + 1) and self.tokens[index + 1].directive == directive
            if directive and self.is_(index - 1, "#") and has_name:
                self.macro_bodies[directive] = self._macro_body(index + 1)

    def _split(self) -> None:
        directive, directives, is_first = 0, 0, True  # is_first: in its line
        for match in TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind == "newline":
                directive, is_first = 0, True
            elif kind:
                text = match[kind]
                if is_first and text == "#":
                    directives += 1
                    directive = directives
                is_first = False
                self.positions[text].append(len(self.tokens))
                self.tokens.append(Token(kind, text, match.start(kind), directive))

    def _match_brackets(self) -> None:
        """Matches a directive's brackets among themselves, and in each branch of an `#if` from the same start."""
        in_code: list[int] = []  # brackets that are open
        in_directive: list[int] = []
        branches: list[Branch] = []
        last = 0
        for index in self.find("#", *OPENERS, *OPENERS.values()):
            text, directive = self.tokens[index].text, self.tokens[index].directive
            stack = in_directive if directive else in_code
            if text in OPENERS:
                stack.append(index)
            elif text != "#":
                if stack and OPENERS[self.tokens[stack[-1]].text] == text:
                    opener = stack.pop()
                    self.matching[opener], self.matching[index] = index, opener
            elif directive and not (index and self.tokens[index - 1].directive == directive):
                in_directive = []
                self._mark(last, index, branches)
                self._branch(index, in_code, branches)
                last = index
        self._mark(last, len(self.tokens), branches)

    def _mark(self, start: int, end: int, branches: list[Branch]) -> None:
        if any(branch.is_skipped for branch in branches):
            self.skipped.update(range(start, end))
        elif any(branch.is_uncertain for branch in branches):
            self.uncertain.update(range(start, end))

    def _branch(self, index: int, stack: list[int], branches: list[Branch]) -> None:
        """Begins or ends a branch, if the directive at `#` does."""
        if self.is_(index + 1, "if", "ifdef", "ifndef"):
            is_skipped = self._is_certain(index, False)
            is_taken = self._is_certain(index, True) or self._is_include_guard(index)
            branches.append(Branch(list(stack), is_skipped, is_taken, not is_taken, not is_skipped))
        elif self.is_(index + 1, "else", "elif") and branches:
            stack[:], _, was_taken, _, may_be_taken = branches[-1]
            is_elif = self.is_(index + 1, "elif")
            is_skipped = was_taken or (is_elif and self._is_certain(index, False))
            is_true = not is_elif or self._is_certain(index, True)
            is_uncertain = may_be_taken or not is_true
            is_taken = was_taken or (is_elif and is_true)
            branches[-1] = Branch(list(stack), is_skipped, is_taken, is_uncertain, may_be_taken or not is_skipped)
        elif self.is_(index + 1, "endif") and branches:
            branches.pop()

    def _is_certain(self, index: int, value: bool) -> bool:
        """Whether the condition of the directive at `#` certainly has a value."""
        suffix = Path(self.path).suffix
        by_nvcc = True if suffix == ".cu" else None if suffix in HEADERS else False
        known = {name: number for name, number in self.macros.items() if not self._defines(name)}
        return is_certain(self.tokens[index + 1].text, self.rest_of_line(index + 1), value, by_nvcc, known)

    def _defines(self, name: str) -> bool:
        """Whether the file itself defines or removes a macro."""
        return any(self.is_(k - 1, "define", "undef") for k in self.find(name))

    def _is_include_guard(self, index: int) -> bool:
        """Whether the directive at `#` is `#ifndef NAME`, with `#define NAME` after it."""
        name = index + 2
        return (
            self.is_(index + 1, "ifndef") and self.is_(name + 2, "define") and self.is_(name + 3, self.text_of(name))
        )

    def text_of(self, index: int) -> str:
        """The text of a token; empty behind the last."""
        return self.tokens[index].text if index < len(self.tokens) else ""

    def _macro_body(self, name: int) -> int:
        """The first token of a macro's body: behind its name, or its parameters if `(` follows without a blank."""
        after = name + 1
        if self.is_(after, "(") and self.tokens[after].start == self.tokens[name].end:
            return self.after(after)
        return after

    def find(self, *texts: str) -> list[int]:
        """All tokens with one of these texts, in order."""
        if len(texts) == 1:
            return self.positions.get(texts[0], [])
        return sorted(index for text in texts for index in self.positions.get(text, ()))

    def is_(self, index: int, *texts: str) -> bool:
        """Whether there is a token at an index with one of these texts."""
        return 0 <= index < len(self.tokens) and self.tokens[index].text in texts

    def is_name(self, index: int) -> bool:
        """Whether there is a name at an index."""
        return 0 <= index < len(self.tokens) and self.tokens[index].kind == "name"

    def after(self, index: int) -> int:
        """The token after a token, or after the brackets that a token opens."""
        return max(self.matching.get(index, index), index) + 1

    def is_code(self, index: int) -> bool:
        """Whether a token is outside of directives or in the body of a macro."""
        directive = self.tokens[index].directive
        return not directive or index >= self.macro_bodies.get(directive, len(self.tokens))

    def bounds(self, index: int) -> tuple[int, int]:
        """The first token, and the one behind the last, of the macro body that a token is in; else of the file."""
        directive = self.tokens[index].directive
        if not directive:
            return 0, len(self.tokens)
        end = bisect.bisect_left(self.tokens, True, lo=index, key=lambda token: token.directive != directive)
        start = self.macro_bodies.get(directive)
        if start is None:
            start = index
            while start and self.tokens[start - 1].directive == directive:
                start -= 1
        return start, end

    def enclosing(self, index: int) -> Iterator[int]:
        """The opening brackets around a token, from the inside out."""
        before = index - 1
        while before >= 0:
            other = self.matching.get(before, before)
            if other > index:
                yield before
            elif self.matching.get(other) == before:  # if not, a later branch of an `#if` closes it
                before = other
            before -= 1

    def is_macro_parameter(self, index: int) -> bool:
        """Whether a token in the body of a macro is a parameter of that macro."""
        body = self.macro_bodies.get(self.tokens[index].directive, 0)
        start = self.matching.get(body - 1, body) if self.is_(body - 1, ")") else body
        return start < body <= index and any(self.is_(k, self.tokens[index].text) for k in range(start, body))

    def is_adjacent(self, index: int) -> bool:
        """Whether only blanks separate a token from the next."""
        between = self.text[self.tokens[index].end : self.tokens[index + 1].start]
        return between.strip(" \t") == ""

    def line(self, index: int) -> int:
        """The line of a token, from 1."""
        return self.text.count("\n", 0, self.tokens[index].start) + 1

    def column(self, index: int) -> int:
        """The column of a token, from 1."""
        start = self.tokens[index].start
        return start - self.text.rfind("\n", 0, start)

    def spelling(self, start: int, end: int) -> str:
        """Tokens in one line without comments; a method call on the next line has no blank before it."""
        return self.join(range(start, end), without_blank=(".", "->"))

    def join(self, indices: Iterable[int], without_blank: tuple[str, ...] = ()) -> str:
        """Tokens in one line, with a blank between two tokens that the source separates."""
        text, last = "", None
        for index in indices:
            token = self.tokens[index]
            if last is not None and last < token.start and token.text not in without_blank:
                text += " "
            text, last = text + token.text, token.end
        return text

    def literal(self, text: str, index: int) -> str:
        """Source text as a string literal in the place of a token; in a macro, the preprocessor makes the literal."""
        if self.tokens[index].directive:
            return f"EMULATOR_NAME({text})"
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    def rest_of_line(self, index: int) -> str:
        """The rest of the line after a token, without a comment."""
        end = self.text.find("\n", self.tokens[index].end)
        rest = self.text[self.tokens[index].end : end if end >= 0 else None]
        return re.split(r"//|/\*", rest)[0].strip()

    def error(self, index: int, reason: str) -> UserError:
        """The error for a token that the emulator cannot run, with its file and line."""
        return UserError(f"{self.path}:{self.line(index)}: {reason}")


def read(
    path: Path, shown_as: str, own_headers: Iterable[str] = (), macros: Mapping[str, int] = MappingProxyType({})
) -> Source:
    """The tokens of a file. Raises `UserError` if the file cannot be read as text.

    `own_headers` are the names by which it includes headers of its own program or extension, and `macros` those of
    the command line that are numbers.
    """
    try:
        return Source(shown_as, path.read_text(encoding="utf-8"), frozenset(own_headers), macros)
    except UnicodeDecodeError:
        raise UserError(f"{shown_as} is not text in UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {shown_as}: {error.strerror}") from None
