"""Launches of kernels: by `<<<...>>>`, by a kernel's address, and as clusters."""

from __future__ import annotations

from collections.abc import Iterator

from ..syntax import LaunchExpression, Syntax, has_pack
from ..tokens import Source
from .edits import Edit, insert


def rewrite_launches(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """`kernel<<<grid, block>>>(x)` becomes a call of `emulator::launch`, with names for reports."""
    tokens = source.tokens
    for launch in syntax.launches:
        name = source.literal(source.spelling(launch.start, launch.opener), launch.opener)
        opening = f"::emulator::launch({name}, {name_arguments(source, launch)}, [=](auto&&... emulator_args) {{ "
        configuration = "(emulator_args...); }, ::emulator::config("
        yield from add_argument_types(source, launch)
        yield insert(tokens[launch.start].start, opening)
        yield Edit(tokens[launch.opener].start, tokens[launch.opener + 2].end, configuration)
        yield Edit(tokens[launch.closer].start, tokens[launch.closer + 2].end, "))")


def name_arguments(source: Source, launch: LaunchExpression) -> str:
    """A literal with the names of the kernel's parameters, or the text of the argument if a name is missing.

    `const` precedes the name of a pointer to const, because the host may pass a pointer to non-const.
    """
    texts = [source.spelling(each.start, each.stop) for each in launch.arguments]
    if launch.signature is None:
        return source.literal(", ".join(texts), launch.opener)
    if has_pack(source, launch.arguments):
        texts = ["" for _ in launch.signature]
    pairs = list(zip(launch.signature, texts, strict=False))
    names = ", ".join("const " * parameter.to_const + (parameter.name or text) for parameter, text in pairs)
    return f'"{names}"' if all(parameter.name for parameter, _ in pairs) else source.literal(names, launch.opener)


def add_argument_types(source: Source, launch: LaunchExpression) -> Iterator[Edit]:
    """Marks arguments that a generic lambda cannot forward: `0` or `NULL` for a pointer, `{...}`, and references."""
    signature = None if has_pack(source, launch.arguments) else launch.signature
    for number, each in enumerate(launch.arguments):
        first, last = source.tokens[each.start], source.tokens[each.stop - 1]
        if len(each) == 1 and first.text in ("0", "NULL"):
            if launch.signature is None:
                yield Edit(first.start, first.end, "::emulator::Zero{}")
            elif launch.signature[number].is_pointer:
                yield Edit(first.start, first.end, "nullptr")
        elif launch.signature and first.text == "{":
            yield insert(first.start, launch.signature[number].type)
        elif signature and signature[number].is_reference:
            yield insert(first.start, "::emulator::reference(")
            yield insert(last.end, ")")


def register_kernel_values(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A kernel that is used as a value is recorded with its name and the names of its parameters."""
    for value in syntax.kernel_values:
        name = source.literal(source.spelling(value.start, value.end), value.start)
        names = ", ".join("const " * parameter.to_const + parameter.name for parameter in value.signature)
        first = value.start
        while source.is_(first - 1, "&"):
            first -= 1
        yield insert(source.tokens[first].start, "::emulator::kernel_address(")
        yield insert(source.tokens[value.end - 1].end, f', {name}, "{names}")')


def declare_bounds(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A kernel with `__launch_bounds__` begins with a call that ends a launch of larger blocks."""
    for index, opener, closer, name in syntax.bounds:
        sizes = source.spelling(index + 2, source.after(index + 1) - 1)
        yield insert(source.tokens[opener].end, f" ::emulator::declare_launch_bounds({sizes});")
        if name:
            kept = f'::emulator::keep_launch_bounds("{name}", {sizes})'
            yield insert(source.tokens[closer].end, f" static const bool emulator_bounds_{index} = {kept};")


def declare_clusters(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A kernel with `__cluster_dims__` begins with a call that tells the launch."""
    for index, opener in syntax.clusters:
        sizes = source.spelling(index + 2, source.after(index + 1) - 1)
        yield insert(source.tokens[opener].end, f" ::emulator::declare_cluster({sizes});")
