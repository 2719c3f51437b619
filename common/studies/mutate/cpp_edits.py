"""Small changes to C++ and CUDA, found in its tokens: operators, bounds, indices, guards, casts, streams, statements.

Binary operators are told from pointers and templates by the blanks around them, which clang-format puts there.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ...emulator import Source
from .edits import OTHER_NAMES, Edit, other_number, swap

OTHER_OPERATORS = {
    "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "+=": ["-=", "="], "-=": ["+=", "="],
    "*=": ["/=", "="], "/=": ["*=", "="], "&": ["|"], "|": ["&"],
}  # fmt: skip
PRECEDENCE = {
    name: level
    for level, names in enumerate(
        [
            "= += -= *= /= %= |= &= <<= >>= ? :",
            "||",
            "&&",
            "|",
            "^",
            "&",
            "== !=",
            "< <= > >=",
            "<< >>",
            "+ -",
            "* / %",
        ]
    )
    for name in names.split()
}
DROPPED = ("+", "-", "*", "/", "%", "&&", "||")  # whose right operand may be left out
COMMUTATIVE = ("+", "*", "&&", "||")  # whose left operand may be left out, too
NARROWER = {"int64_t": "int", "size_t": "int", "double": "float"}
ARITHMETIC = (*NARROWER, "int", "float", "unsigned", "scalar_t")
INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim", "grid", "block")
UNNEEDED_METHODS = ("contiguous", "clone", "detach", "t")
SYMMETRIC = ("min", "max", "fmin", "fmax", "fminf", "fmaxf")  # functions of two arguments in any order
CONTROL = ("if", "for", "while", "switch", "catch", "constexpr", "sizeof", "alignof", "decltype", "alignas")
NOT_DELETED = (
    *CONTROL, "else", "do", "return", "using", "template", "typedef", "static_assert", "struct", "class", "case",
    "public", "default", "namespace", "extern",
)  # fmt: skip


def cpp_edits(text: str) -> list[Edit]:
    """Every change, by place."""
    return sorted(EditCollector(Source("a source", text)).edits(), key=lambda edit: (edit.start, edit.end))


class EditCollector:
    """The changes to a text, by positions of its tokens."""

    def __init__(self, source: Source) -> None:
        self.source, self.text, self.matching = source, source.text, source.matching
        self.tokens = source.tokens
        self.binary = dict(self._binary_operators())  # from the position of its first token

    def edits(self) -> Iterator[Edit]:
        """The changes, rule by rule. Directives of the preprocessor are left alone."""
        for k, token in enumerate(self.tokens):
            if token.directive:
                continue
            if k in self.binary:
                yield from self._operator(k)
            if token.kind == "number" and (new := other_number(token.text)):
                yield self._replaced(k, k, new)
            if token.kind == "name":
                yield from self._name(k)
            if token.text == "(":
                yield from self._brackets(k)
            if token.text in ("-", "!") and k not in self.binary and self._is_unary(k):
                yield self._replaced(k, k, "")
            if token.text == "?":
                yield from self._ternary(k)
            if self._text(k, 3) == "<<<":
                yield from self._launch(k)
            if token.text in ("{", "}", ";", ")"):
                yield from self._statement(k + 1)

    def _text(self, k: int, count: int = 1) -> str:
        """Tokens that follow each other without a blank."""
        return self.text[self.tokens[k].start : self.tokens[min(k + count, len(self.tokens)) - 1].end]

    def _is(self, k: int, *texts: str) -> bool:
        return 0 <= k < len(self.tokens) and self.tokens[k].text in texts

    def _replaced(self, first: int, last: int, new: str) -> Edit:
        """Tokens from one position to another, both included, in another form."""
        return Edit(self.tokens[first].start, self.tokens[last].end, new)

    def _binary_operators(self) -> Iterator[tuple[int, str]]:
        """Each operator with blanks on both sides, and `?` and `:`."""
        k = 0
        while k < len(self.tokens):
            last = k
            while (
                last + 1 < len(self.tokens) and self._touch(last) and self._is_sign(last) and self._is_sign(last + 1)
            ):
                last += 1
            operator = self._text(k, last - k + 1)
            apart = k > 0 and not self._touch(k - 1) and not self._touch(last)
            if operator in PRECEDENCE and apart:
                yield k, operator
            k = last + 1

    def _touch(self, k: int) -> bool:
        """Whether nothing stands between a token and the next."""
        return k + 1 < len(self.tokens) and self.tokens[k].end == self.tokens[k + 1].start

    def _is_sign(self, k: int) -> bool:
        return all(sign in "+-*/%<>=!&|^" for sign in self.tokens[k].text)

    def _is_unary(self, k: int) -> bool:
        """Whether a sign belongs to the operand that follows it."""
        before = k - 1
        return self._touch(k) and not self._touch_sign(k) and (
            self._is(before, "(", ",", "[", "{", "return", "?", ":") or self._ends_binary(before)
        )  # fmt: skip

    def _touch_sign(self, k: int) -> bool:
        return self._is_sign(k + 1) or (k > 0 and self._touch(k - 1) and self._is_sign(k - 1))

    def _ends_binary(self, k: int) -> bool:
        return any(
            self.binary.get(k - extra, "") and k - extra + self._length(k - extra) - 1 == k for extra in range(3)
        )

    def _length(self, k: int) -> int:
        """How many tokens the operator at a position takes."""
        end, last = self.tokens[k].start + len(self.binary[k]), k
        while self.tokens[last].end < end:
            last += 1
        return last - k + 1

    def _operator(self, k: int) -> Iterator[Edit]:
        operator, after = self.binary[k], k + self._length(k)
        for new in OTHER_OPERATORS.get(operator, []):
            yield self._replaced(k, after - 1, new)
        if operator not in DROPPED:
            return
        level = PRECEDENCE[operator]
        yield Edit(self.tokens[k - 1].end, self.tokens[self._operand_end(after, level)].end, "")
        start = self._operand_start(k - 1, level)
        if operator in COMMUTATIVE and not (start and self._level_before(start) == level):
            yield Edit(self.tokens[start].start, self.tokens[after].start, "")

    def _level_before(self, k: int) -> int | None:
        """The precedence of the operator in front of a token."""
        return next((PRECEDENCE[name] for at, name in self.binary.items() if at + self._length(at) == k), None)

    def _operand_end(self, k: int, level: int) -> int:
        """The last token of a right operand that begins at a position."""
        while k + 1 < len(self.tokens):
            k = max(k, self.matching.get(k, k))
            following = k + 1
            if (
                self._is(following, ")", "]", "}", ";", ",")
                or PRECEDENCE.get(self.binary.get(following), 99) <= level
            ):
                return k
            k = following
        return k

    def _operand_start(self, k: int, level: int) -> int:
        """The first token of a left operand that ends at a position."""
        while k > 0:
            k = min(k, self.matching.get(k, k))
            before = k - 1
            level_before = self._level_before(k)
            if self._is(before, "(", "[", "{", ";", ",", "return", "}") or (
                level_before is not None and level_before <= level
            ):
                return k
            k = before
        return k

    def _name(self, k: int) -> Iterator[Edit]:
        name, is_called = self.tokens[k].text, self._is(k + 1, "(")
        if name in OTHER_NAMES:
            yield self._replaced(k, k, OTHER_NAMES[name])
        if name in NARROWER and not is_called:
            yield self._replaced(k, k, NARROWER[name])
        if name in ARITHMETIC and is_called and self._touch(k):
            yield self._replaced(k, k, "")
        if name in ARITHMETIC and self._is(k - 1, "(") and self._is(k + 1, ")") and self._touch(k + 1):
            yield self._replaced(k - 1, k + 1, "")
        if name == "static_cast" and self._is(k + 1, "<"):
            opening = next(at for at in range(k, len(self.tokens)) if self._is(at, "("))
            yield self._replaced(k, opening - 1, "")
        if name in ("x", "y") and self._is(k - 1, ".") and self._is(k - 2, *INDICES):
            yield self._replaced(k, k, "y" if name == "x" else "x")
        if name in UNNEEDED_METHODS and self._is(k - 1, ".") and is_called and self.matching.get(k + 1) == k + 2:
            yield self._replaced(k - 1, k + 2, "")

    def _brackets(self, k: int) -> Iterator[Edit]:
        """The condition of an `if`, or the arguments of a call in another order."""
        end = self.matching.get(k)
        if end is None or not k:
            return
        if self._is(k - 1, "if", "while") or self._text(k - 1) == "constexpr":
            for value in ("true", "false") if self._is(k - 1, "if") else ("false",):
                yield self._replaced(k + 1, end - 1, value)
        is_call = self.tokens[k - 1].kind == "name" and not self._is(k - 1, *CONTROL, *SYMMETRIC)
        if (is_call or self._is(k - 1, ">")) and not self._is(end + 1, "{", "const", ":", "noexcept"):
            yield from self._swapped(self._split(k + 1, end))

    def _split(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts between commas, as offsets."""
        parts, first, k = [], start, start
        while k <= end:
            if k == end or self._is(k, ","):
                if first < k:
                    parts.append((self.tokens[first].start, self.tokens[k - 1].end))
                first = k + 1
            k = max(k, self.matching.get(k, k)) + 1 if k < end else k + 1
        return parts

    def _swapped(self, parts: Sequence[tuple[int, int]]) -> Iterator[Edit]:
        for first, second in itertools.pairwise(parts):
            yield swap(self.text, first, second)

    def _ternary(self, k: int) -> Iterator[Edit]:
        """The two results of `condition ? first : second` exchanged."""
        depth, colon = 0, k + 1
        while colon < len(self.tokens) and (depth or not self._is(colon, ":")):
            depth += self._is(colon, "?") - self._is(colon, ":")
            colon = max(colon, self.matching.get(colon, colon)) + 1
        if colon + 1 < len(self.tokens):
            last = self._operand_end(colon + 1, 0)
            first = (self.tokens[k + 1].start, self.tokens[colon - 1].end)
            yield swap(self.text, first, (self.tokens[colon + 1].start, self.tokens[last].end))

    def _launch(self, k: int) -> Iterator[Edit]:
        """Another grid, another block, no shared memory, or another stream in `<<<...>>>`."""
        end = next((at for at in range(k + 3, len(self.tokens) - 2) if self._text(at, 3) == ">>>"), None)
        if end is None:
            return
        parts = self._split(k + 3, end)
        yield from self._swapped(parts[:2])
        if len(parts) > 2:
            yield Edit(parts[-2][1], parts[-1][1], "")
            yield Edit(*parts[2], "0")
        for part in parts[:2]:
            yield Edit(*part, "1")

    def _statement(self, start: int) -> Iterator[Edit]:
        """A statement left out; a declaration only where nothing behind it uses the name."""
        if start >= len(self.tokens) or not (self.tokens[start].kind == "name" or self._is(start, "*", "+", "-")):
            return
        if self._is(start - 1, ")") and not self._closes_control(start - 1):
            return
        end = start
        while end < len(self.tokens) and not self._is(end, ";", "}", ")"):
            end = max(end, self.matching.get(end, end)) + 1
        if not self._is(end, ";") or (self._is(start, *NOT_DELETED) and end > start + 1):
            return
        declared = self._declared(start, end)
        if declared is None or not any(self._is(k, declared) for k in range(end, len(self.tokens))):
            yield self._replaced(start, end, ";")

    def _closes_control(self, k: int) -> bool:
        opening = self.matching.get(k, 0)
        return self._is(opening - 1, "if", "for", "while", "constexpr")

    def _declared(self, start: int, end: int) -> str | None:
        """The name that a declaration makes: the last of two words or more in front of `=`, `(`, `{`, `[` or `;`."""
        names, k = [], start
        while k < end and not self._is(k, "=", "(", "{", "[", ".", ",") and self._text(k, 2) != "->":
            if self.tokens[k].kind == "name" and not self._is(k + 1, "::") and not self._is(k - 1, "::"):
                names.append(self.tokens[k].text)
            elif self.tokens[k].kind == "name" and not self._is(k + 1, "::"):
                names.append("")  # the end of a name such as at::Tensor
            if self._text(k, 3) == "<<<":
                return None
            k += 1
        return names[-1] if len(names) > 1 else None
