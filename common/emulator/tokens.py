"""C++ as tokens, so that the rewriter leaves comments and literals alone and finds the partner of a bracket."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..errors import UserError

TOKEN = re.compile(
    r"""
    (?P<newline>\n)
  | (?P<blank>(?:[ \t\r\f\v]|\\\r?\n)+)
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
      |(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<name>[^\W\d]\w*|\$\w*)
  | (?P<mark_of_many>::|->|<=|>=|==)
  | (?P<mark_of_one>.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPENERS = {"(": ")", "[": "]", "{": "}"}
# Names that a compiler for the device defines and the emulator's does not.
DEVICE_MACROS = re.compile(r"\b(__CUDA_ARCH__|__CUDACC__|__NVCC__)\b")


class Token(NamedTuple):
    """A piece of the source. `directive` numbers the preprocessor line that it belongs to; 0 outside of any."""

    kind: str  # "name", "number", "string" or "mark"
    text: str
    start: int
    directive: int

    @property
    def end(self) -> int:
        """The offset behind the token."""
        return self.start + len(self.text)


class Edit(NamedTuple):
    """Replace what stands from one offset to another."""

    start: int
    end: int
    text: str


@dataclass
class Source:
    """A file's text and tokens, without blanks and comments.

    `partner` maps the index of a bracket to that of its counterpart; `bodies` the number of a `#define` to the index
    at which what it stands for begins; `skipped` holds the indices of tokens that the emulator's compiler never sees.
    """

    path: str
    text: str
    tokens: list[Token] = field(default_factory=list)
    partner: dict[int, int] = field(default_factory=dict)
    bodies: dict[int, int] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lines = [match.end() for match in re.finditer("\n", self.text)]
        self._split()
        self._pair()
        for index, token in enumerate(self.tokens):
            if self.is_(index, "#") and self.is_(index + 1, "define") and token.directive:
                self.bodies[token.directive] = self._body(index + 2)

    def _split(self) -> None:
        directive, count, fresh = 0, 0, True
        for match in TOKEN.finditer(self.text):
            kind, text = match.lastgroup, match.group()
            if kind == "newline":
                directive, fresh = 0, True
            elif kind not in ("blank", "comment"):
                if text == "#" and fresh:
                    count += 1
                    directive = count
                fresh = False
                kind = "mark" if kind.startswith("mark") else kind
                self.tokens.append(Token(kind, text, match.start(), directive))

    def _pair(self) -> None:
        """Pairs brackets: those of a directive among themselves, and each branch of an `#if` from the same start."""
        stack: list[int] = []
        branches: list[tuple[list[int], bool]] = []  # brackets open at the `#if`, and whether the branch is skipped
        inner, inside = [], 0
        for index, token in enumerate(self.tokens):
            if token.directive:
                if token.directive != inside:
                    inner, inside = [], token.directive
                    self._branch(index, stack, branches)
                self._bracket(index, inner)
            else:
                self._bracket(index, stack)
            if any(skipped for _, skipped in branches):
                self.skipped.add(index)

    def _branch(self, index: int, stack: list[int], branches: list[tuple[list[int], bool]]) -> None:
        word = self.tokens[index + 1].text if index + 1 < len(self.tokens) else ""
        if word in ("if", "ifdef", "ifndef"):
            branches.append((list(stack), self._is_skipped(index)))
        elif word in ("else", "elif") and branches:
            stack[:], was_skipped = branches[-1]
            branches[-1] = (list(stack), word == "elif" and not was_skipped and self._is_skipped(index))
        elif word == "endif" and branches:
            branches.pop()

    def _is_skipped(self, index: int) -> bool:
        """Whether the condition at `#` is certainly false; when in doubt it counts as true."""
        condition = self.rest_of_line(index + 1)
        if condition == "0":
            return True
        doubtful = self.is_(index + 1, "ifndef") or re.search(r"\|\||!|<|==", condition)
        return not doubtful and bool(DEVICE_MACROS.search(condition))

    def _bracket(self, index: int, stack: list[int]) -> None:
        if self.is_(index, *OPENERS):
            stack.append(index)
        elif stack and self.is_(index, OPENERS[self.tokens[stack[-1]].text]):
            opener = stack.pop()
            self.partner[opener], self.partner[index] = index, opener

    def _body(self, name: int) -> int:
        """Where a macro's body begins: behind its name, and behind its parameters if `(` touches the name."""
        after = name + 1
        if self.is_(after, "(") and self.tokens[after].start == self.tokens[name].end:
            return self.partner.get(after, after) + 1
        return after

    def is_(self, index: int, *texts: str) -> bool:
        """Whether the token at an index, if there is one, is one of some words or marks."""
        return 0 <= index < len(self.tokens) and self.tokens[index].text in texts

    def is_name(self, index: int) -> bool:
        """Whether the token at an index, if there is one, is a name."""
        return 0 <= index < len(self.tokens) and self.tokens[index].kind == "name"

    def bounds(self, index: int) -> tuple[int, int]:
        """The tokens among which one may look for what belongs to this: all, or the body of its own macro."""
        directive = self.tokens[index].directive
        if not directive:
            return 0, len(self.tokens)
        end = bisect.bisect_left(self.tokens, True, lo=index, key=lambda token: token.directive != directive)
        start = self.bodies.get(directive)
        if start is None:
            start = index
            while start and self.tokens[start - 1].directive == directive:
                start -= 1
        return start, end

    def is_parameter(self, index: int) -> bool:
        """Whether a token in the body of a macro is a parameter of that macro."""
        body = self.bodies.get(self.tokens[index].directive, 0)
        start = self.partner.get(body - 1, body) if self.is_(body - 1, ")") else body
        return start < body <= index and any(self.is_(k, self.tokens[index].text) for k in range(start, body))

    def touches(self, index: int) -> bool:
        """Whether nothing but spaces stands between a token and the next."""
        between = self.text[self.tokens[index].end : self.tokens[index + 1].start]
        return between.strip(" \t") == ""

    def line(self, index: int) -> int:
        """The line of a token, from 1."""
        return bisect.bisect_right(self._lines, self.tokens[index].start) + 1

    def column(self, index: int) -> int:
        """The column of a token, from 1."""
        start = self.tokens[index].start
        return start - self.text.rfind("\n", 0, start)

    def spelling(self, start: int, end: int) -> str:
        """Tokens in one line, with blanks only where the source has some, and no comments."""
        pieces = []
        for index in range(start, end):
            gap = index > start and self.tokens[index - 1].end < self.tokens[index].start
            gap = gap and not self.is_(index, ".", "->")  # a chain of calls over several lines
            pieces.append(" " * gap + self.tokens[index].text)
        return "".join(pieces)

    def quoted(self, text: str, index: int) -> str:
        """A part of the source, beside some token, as a literal. In a macro its parameters may be a part of it."""
        if self.tokens[index].directive:
            return f"EMULATOR_NAME({text})"
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    def rest_of_line(self, index: int) -> str:
        """What follows a token in its line, without a comment."""
        end = self.text.find("\n", self.tokens[index].end)
        rest = self.text[self.tokens[index].end : end if end >= 0 else None]
        return re.split(r"//|/\*", rest)[0].strip()

    def refuse(self, index: int, reason: str) -> UserError:
        """The one line that says what the emulator cannot run, and where it stands."""
        return UserError(f"{self.path}:{self.line(index)}: {reason}")


def read(path: Path, shown_as: str) -> Source:
    """The tokens of a file. Raises `UserError` when it cannot be read as text."""
    try:
        return Source(shown_as, path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{shown_as} is not text in UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {shown_as}: {error.strerror}") from None
