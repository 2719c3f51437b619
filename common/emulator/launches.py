"""Rewrites launches: `kernel<<<grid, block>>>(x)` becomes a call of `emulator::launch`, with names for reports."""

from __future__ import annotations

from collections.abc import Iterator

from . import shared
from .expressions import operand_start
from .kernels import Signature, find_signature, is_pack, signatures
from .tokens import Edit, Source


def launches(source: Source, functions: list[shared.Function]) -> list[Edit]:
    """Edits for every `kernel<<<...>>>`. Most of the arguments that follow it stay as they are."""
    known = signatures(source)
    edits = []
    for index in range(len(source.tokens)):
        if not is_launch(source, index):
            continue
        if index not in source.skipped and shared.function_at(index, functions):
            raise source.refuse(index, "the emulator cannot launch a kernel from a kernel (dynamic parallelism)")
        start, end = operand_start(source, index), configuration_end(source, index + 3, 0)
        if start is None:
            raise source.refuse(index, "no kernel in front of this <<<")
        if end is None:
            raise source.refuse(index, "this <<< has no >>>( that ends it")
        signature, arguments = find_signature(source, known, index, end + 3)
        tokens = source.tokens
        name = source.quoted(source.spelling(start, index), index)
        names = names_of(source, signature, arguments, index)
        opening = f"::emulator::launch({name}, {names}, [=](auto... emulator_args) {{ "
        edits += [
            *untyped(source, signature, arguments),
            Edit(tokens[start].start, tokens[start].start, opening),
            Edit(tokens[index].start, tokens[index + 2].end, "(emulator_args...); }, ::emulator::config("),
            Edit(tokens[end].start, tokens[end + 2].end, "))"),
        ]
    return edits


def names_of(source: Source, signature: Signature | None, arguments: list[range], index: int) -> str:
    """A literal: the names of the kernel's parameters; where there are none, what the arguments say.

    `const` stands in front of a pointer to const: the argument that the host gives need not be one.
    """
    texts = [source.spelling(each.start, each.stop) for each in arguments]
    if signature is None:
        return source.quoted(", ".join(texts), index)
    if is_pack(source, arguments):
        texts = ["" for _ in signature]
    names = [
        "const " * parameter.to_const + (parameter.name or text)
        for parameter, text in zip(signature, texts, strict=False)
    ]
    are_own = all(parameter.name for parameter in signature[: len(names)])
    return f'"{", ".join(names)}"' if are_own else source.quoted(", ".join(names), index)


def untyped(source: Source, signature: Signature | None, arguments: list[range]) -> Iterator[Edit]:
    """Edits of what a generic lambda cannot pass on: a literal 0 or NULL for a pointer, and `{...}`."""
    for number, each in enumerate(arguments):
        start, end = source.tokens[each.start].start, source.tokens[each.start].end
        if len(each) == 1 and source.is_(each.start, "0", "NULL"):
            if signature is None:
                yield Edit(start, end, "::emulator::Zero{}")
            elif signature[number].is_pointer:
                yield Edit(start, end, "nullptr")
        elif signature and source.is_(each.start, "{"):
            yield Edit(start, start, signature[number].type)


def is_launch(source: Source, index: int) -> bool:
    """Whether `<<<` begins here. Some editors write it as `<< <`; `operator<<<T>` is none."""
    three = all(source.is_(k, "<") for k in range(index, index + 3))
    if not three or not (source.touches(index) and source.touches(index + 1)):
        return False
    return not source.is_(index - 1, "<", "operator") and not source.is_(index + 3, "<")


def configuration_end(source: Source, start: int, pending: int) -> int | None:
    """The `>>>` that ends a launch. One that closes templates is passed over if a later one can end the launch."""
    _, stop = source.bounds(start - 1)
    index = start
    while index < stop:
        if source.is_(index, "(", "[", "{"):
            index = source.partner.get(index, stop)
        elif source.is_(index, ")", "]", "}", ";"):
            return None
        elif source.is_(index, "<") and source.is_(index + 1, "<"):
            index += 1
        elif source.is_(index, "<") and source.is_name(index - 1):
            pending += 1
        elif source.is_(index, ">"):
            count = 1
            while source.is_(index + count, ">") and source.touches(index + count - 1):
                count += 1
            after = index + count
            in_macro = bool(source.tokens[index].directive)
            if count >= 3 and (source.is_(after, "(") or (in_macro and (after >= stop or source.is_name(after)))):
                later = configuration_end(source, after, pending - count) if pending >= count else None
                return after - 3 if later is None else later
            pending -= min(count, pending)
            index = after - 1
        index += 1
    return None
