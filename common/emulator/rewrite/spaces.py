"""Finds the functions of a source, with the execution space of each: the host, the device, or both.

This is less than C++'s grammar. Where it cannot tell, for example because a macro of an unknown header stands in a
declaration, a function counts as one for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from .functions import ATTRIBUTES, CLASS_KEYS, TYPE_KEYWORDS, find_qualifier_words
from .tokens import Source

HOST, DEVICE, KERNEL, BOTH = "host", "device", "kernel", "both"
VARIABLE = "a variable of the host"
# Words of a declaration that are no type.
SPECIFIERS = (
    *("static", "inline", "extern", "virtual", "friend", "explicit", "template", "typename", "const", "volatile"),
    *("__inline__", "__inline", "__forceinline__", "__noinline__", "unsigned", "signed"),
    *("constexpr", "constinit", "mutable", "thread_local", "alignas"),
)
NOT_FUNCTIONS = (*CLASS_KEYS, *ATTRIBUTES, "operator", "if", "for", "while", "switch", "return", "sizeof", "alignof")
AFTER_PARAMETERS = ("{", ";", "const", "noexcept", "override", "final", "->", ":", "=", "try")
NOT_VARIABLES = (*CLASS_KEYS, "using", "typedef", "extern", "friend", "template", "namespace", "static_assert", "(")
Spaces = dict[str, set[str]]  # by the name of a function or variable, the spaces of all its declarations


class Function(NamedTuple):
    """A function with a body: its name, its space, the braces, and the class that it is a member of."""

    name: str
    space: str
    start: int  # of the declaration
    opener: int
    closer: int
    of_class: str
    is_template: bool  # or a member of a class template


class Scope(NamedTuple):
    """A namespace or a class, which may have no name, that is being read."""

    closer: int
    is_class: bool
    of_class: str
    is_template: bool


def find_spaces(source: Source) -> tuple[Spaces, list[Function]]:
    """The spaces of all functions and variables that a source declares, and the functions that have a body."""
    spaces: Spaces = defaultdict(set)
    bodies: list[Function] = []
    qualifiers = (HOST, DEVICE, "global", "constant", "managed", "shared")
    words = {space: find_qualifier_words(source, f"__{space}__") for space in qualifiers}
    scopes = [Scope(len(source.tokens), False, "", False)]
    index = start = 0
    while index < len(source.tokens):
        while index >= scopes[-1].closer:
            scopes.pop()
        if source.tokens[index].directive or index in source.skipped:
            start += start == index
            index += 1
        elif source.is_(index, ";"):
            if name := declared_variable(source, start, index, words):
                is_usable = scopes[-1].is_class or is_constant_number(source, start, index)
                spaces[name].add(BOTH if is_usable else VARIABLE)
            index = start = index + 1
        elif source.is_(index, "}") or (source.is_(index, ":") and not source.is_(index - 1, ")")):
            index = start = index + 1
        elif source.is_(index, "{"):
            closer = source.matching.get(index, index)
            if any(source.is_(k, "=") for k in range(start, index)):  # the value of a variable
                index = closer + 1
                continue
            inner = scope_of(source, start, index, scopes[-1], closer)
            if inner:
                scopes.append(inner)
                closer = index
            index = start = closer + 1
        elif source.is_(index, "(") and is_function(source, start, index):
            name = source.tokens[index - 1].text
            space = space_of(source, start, index, words)
            spaces[name].add(space)
            opener = find_opener(source, source.after(index))
            if opener is None:
                index = source.after(index)
            else:
                is_template = scopes[-1].is_template or source.is_(start, "template")
                of_class = class_before(source, index - 1) or scopes[-1].of_class
                bodies.append(Function(name, space, start, opener, source.matching[opener], of_class, is_template))
                index = start = source.after(opener)
        else:
            index = source.after(index) if source.is_(index, "(", "[") else index + 1
    return spaces, bodies


def declared_variable(source: Source, start: int, end: int, words: dict[str, set[str]]) -> str:
    """The name of the variable that a declaration defines, if it has none of CUDA's qualifiers; otherwise empty."""
    name = next((k - 1 for k in range(start, end) if source.is_(k, "=", "[")), end - 1)
    before = range(start, name)
    is_other = any(source.is_(k, *NOT_VARIABLES, ",", *set().union(*words.values())) for k in before)
    if name <= start or not source.is_name(name) or is_other or list(unknown_words(source, before)):
        return ""
    return source.tokens[name].text


