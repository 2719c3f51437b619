"""Finds the beginnings of operands and the pieces of lists: as much of C++'s grammar as the rewriter needs."""

from __future__ import annotations

from .tokens import OPENERS, Source

KEYWORDS = ("if", "for", "while", "switch", "return", "else", "do", "case", "co_await", "co_return", "constexpr")


def split_list(source: Source, start: int, end: int, templates: bool) -> list[range]:
    """The tokens between the commas of a list. With `templates`, a `<` after a name opens a bracket."""
    pieces, begin, depth, index = [], start, 0, start
    while index < end:
        if source.is_(index, ",") and depth == 0:
            pieces.append(range(begin, index))
            begin = index + 1
        elif source.is_(index, *OPENERS):
            index = source.matching.get(index, end)
        elif templates:
            depth += source.is_(index, "<") and source.is_name(index - 1)
            depth -= source.is_(index, ">") and depth > 0
        index += 1
    return [*pieces, range(begin, end)] if begin < end else pieces


def find_operand(source: Source, end: int) -> int | None:
    """The start of the operand before a token: `f`, `a::f<T>`, `(f)`, `f[i]`, `get(i)`, `x.f`."""
    first, _ = source.bounds(end)
    last = end - 1
    while last >= first:
        start = find_primary(source, last, first)
        if start is None:
            return None
        while start > first and source.is_(start - 1, "template", "typename"):
            start -= 1
        before = start - 1
        if before < first or not source.is_(before, "::", ".", "->"):
            return start
        is_global = source.is_(before, "::") and not (
            before > first and (source.is_(before - 1, ">") or is_identifier(source, before - 1))
        )
        if is_global:
            return before
        last = before - 1
    return None


def find_primary(source: Source, last: int, first: int) -> int | None:
    """The start of a name with its template arguments, subscripts and calls, or of an expression in brackets."""
    while last >= first:
        if is_identifier(source, last):
            return last
        if source.is_(last, ">"):
            opener = find_template_opener(source, last, first)
            return None if opener is None else opener - 1
        opener = source.matching.get(last)
        if opener is None or opener < first or not source.is_(last, ")", "]"):
            return None
        before = opener - 1
        is_suffix = before >= first and (
            is_identifier(source, before)
            or source.is_(before, "]", ">")
            or (source.is_(before, ")") and not is_condition(source, before))
        )
        if not is_suffix:
            return opener if source.is_(last, ")") else None
        last = before
    return None


def is_identifier(source: Source, index: int) -> bool:
    """Whether a token is a name, and not a keyword that can precede an expression."""
    return source.is_name(index) and not source.is_(index, *KEYWORDS)


def is_condition(source: Source, closer: int) -> bool:
    """Whether `)` ends the condition of an `if` or a loop."""
    return source.is_(source.matching.get(closer, 0) - 1, *KEYWORDS)


def find_template_opener(source: Source, closer: int, first: int) -> int | None:
    """The `<` of the template arguments that end at a `>`, found past a `<` that compares and a `<<` that shifts."""
    depth, index = 1, closer - 1
    while index > first:
        if source.is_(index, ")", "]", "}"):
            index = source.matching.get(index, first)
        elif source.is_(index, ";", "(", "[", "{"):
            return None
        elif source.is_(index, ">"):
            depth += 1
        elif source.is_(index, "<") and source.is_(index - 1, "<"):
            index -= 1
        elif source.is_(index, "<") and source.is_name(index - 1):
            depth -= 1
            compares = source.is_(index - 2, "<", "+", "-", "*", "/", "%", "&", "|", "==", "!")
            if depth == 0 and not compares:
                return index
            depth += depth == 0
        index -= 1
    return None
