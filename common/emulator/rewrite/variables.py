"""Reads declarations of `__shared__` variables, and of other device variables at file scope."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .expressions import find_operand, split_list
from .functions import ALIGNMENTS, CLASS_KEYS, TYPE_KEYWORDS, find_qualifier_words
from .tokens import Source

STORAGE = ("extern", "static", "__device__", "inline")
# The first of them that a declaration has decides where its variables are.
VARIABLE_QUALIFIERS = ("__managed__", "__constant__", "__device__")


class SharedVariable(NamedTuple):
    """A variable of a `__shared__` declaration: `float x[2][3]` has the type `float` and the extents 2 and 3."""

    type: str
    name: str
    extents: tuple[str, ...]


class SharedDeclaration(NamedTuple):
    """A `__shared__` declaration, from its first token to the one after its last."""

    qualifier: int
    start: int
    end: int
    variables: list[SharedVariable]
    is_dynamic: bool
    alignment: str  # such as `alignas(16)`, or empty
    type_definition: str  # an alias of a type that the declaration itself defines, or empty
    is_at_file_scope: bool


class FileVariables(NamedTuple):
    """A declaration of variables at file scope: their names, the qualifier that says where they are, and the `;`."""

    names: list[int]
    qualifier: str
    is_extern: bool
    start: int  # the first of the qualifiers
    end: int


def read_shared_declaration(source: Source, qualifier: int) -> SharedDeclaration:
    """Reads the declaration that a `__shared__` belongs to. Raises `UserError` if it cannot be read."""
    start, end = find_declaration_start(source, qualifier), find_shared_end(source, qualifier)
    pieces, alignment = split_declarators(source, start, end)
    variables, base, type_definition = [], "", ""
    for number, piece in enumerate(pieces):
        extents = []
        while piece and source.is_(piece[-1], "]"):
            opener = source.matching.get(piece[-1])
            if opener not in piece:
                raise source.error(qualifier, "a bracket of this __shared__ declaration has no matching bracket")
            extents.insert(0, source.spelling(opener + 1, piece[-1]))
            piece = piece[: piece.index(opener)]
        if not piece or not source.is_name(piece[-1]) or (number == 0 and len(piece) == 1):
            raise source.error(qualifier, "the emulator cannot read this __shared__ declaration; name its type first")
        name, words = source.tokens[piece[-1]].text, piece[:-1]
        if number == 0:
            star = find_star(source, words)
            base, words = source.join(words[:star]), words[star:]
            if "{" in base:
                type_definition, base = f"using emulator_type_{name} = {base}", f"emulator_type_{name}"
        variables.append(SharedVariable(base + source.join(words), name, tuple(extents)))
    is_dynamic = any(source.is_(k, "extern") for k in range(start, qualifier + 2))
    if not is_dynamic and any("" in variable.extents for variable in variables):
        raise source.error(qualifier, "a __shared__ array without a size must be extern")
    at_file_scope = is_file_scope(source, start)
    return SharedDeclaration(qualifier, start, end, variables, is_dynamic, alignment, type_definition, at_file_scope)


def split_declarators(source: Source, start: int, end: int) -> tuple[list[list[int]], str]:
    """The tokens between the commas of a `__shared__` declaration without its specifiers, and its alignment."""
    pieces: list[list[int]] = [[]]
    alignment, depth, index = "", 0, start
    while index < end:
        after = source.after(index)
        if source.is_(index, *ALIGNMENTS) and source.is_(index + 1, "("):
            after = source.after(index + 1)
            alignment = source.spelling(index, after)
        elif source.is_(index, "[") and source.is_(index + 1, "["):
            pass  # an attribute
        elif source.is_(index, ",") and depth == 0:
            pieces.append([])
        elif not source.is_(index, "__shared__", *STORAGE):
            depth += source.is_(index, "<") - source.is_(index, ">")
            pieces[-1] += range(index, after)
        index = after
    return pieces, alignment


def find_star(source: Source, words: list[int]) -> int:
    """The number of words before the first `*` outside template arguments and the body of a class."""
    depth = 0
    for number, k in enumerate(words):
        depth += source.is_(k, "<", "{") - source.is_(k, ">", "}")
        if depth <= 0 and source.is_(k, "*"):
            return number
    return len(words)


def find_declaration_start(source: Source, index: int) -> int:
    """The first token of a declaration; other specifiers and the type may precede the qualifier."""
    first, _ = source.bounds(index)
    while index > first:
        before = index - 1
        opener = source.matching.get(before, 0)
        if source.is_(before, ")") and source.is_(opener - 1, *ALIGNMENTS):
            index = opener - 1
        elif source.is_(before, "]") and source.is_(opener + 1, "["):
            index = opener
        elif source.is_(before, *STORAGE, *TYPE_KEYWORDS) or (
            source.is_name(before) and not source.tokens[before].directive and source.is_adjacent(before)
        ):
            index = before
        else:
            break
    return index


def find_shared_end(source: Source, index: int) -> int:
    """The token after a `__shared__` declaration: its `;`, or the end of the macro."""
    _, stop = source.bounds(index)
    defines_type = False
    while index < stop and not source.is_(index, ";"):
        if source.is_(index, "struct", "union", "class"):
            defines_type = True
        elif source.is_(index, "=") or (source.is_(index, "{") and not defines_type):
            raise source.error(index, "a __shared__ variable cannot have an initial value")
        index = source.after(index)
    return index


def is_file_scope(source: Source, index: int) -> bool:
    """Whether only namespaces and `extern "C"` enclose a token."""
    if source.tokens[index].directive:
        return False
    for opener in source.enclosing(index):
        before = opener - 1
        while source.is_(before, "::") or (source.is_name(before) and not source.is_(before, "namespace", "extern")):
            before -= 1
        is_linkage = before == opener - 1 and source.tokens[before].kind == "string"
        if not is_linkage and not source.is_(before, "namespace"):
            return False
    return True


def find_file_variables(source: Source) -> Iterator[FileVariables]:
    """The definitions of device variables at file scope, and the declarations of `__managed__` ones."""
    last = 0
    words = {qualifier: find_qualifier_words(source, qualifier) for qualifier in VARIABLE_QUALIFIERS}
    for index in source.find(*set().union(*words.values())):
        if index < last or source.tokens[index].directive:
            continue
        start, end = find_declaration_start(source, index), find_variables_end(source, index)
        if end is None or not is_file_scope(source, index):
            continue
        qualifier = next(word for word in words if any(source.is_(k, *words[word]) for k in range(start, end)))
        is_extern = any(source.is_(k, "extern") for k in range(start, end))
        if not is_definition(source, start, end) and not (qualifier == "__managed__" and is_extern):
            continue
        names = [read_declared_name(source, piece) for piece in split_list(source, start, end, templates=True)]
        last = end
        if names and None not in names:
            yield FileVariables(names, qualifier, is_extern, index, end)


def find_variables_end(source: Source, index: int) -> int | None:
    """The `;` of a declaration of variables; None for a function with a body."""
    has_parameters, has_value, stop = False, False, len(source.tokens)
    while index < stop and not source.is_(index, ";", "}", "operator"):
        if source.is_(index, "="):
            has_value = True
        elif source.is_(index, "{") and has_parameters and not has_value:
            return None
        elif source.is_(index, "(") and not source.is_(index - 1, *ALIGNMENTS):
            has_parameters = True
        index = source.after(index)
    return index if source.is_(index, ";") else None


def is_definition(source: Source, start: int, end: int) -> bool:
    """Whether a declaration defines variables: `extern` only declares them, and templates are not yet variables."""
    if any(source.is_(k, "extern", "using", "typedef", "friend", "__shared__") for k in range(start, end)):
        return False
    follows_angle = source.is_(start - 1, ">") and not source.tokens[start - 1].directive
    return not follows_angle or find_operand(source, start) is None


def read_declared_name(source: Source, piece: range) -> int | None:
    """The token of the name in a declarator: `x[2] = {1, 2}`, `*p`, `(*f)(int)`, `v{1}`; None for a function."""
    index, name = piece.start, None
    while index < piece.stop and not source.is_(index, "="):
        if source.is_(index, "(") and not source.is_(index - 1, *ALIGNMENTS, "decltype"):
            is_pointer = source.is_(index + 1, "*", "&")
            return read_declared_name(source, range(index + 1, source.after(index) - 1)) if is_pointer else None
        if source.is_(index, "{") and not any(source.is_(k, *CLASS_KEYS) for k in (index - 1, index - 2)):
            break  # an initial value
        if source.is_name(index) and not source.is_(index, *TYPE_KEYWORDS):
            name = index
        index = source.after(index)
    return name
