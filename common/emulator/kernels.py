"""The parameters of the kernels that a file declares, and those that a launch's arguments go to."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from . import shared
from .expressions import is_plain_name, split, template_opener
from .tokens import Source

ATTRIBUTES = (*shared.ALIGNMENTS, "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "decltype", "requires")
QUALIFIERS = ("const", "volatile", "struct", "class", "union", "enum", "__restrict__", "__grid_constant__")
NO_TYPE = ("const", "volatile", "__restrict__", "__grid_constant__", "&")


class Parameter(NamedTuple):
    """A parameter of a kernel; its name may be missing. `to_const`: through it nothing may be written.

    `type` is that of a value, without `const`.
    """

    name: str
    is_pointer: bool
    has_default: bool
    to_const: bool
    type: str


Signature = list[Parameter]


def signatures(source: Source) -> dict[str, list[Signature]]:
    """By the name of a kernel: the parameters of its declarations and overloads in this file."""
    found: dict[str, list[Signature]] = defaultdict(list)
    words = shared.qualifiers(source, "__global__")
    for index, token in enumerate(source.tokens):
        if token.text not in words or (token.directive and index < source.bodies.get(token.directive, 0)):
            continue
        opener = parameters_opener(source, index + 1)
        if opener is None:
            continue
        name = opener - 1
        if source.is_(name, ">"):  # a specialisation
            name = (template_opener(source, name, index) or opener) - 1
        pieces = split(source, opener + 1, source.partner[opener], templates=True)
        if not any(source.is_(k, ".") for piece in pieces for k in piece):  # a pack takes any number
            found[source.tokens[name].text].append([parameter(source, piece) for piece in pieces])
    return found


def parameters_opener(source: Source, index: int) -> int | None:
    """The `(` of the parameters of the function whose qualifiers end here."""
    _, stop = source.bounds(index - 1)
    while index < stop and not source.is_(index, ";", "{", "}", ")", "="):
        if source.is_(index, "(") and index in source.partner and not source.is_(index - 1, *ATTRIBUTES):
            return index
        index = source.partner.get(index, index) + 1
    return None


def parameter(source: Source, piece: range) -> Parameter:
    """Reads one parameter: `const T* __restrict__ x`, `float x[]`, `void (*f)(int)`, `int n = 3`, `float*`."""
    while source.is_(piece.start, "["):  # an attribute
        piece = range(source.partner[piece.start] + 1, piece.stop)
    assigned = next((k for k in piece if source.is_(k, "=")), piece.stop)
    depth, is_pointer, is_const, to_const = 0, False, False, False
    for k in range(piece.start, assigned):
        depth += source.is_(k, "<") - source.is_(k, ">")
        is_const |= depth == 0 and source.is_(k, "const")
        if depth == 0 and source.is_(k, "*", "]") and not source.is_(k - 1, "]"):
            is_pointer, to_const, is_const = True, is_const, False  # of `const T* const` the first counts
    last = assigned - 1
    while source.is_(last, "]"):
        last = source.partner[last] - 1
    if source.is_(last, ")"):  # `void (*f)(int)`, `float (&x)[3]`
        opener = source.partner[last]
        last = opener - 2 if source.is_(opener - 1, ")") else last - 1
    typed = any(
        source.is_(k, *shared.BASIC, "*", "&", ">") or is_plain_name(source, k)
        for k in range(piece.start, last)
        if not source.is_(k, *QUALIFIERS)
    )
    named = source.is_name(last) and typed and not source.is_(last - 1, "::")
    named = named and not source.is_(last, *shared.BASIC, *QUALIFIERS)
    words = [k for k in range(piece.start, last + (not named)) if not source.is_(k, *NO_TYPE)]
    kind = shared.spelling(source, words)
    return Parameter(source.tokens[last].text if named else "", is_pointer, assigned < piece.stop, to_const, kind)


def find_signature(
    source: Source, known: dict[str, list[Signature]], launch: int, opener: int
) -> tuple[Signature | None, list[range]]:
    """The arguments behind a launch, and the parameters that they go to, if this file says so."""
    if not source.is_(opener, "(") or opener not in source.partner:
        return None, []
    overloads = known.get(kernel_name(source, launch), [])
    ways = [split(source, opener + 1, source.partner[opener], templates) for templates in (True, False)]
    if is_pack(source, ways[0]):
        return (overloads[0] if len(overloads) == 1 else None), ways[0]
    for arguments in ways:
        for least in (len, required):
            for signature in overloads:
                if least(signature) <= len(arguments) <= len(signature):
                    return signature, arguments
    return None, ways[0]


def required(signature: Signature) -> int:
    """The parameters that every launch must give."""
    return sum(not parameter.has_default for parameter in signature)


def is_pack(source: Source, arguments: list[range]) -> bool:
    """Whether some argument stands for any number of them: `xs...`, `__VA_ARGS__`."""
    ends = [each.stop - 1 for each in arguments]
    return any(source.is_(end, "__VA_ARGS__", ".") for end in ends)


def kernel_name(source: Source, launch: int) -> str:
    """The name in front of a `<<<`; empty for expressions, for members, and for the parameter of a macro."""
    last, (first, _) = launch - 1, source.bounds(launch)
    while source.is_(last, ")"):
        last -= 1
    if source.is_(last, ">"):
        last = (template_opener(source, last, first) or first) - 1
    if not source.is_name(last) or source.is_(last - 1, ".", "->") or source.is_parameter(last):
        return ""
    return source.tokens[last].text