def is_constant_number(source: Source, start: int, end: int) -> bool:
    """Whether a declaration defines a constant that is no array: device code can use its value."""
    is_array = any(source.is_(k, "[") for k in range(start, end))
    return not is_array and any(source.is_(k, "const", "constexpr") for k in range(start, end))


def scope_of(source: Source, start: int, opener: int, outer: Scope, closer: int) -> Scope | None:
    """The namespace or class whose `{` this is, of a declaration that begins at `start`; None for other braces."""
    words = range(start, opener)
    if any(source.is_(k, "namespace") for k in words) or (
        source.is_(start, "extern") and source.tokens[opener - 1].kind == "string"
    ):
        return Scope(closer, False, "", outer.is_template)
    key = next((k for k in words if source.is_(k, "struct", "class", "union")), None)
    is_other = key is not None and any(
        source.is_(k, "=", "enum") or (source.is_(k, "(") and not source.is_(k - 1, *ATTRIBUTES))
        for k in words
        if not in_template_list(source, start, k)
    )
    if key is None or is_other:
        return None
    name = next((k for k in range(key + 1, opener) if source.is_name(k) and not source.is_(k, *ATTRIBUTES)), None)
    is_template = outer.is_template or source.is_(start, "template")
    return Scope(closer, True, source.tokens[name].text if name else "", is_template)


def in_template_list(source: Source, start: int, index: int) -> bool:
    """Whether a token is before the `>` of the `template <...>` that a declaration begins with."""
    if not source.is_(start, "template"):
        return False
    depth = 0
    for k in range(start + 1, index + 1):
        depth += source.is_(k, "<") - source.is_(k, ">")
    return depth > 0


def is_function(source: Source, start: int, opener: int) -> bool:
    """Whether a declaration that begins at `start` has the parameters of its function at a `(`."""
    name = opener - 1
    if name < start or not source.is_name(name) or source.is_(name, *NOT_FUNCTIONS, *TYPE_KEYWORDS):
        return False
    if opener not in source.matching or any(source.is_(k, "=", "using", "typedef") for k in range(start, name)):
        return False
    return source.is_(source.after(opener), *AFTER_PARAMETERS)


def find_opener(source: Source, index: int) -> int | None:
    """The `{` of the body after the parameters of a function; None if this only declares it."""
    initialises = False
    while index < len(source.tokens) and not source.is_(index, ";", "}", "="):
        if source.is_(index, "{"):
            if index not in source.matching:
                return None
            if not (initialises and source.is_name(index - 1)):  # not `: x{1}`
                return index
        initialises |= source.is_(index, ":")
        index = source.after(index)
    return None


def class_before(source: Source, name: int) -> str:
    """`S` of a definition `void S::f()`; empty without it."""
    return source.tokens[name - 2].text if source.is_(name - 1, "::") and source.is_name(name - 2) else ""


def space_of(source: Source, start: int, opener: int, words: dict[str, set[str]]) -> str:
    """The space of a function, by the words before its parameters."""
    before = range(start, opener - 1)
    found = {space for space, texts in words.items() if any(source.is_(k, *texts) for k in before)}
    if "global" in found:
        return KERNEL
    if found >= {HOST, DEVICE} or any(source.is_(k, "constexpr", "consteval") for k in before):
        return BOTH
    if found:
        return found.pop()
    return BOTH if list(unknown_words(source, before)) else HOST


def unknown_words(source: Source, before: range) -> Iterator[int]:
    """What may be a macro for qualifiers: a directive, a name in capital letters, or two names for one type."""
    names = 0
    for k in before:
        if source.tokens[k].directive or (source.is_name(k) and is_loud(source.tokens[k].text)):
            yield k
        elif in_template_list(source, before.start, k) or source.is_(k, *SPECIFIERS):
            continue
        elif source.is_name(k) and not source.is_(k + 1, "::"):
            names += 1
            is_keyword = source.is_(k, *TYPE_KEYWORDS) and source.is_(k - 1, *TYPE_KEYWORDS)
            if names > 1 and not is_keyword:
                yield k
        elif source.is_(k, "<"):
            break


def is_loud(text: str) -> bool:
    """Whether a name is in capital letters, as names of macros are."""
    return len(text) > 1 and text.isupper()
