"""Reads the functions with CUDA's qualifiers: the bodies of device functions, and the parameters of kernels."""

from __future__ import annotations

from typing import NamedTuple

from .expressions import find_template_opener, is_identifier, split_list
from .tokens import OPENERS, Source

ALIGNMENTS = ("alignas", "__align__", "__attribute__", "__declspec")
ATTRIBUTES = (*ALIGNMENTS, "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "decltype", "requires")
TYPE_KEYWORDS = (
    *("volatile", "const", "unsigned", "signed", "void", "bool", "char", "short", "int", "long", "float", "double"),
    "typename",
)
CLASS_KEYS = ("struct", "union", "class", "enum")
PARAMETER_QUALIFIERS = ("const", "volatile", "__restrict__", "__grid_constant__")


class Function(NamedTuple):
    """A device function with a body: its first qualifier, and the braces of the body."""

    qualifier: int
    opener: int
    closer: int


class Parameter(NamedTuple):
    """A parameter of a kernel: its name, if it has one, and the type of its value without `const`."""

    name: str
    is_pointer: bool
    has_default: bool
    to_const: bool  # a pointer to const
    type: str
    is_reference: bool


Signature = list[Parameter]


def find_qualifier_words(source: Source, *qualifiers: str) -> set[str]:
    """Some of CUDA's qualifiers, and the macros that stand for them."""
    words = {*qualifiers}
    for body in source.macro_bodies.values():
        texts = {source.tokens[k].text for k in range(body, source.bounds(body - 1)[1])}
        if source.is_name(body - 1) and words & texts and not texts & {"{", "(", ";", "="}:
            words.add(source.tokens[body - 1].text)
    return words


def is_for_host(source: Source, function: Function, host_words: set[str]) -> bool:
    """Whether a device function is for the host, too."""
    start, end = function.qualifier, function.qualifier + 1
    while source.is_name(start - 1) and not source.tokens[start - 1].directive:
        start -= 1
    while source.is_name(end) and end < function.opener:
        end += 1
    return any(source.is_(k, *host_words) for k in range(start, end))


def find_body(source: Source, index: int) -> int | None:
    """The `{` of the function whose qualifiers end before a token; None for other declarations."""
    _, stop = source.bounds(index - 1)
    has_initialisers = False
    while index < stop:
        if source.is_(index, "operator"):
            while index < stop and not source.is_(index + 1, "("):
                index += 1
            if source.is_(index + 2, ")") and source.is_(index + 3, "("):  # operator()
                index += 2
        elif source.is_(index, "{") and not (has_initialisers and source.is_name(index - 1)):
            return index
        elif source.is_(index, *OPENERS):
            index = source.matching.get(index, stop)
        elif source.is_(index, ";", "=", "}", ")"):
            return None
        elif source.is_(index, ":"):
            has_initialisers = True
        index += 1
    return None


def find_parameters(source: Source, index: int) -> int | None:
    """The `(` of the parameters of the function whose qualifiers end before a token."""
    _, stop = source.bounds(index - 1)
    while index < stop and not source.is_(index, ";", "{", "}", ")", "="):
        if source.is_(index, "(") and index in source.matching and not source.is_(index - 1, *ATTRIBUTES):
            return index
        index = source.after(index)
    return None


def read_signature(source: Source, qualifier: int) -> tuple[str, Signature] | None:
    """The name and the parameters of the kernel with this qualifier; None if it has no fixed list of them."""
    opener = find_parameters(source, qualifier + 1)
    if opener is None:
        return None
    name = opener - 1
    if source.is_(name, ">"):  # a specialisation
        name = (find_template_opener(source, name, qualifier) or opener) - 1
    pieces = split_list(source, opener + 1, source.matching[opener], templates=True)
    if any(source.is_(k, ".") for piece in pieces for k in piece):  # a parameter pack
        return None
    return source.tokens[name].text, [read_parameter(source, piece) for piece in pieces]


def read_parameter(source: Source, piece: range) -> Parameter:
    """Reads one parameter: `const T* __restrict__ x`, `float x[]`, `void (*f)(int)`, `int n = 3`, `float*`."""
    while source.is_(piece.start, "["):  # an attribute
        piece = range(source.after(piece.start), piece.stop)
    end = next((k for k in piece if source.is_(k, "=")), piece.stop)
    depth, is_pointer, is_const, to_const = 0, False, False, False
    for k in range(piece.start, end):
        depth += source.is_(k, "<") - source.is_(k, ">")
        is_const |= depth == 0 and source.is_(k, "const")
        if depth == 0 and source.is_(k, "*", "]") and not source.is_(k - 1, "]"):
            is_pointer, to_const, is_const = True, is_const, False  # of `const T* const` the first counts
    last = end - 1
    while source.is_(last, "]") and last in source.matching:
        last = source.matching[last] - 1
    if source.is_(last, ")") and last in source.matching:  # `void (*f)(int)`, `float (&x)[3]`
        opener = source.matching[last]
        last = opener - 2 if source.is_(opener - 1, ")") else last - 1
    no_type = (*PARAMETER_QUALIFIERS, *CLASS_KEYS)
    has_type = any(
        source.is_(k, *TYPE_KEYWORDS, "*", "&", ">") or is_identifier(source, k)
        for k in range(piece.start, last)
        if not source.is_(k, *no_type)
    )
    has_name = has_type and source.is_name(last) and not source.is_(last - 1, "::")
    has_name = has_name and not source.is_(last, *TYPE_KEYWORDS, *no_type)
    words = (k for k in range(piece.start, last + (not has_name)) if not source.is_(k, *PARAMETER_QUALIFIERS, "&"))
    name = source.tokens[last].text if has_name else ""
    before = last - has_name
    while source.is_(before, *PARAMETER_QUALIFIERS):
        before -= 1
    is_reference = source.is_(before, "&")
    return Parameter(name, is_pointer, end < piece.stop, to_const, source.join(words), is_reference)
