"""Rewrites `__shared__` declarations: each becomes a reference into the memory of the block that runs.

Inside a function a declaration is replaced where it stands. One at file scope becomes a function, and every device
function that names the variable gets a local reference of that name in front of its first statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .tokens import OPENERS, Edit, Source

QUALIFIERS = ("__global__", "__device__")
ALIGNMENTS = ("alignas", "__align__", "__attribute__", "__declspec")
STORAGE = ("extern", "static", "__device__", "inline")
BASIC = (
    *("volatile", "const", "unsigned", "signed", "void", "bool", "char", "short", "int", "long", "float", "double"),
    "typename",
)


class Function(NamedTuple):
    """A device function with a body, as indices of tokens: its qualifier, and the braces of its body."""

    qualifier: int
    opener: int
    closer: int


class Variable(NamedTuple):
    """One name that a `__shared__` declaration brings: `float x[2][3]` has the type `float` and the sizes 2 and 3."""

    type: str
    name: str
    sizes: tuple[str, ...]


class Declaration(NamedTuple):
    """A `__shared__` declaration: tokens from `start` to `end`, and what they say."""

    start: int
    end: int
    variables: list[Variable]
    is_dynamic: bool
    alignment: str  # such as `alignas(16)`, or nothing
    definition: str  # of the type, where the declaration brings one


def device_functions(source: Source) -> list[Function]:
    """Every function with a body that is marked `__global__` or `__device__`, also through a macro."""
    words = qualifiers(source, *QUALIFIERS)
    found = []
    for index, token in enumerate(source.tokens):
        if token.text in words and not (token.directive and index < source.bodies.get(token.directive, 0)):
            opener = body_opener(source, index + 1)
            if opener in source.partner and not (found and found[-1].opener == opener):
                found.append(Function(index, opener, source.partner[opener]))
    return found


def qualifiers(source: Source, *words: str) -> set[str]:
    """Some of CUDA's qualifiers, and the macros that stand for them."""
    found = {*words}
    for body in source.bodies.values():
        named = {source.tokens[k].text for k in range(body, source.bounds(body - 1)[1])}
        if source.is_name(body - 1) and found.intersection(named) and not named & {"{", "(", ";", "="}:
            found.add(source.tokens[body - 1].text)
    return found


def body_opener(source: Source, index: int) -> int | None:
    """The `{` of the function whose qualifiers end here; None for a mere declaration and for variables."""
    _, stop = source.bounds(index - 1)
    initialises = False
    while index < stop:
        if source.is_(index, "operator"):
            while index < stop and not source.is_(index + 1, "("):
                index += 1
            if source.is_(index + 2, ")") and source.is_(index + 3, "("):  # operator()
                index += 2
        elif source.is_(index, "{") and not (initialises and source.is_name(index - 1)):
            return index
        elif source.is_(index, "(", "[", "{"):
            index = source.partner.get(index, stop)
        elif source.is_(index, ";", "=", "}", ")"):
            return None
        elif source.is_(index, ":"):
            initialises = True
        index += 1
    return None


def function_at(index: int, functions: list[Function]) -> Function | None:
    """The device function whose body a token is in."""
    return next((function for function in functions if function.opener < index < function.closer), None)


def declarations(source: Source, functions: list[Function]) -> list[Edit]:
    """Edits for every `__shared__` declaration of a file."""
    edits = []
    for index, token in enumerate(source.tokens):
        if token.text != "__shared__":
            continue
        if token.directive and index < source.bodies.get(token.directive, len(source.tokens)):
            continue  # `#define __shared__`, `#ifdef __shared__`
        declared = parse(source, index)
        start, end = source.tokens[declared.start].start, source.tokens[declared.end - 1].end
        at_file_scope = is_file_scope(source, declared.start)
        statements = [declared.definition] if declared.definition else []
        for number, variable in enumerate(declared.variables):
            key = str(10000 * source.line(index) + source.column(index) + number)
            if token.directive:  # one declaration, but a variable in each place that uses the macro
                key += " + 10000000000 * __COUNTER__"
            reference = as_reference(declared, variable, key, source.quoted(variable.name, index))
            if at_file_scope:
                name = variable.name
                reference = f"static decltype(auto) emulator_shared_{name}() {{ {reference}; return {name}; }}"
                edits += references(source, end, name, functions)
            statements.append(reference)
        breaks = "".join(re.findall(r"\\?\n", source.text[start:end]))  # what follows keeps its line
        edits.append(Edit(start, end, "; ".join(statements) + breaks))
    return edits


