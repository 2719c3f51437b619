"""Gives device code its `__CUDA_ARCH__`: nvcc compiles a file for the host and for the device, g++ compiles it once.

The macro is defined in the bodies of device functions. A function for host and device gets two bodies, and chooses
one when it runs. Elsewhere the macro is undefined, as when nvcc compiles for the host, except in an `#if` that
selects device functions by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..conditions import ARCHITECTURE, ARCHITECTURE_VALUE
from ..functions import Function, find_qualifier_words, is_for_host
from ..syntax import Syntax
from ..tokens import Source
from .edits import Edit, apply, insert

CONDITIONS = ("if", "ifdef", "ifndef", "elif")


class DeviceRegion(NamedTuple):
    """A piece of text, from one offset to another, in which the macro is defined."""

    start: int
    end: int
    function: Function | None  # if it is the body of a function for host and device


def define_architecture(source: Source, syntax: Syntax, edits: list[Edit]) -> Iterator[Edit]:
    """Defines `__CUDA_ARCH__` in device code. A function for host and device has its body twice."""
    for start, end, function in find_device_regions(source, syntax):
        before, after = define(source, start), undefine(source, end)
        if function:
            inner = [Edit(e.start - start, e.end - start, e.text) for e in edits if start <= e.start and e.end <= end]
            host_body = apply(inner, source.text[start:end])
            before = f" if (::emulator::is_device_code()) {{{before}"
            after += f"}} else {{\n{line_directive(source, start)}{host_body}}}"
        yield insert(start, before)
        yield insert(end, after)


def find_device_regions(source: Source, syntax: Syntax) -> Iterator[DeviceRegion]:
    """The bodies of device functions that may ask for the macro, and the groups that select device functions."""
    asking = find_asking_words(source)
    host_words = find_qualifier_words(source, "__host__")
    for function in syntax.functions:
        body = range(function.opener + 1, function.closer)
        is_code = not source.tokens[function.opener].directive
        if is_code and any(asks(source, index, asking) for index in body):
            start, end = source.tokens[function.opener].end, source.tokens[function.closer].start
            yield DeviceRegion(start, end, function if is_for_host(source, function, host_words) else None)
    for opener, closer in find_groups(source):
        selected = [f for f in syntax.functions if opener < f.opener < closer]
        is_inside = syntax.device_code[opener]
        if not is_inside and any(not is_for_host(source, function, host_words) for function in selected):
            start = source.text.rfind("\n", 0, source.tokens[opener].start) + 1
            end = source.text.find("\n", source.tokens[closer].end) + 1 or len(source.text)
            yield DeviceRegion(start, end, None)


def find_asking_words(source: Source) -> set[str]:
    """The macro, and this file's macros that contain it."""
    words = {ARCHITECTURE}
    for _ in source.macro_bodies:
        known = len(words)
        for body in source.macro_bodies.values():
            name = body - 1 if source.is_name(body - 1) else source.matching.get(body - 1, body) - 1
            if any(source.is_(k, *words) for k in range(body, source.bounds(body - 1)[1])) and source.is_name(name):
                words.add(source.tokens[name].text)
        if len(words) == known:
            break
    return words


def asks(source: Source, index: int, words: set[str]) -> bool:
    """Whether a token uses one of the words, or begins an `#if`, which may use a macro from another file."""
    return source.is_(index, *words) or (source.is_(index, "#") and source.is_(index + 1, *CONDITIONS))


def find_groups(source: Source) -> Iterator[tuple[int, int]]:
    """The first `#` and the last of each `#if` that asks for the macro in its conditions and is inside no other."""
    groups: list[list[int | bool]] = []  # the `#` of each open group, and whether it asks
    for index in source.find("#"):
        if source.is_(index + 1, "if", "ifdef", "ifndef"):
            groups.append([index, False])
        if source.is_(index + 1, *CONDITIONS) and groups:
            _, end = source.bounds(index)
            groups[-1][1] |= any(source.is_(k, ARCHITECTURE) for k in range(index, end))
        if source.is_(index + 1, "endif") and groups:
            opener, is_asking = groups.pop()
            if is_asking and not any(asking for _, asking in groups):
                yield int(opener), index


def define(source: Source, offset: int) -> str:
    """The text at the start of a region; the next line has the number of the original."""
    lines = [f'#pragma push_macro("{ARCHITECTURE}")', f"#define {ARCHITECTURE} {ARCHITECTURE_VALUE}"]
    return "\n" + "\n".join([*lines, line_directive(source, offset)])


def undefine(source: Source, offset: int) -> str:
    """The text at the end of a region."""
    return f'\n#pragma pop_macro("{ARCHITECTURE}")\n{line_directive(source, offset)}'


def line_directive(source: Source, offset: int) -> str:
    """Gives the rest of the line at an offset its number."""
    return f"#line {source.text.count(chr(10), 0, offset) + 1}\n"
