"""Finds the kernels that host code uses as values, and the clusters that kernels declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .functions import Function, Signature, find_body, find_parameters
from .tokens import Source
from .variables import find_declaration_start, is_file_scope


class KernelValue(NamedTuple):
    """A kernel that is passed to a function, cast or stored: its name with template arguments."""

    start: int
    end: int
    signature: Signature


class ClusterAttribute(NamedTuple):
    """A `__cluster_dims__`, and the `{` of its kernel."""

    index: int
    opener: int


class LaunchBounds(NamedTuple):
    """A `__launch_bounds__`, the braces of its kernel, and the kernel's name, if it is no template."""

    index: int
    opener: int
    closer: int
    name: str


def find_kernel_values(
    source: Source, kernels: dict[str, list[Signature]], device_code: bytearray
) -> Iterator[KernelValue]:
    """The kernels that host code uses as values: `f(k<T>, x)`, `(void*)k`, `auto f = &k<T>;`.

    A name with several signatures is left alone, because only the compiler can tell which one is meant. So is the
    argument of a macro, which may use it as text or launch it.
    """
    defined = (index + 1 for index in source.find("define") if source.is_(index - 1, "#"))
    macros = {source.tokens[index].text for index in defined if source.is_name(index)}
    for name, signatures in kernels.items():
        if len({tuple(signature) for signature in signatures}) > 1:
            continue
        for index in source.find(name):
            if device_code[index] or source.tokens[index].directive or source.is_(index - 1, ".", "->"):
                continue
            end = find_template_end(source, index + 1) if source.is_(index + 1, "<") else index + 1
            start = index
            while source.is_(start - 1, "::"):
                start -= 2 if source.is_name(start - 2) else 1
            before = start - 1
            while source.is_(before, "&"):
                before -= 1
            in_call = is_call(source, next(source.enclosing(start), -1), macros)
            begins = source.is_(before, "=", "?", ":", "return") or ends_cast(source, before)
            begins |= in_call and source.is_(before, "(", ",")
            if end is not None and begins and source.is_(end, ")", ",", ";", ":", "?", "}"):
                yield KernelValue(start, end, signatures[0])


def is_call(source: Source, opener: int, macros: set[str]) -> bool:
    """Whether a token is the `(` of a call, not of a macro, whose name is usually in capital letters."""
    if not source.is_(opener, "(") or not (source.is_name(opener - 1) or source.is_(opener - 1, ">", ")", "]")):
        return False
    name = source.tokens[opener - 1].text
    return name not in macros and not name.isupper()


def find_template_end(source: Source, opener: int) -> int | None:
    """The token after the `>` of a template argument list; None if the `<` only compares."""
    _, stop = source.bounds(opener)
    depth, index = 0, opener
    while index < stop and not source.is_(index, ";", ")", "]", "{", "}"):
        depth += source.is_(index, "<") - source.is_(index, ">")
        index = source.after(index)
        if depth == 0:
            return index
    return None


def ends_cast(source: Source, index: int) -> bool:
    """Whether a `)` ends a cast to a pointer."""
    return source.is_(index, ")") and source.is_(index - 1, "*")


def find_launch_bounds(source: Source, functions: list[Function]) -> Iterator[LaunchBounds]:
    """The `__launch_bounds__` of kernels with a body, outside of macros."""
    openers = {function.opener for function in functions}
    for index in source.find("__launch_bounds__"):
        if source.tokens[index].directive or index in source.skipped or not source.is_(index + 1, "("):
            continue
        opener = find_body(source, index + 1)
        if opener in openers:
            start = find_declaration_start(source, index)
            follows_angle = source.is_(start - 1, ">") and not source.tokens[start - 1].directive
            is_template = follows_angle or not is_file_scope(source, start)
            parameters = find_parameters(source, source.after(index + 1))
            name = "" if is_template or parameters is None else source.tokens[parameters - 1].text
            yield LaunchBounds(index, opener, source.matching[opener], name)


def find_clusters(source: Source, functions: list[Function]) -> Iterator[ClusterAttribute]:
    """The `__cluster_dims__` of kernels. Raises `UserError` for one without the body of a kernel."""
    openers = {function.opener for function in functions}
    for index in source.find("__cluster_dims__"):
        if not source.is_code(index):
            continue
        opener = find_body(source, index + 1)
        if source.tokens[index].directive or opener not in openers:
            reason = "the emulator reads __cluster_dims__ only on a kernel with a body, outside of macros"
            raise source.error(index, reason)
        yield ClusterAttribute(index, opener)
