"""The rule for kernels whose address the program takes: for cudaLaunchKernel, graphs, and queries of kernels."""

from __future__ import annotations

from collections.abc import Iterator

from .rules import Edit, insert
from .syntax import Syntax
from .tokens import Source

# Functions whose first argument is the kernel that they launch.
LAUNCHERS = ("cudaLaunchKernel", "cudaFuncGetName")


def register_kernel_addresses(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A kernel that becomes a `void*`, or that a function launches by its address, is registered with its name."""
    for index in source.find(*syntax.kernels):
        end = index + 1
        if source.is_(end, "<"):
            end = find_template_closer(source, end) + 1
        start = index
        while source.is_(start - 1, "::") and source.is_name(start - 2):
            start -= 2
        is_launched = source.is_(start - 1, "(") and source.is_(start - 2, *LAUNCHERS) and source.is_(end, ",")
        before = start - source.is_(start - 1, "&") - 1
        if not is_launched and not is_cast_to_void(source, before):
            continue
        overloads = syntax.kernels[source.tokens[index].text]
        names = ", ".join("const " * each.to_const + each.name for each in overloads[0])
        name = source.literal(source.spelling(start, end), index)
        yield insert(source.tokens[before + 1].start, "::emulator::kernel_address(")
        yield insert(source.tokens[end - 1].end, f', {name}, "{names}")')


def find_template_closer(source: Source, opener: int) -> int:
    """The `>` that ends the template arguments that begin at a `<`; the `<` itself if there is none."""
    depth, index = 0, opener
    while index < len(source.tokens) and not source.is_(index, ";", "{", "}", ")"):
        depth += source.is_(index, "<") - source.is_(index, ">")
        if depth == 0:
            return index
        index = source.after(index)
    return opener


def is_cast_to_void(source: Source, last: int) -> bool:
    """Whether a cast to `void*` ends at a token: `(const void*)` or `reinterpret_cast<void*>(`."""
    if source.is_(last, "(") and source.is_(last - 1, ">"):
        last -= 1
    elif not source.is_(last, ")"):
        return False
    words = []
    while source.is_(last - 1, "void", "const", "*"):
        last -= 1
        words.append(source.tokens[last].text)
    return sorted(words) in (["*", "void"], ["*", "const", "void"]) and source.is_(last - 1, "(", "<")