def parse(source: Source, index: int) -> Declaration:
    """Reads the declaration that the `__shared__` at an index belongs to. Raises `UserError` if it cannot."""
    start, end = declaration_start(source, index), declaration_end(source, index)
    pieces: list[list[int]] = [[]]
    alignment, depth, k = "", 0, start
    while k < end:
        group_end = source.partner.get(k, k) if source.is_(k, *OPENERS) else k
        if source.is_(k, *ALIGNMENTS) and source.is_(k + 1, "("):
            group_end = source.partner[k + 1]
            alignment = source.spelling(k, group_end + 1)
        elif source.is_(k, "[") and source.is_(k + 1, "["):
            pass  # an attribute
        elif source.is_(k, ",") and depth == 0:
            pieces.append([])
        elif not source.is_(k, "__shared__", *STORAGE):
            depth += source.is_(k, "<") - source.is_(k, ">")
            pieces[-1] += range(k, group_end + 1)
        k = group_end + 1
    variables, base, definition = [], "", ""
    for number, piece in enumerate(pieces):
        sizes = []
        while piece and source.is_(piece[-1], "]"):
            opener = source.partner[piece[-1]]
            sizes.insert(0, source.spelling(opener + 1, piece[-1]))
            piece = piece[: piece.index(opener)]
        if not piece or not source.is_name(piece[-1]) or (number == 0 and len(piece) == 1):
            raise source.refuse(index, "the emulator cannot read this __shared__ declaration; name its type first")
        name, words = source.tokens[piece[-1]].text, piece[:-1]
        if number == 0:
            stars = [i for i, k in enumerate(words) if source.is_(k, "*") and not inside(source, words[:i])]
            first = stars[0] if stars else len(words)
            base, words = spelling(source, words[:first]), words[first:]
            if "{" in base:
                definition, base = f"using emulator_type_{name} = {base}", f"emulator_type_{name}"
        variables.append(Variable(base + spelling(source, words), name, tuple(sizes)))
    is_dynamic = any(source.is_(k, "extern") for k in range(start, index + 2))
    if not is_dynamic and any("" in variable.sizes for variable in variables):
        raise source.refuse(index, "a __shared__ array without a size must be extern")
    return Declaration(start, end, variables, is_dynamic, alignment, definition)


def inside(source: Source, words: list[int]) -> bool:
    """Whether the words end within template arguments."""
    return sum(source.is_(k, "<") - source.is_(k, ">") for k in words) > 0


def spelling(source: Source, words: list[int]) -> str:
    """Tokens in one line, apart where the source has them apart."""
    text = ""
    for before, k in zip([None, *words], words, strict=False):
        apart = before is not None and source.tokens[before].end < source.tokens[k].start
        text += " " * apart + source.tokens[k].text
    return text


def declaration_start(source: Source, index: int) -> int:
    """The first word of the declaration; CUDA allows other specifiers, and the type, in front of `__shared__`."""
    first, _ = source.bounds(index)
    while index > first:
        before = index - 1
        opener = source.partner.get(before, 0)
        if source.is_(before, ")") and source.is_(opener - 1, *ALIGNMENTS):
            index = opener - 1
        elif source.is_(before, "]") and source.is_(opener + 1, "["):
            index = opener
        elif source.is_(before, *STORAGE, *BASIC) or (
            source.is_name(before) and not source.tokens[before].directive and source.touches(before)
        ):
            index = before
        else:
            break
    return index


def declaration_end(source: Source, index: int) -> int:
    """The token behind the declaration: its `;`, or the end of the macro."""
    _, stop = source.bounds(index)
    defines_type = False
    while index < stop and not source.is_(index, ";"):
        if source.is_(index, "struct", "union", "class"):
            defines_type = True
        elif source.is_(index, "=") or (source.is_(index, "{") and not defines_type):
            raise source.refuse(index, "a __shared__ variable cannot have an initial value")
        index = source.partner.get(index, index) if source.is_(index, *OPENERS) else index
        index += 1
    return index


def as_reference(declared: Declaration, variable: Variable, key: str, shown: str) -> str:
    """The statement that finds a variable in the memory of the block; `shown` is its name, as a literal."""
    kind, name = variable.type, variable.name
    brackets = [f"[{size}]" if re.fullmatch(r"\w*", size) else f"[({size})]" for size in variable.sizes]
    sizes, inner = "".join(brackets), "".join(brackets[1:])
    if declared.is_dynamic:
        found = f"::emulator::dynamic_shared<{kind}{inner}>({shown})"
        if not sizes:
            return f"{kind}& {name} = *{found}"
        return f"{kind} (*{name}){inner} = {found}" if inner else f"{kind}* {name} = {found}"
    target = f"{kind} (&{name}){sizes}" if sizes else f"{kind}& {name}"
    if declared.alignment:
        aligned = f"struct {declared.alignment} emulator_aligned_{name} {{ {kind} value{sizes}; }}"
        return f"{aligned}; {target} = ::emulator::shared<emulator_aligned_{name}>({key}, {shown}).value"
    return f"{target} = ::emulator::shared<{kind}{sizes}>({key}, {shown})"


def is_file_scope(source: Source, index: int) -> bool:
    """Whether only namespaces surround a token."""
    if source.tokens[index].directive:
        return False
    for opener, closer in source.partner.items():
        if opener < index < closer and not source.tokens[opener].directive:
            k = opener - 1
            while source.is_(k, "::") or (source.is_name(k) and not source.is_(k, "namespace", "extern")):
                k -= 1
            is_linkage = k == opener - 1 and source.tokens[k].kind == "string"
            if not is_linkage and not source.is_(k, "namespace"):
                return False
    return True


def references(source: Source, after: int, name: str, functions: list[Function]) -> Iterator[Edit]:
    """Edits that bring a variable of file scope into each device function that names it."""
    for function in functions:
        opener = source.tokens[function.opener]
        named = any(
            source.is_(k, name) and not source.is_(k - 1, ".", "->", "::")
            for k in range(function.opener, function.closer)
        )
        hidden = any(source.is_(k, name) for k in range(function.qualifier, function.opener))
        if opener.start >= after and named and not hidden:
            yield Edit(opener.end, opener.end, f" decltype(auto) {name} = emulator_shared_{name}();")
