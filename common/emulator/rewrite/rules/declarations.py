"""Declarations of variables in the memory of a block or a device, and of managed ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..syntax import Syntax
from ..tokens import Source
from ..variables import SharedDeclaration, SharedVariable
from .edits import Edit, insert


def rewrite_shared_variables(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A `__shared__` variable becomes a reference into the memory of the block that runs.

    One at file scope becomes a function that returns the reference, and each device function that names the variable
    begins with a local reference of that name.
    """
    for declared in syntax.shared:
        qualifier = declared.qualifier
        start, end = source.tokens[declared.start].start, source.tokens[declared.end - 1].end
        statements = [declared.type_definition] if declared.type_definition else []
        for number, variable in enumerate(declared.variables):
            key = str(10000 * source.line(qualifier) + source.column(qualifier) + number)
            if source.tokens[qualifier].directive:  # one declaration, but a variable in each use of the macro
                key += " + 10000000000 * __COUNTER__"
            name = variable.name
            reference = format_shared_reference(declared, variable, key, source.literal(name, qualifier))
            if declared.is_at_file_scope:
                reference = f"static decltype(auto) emulator_shared_{name}() {{ {reference}; return {name}; }}"
                yield from declare_local_references(source, syntax, end, name)
            statements.append(reference)
        line_breaks = "".join(re.findall(r"\\?\n", source.text[start:end]))
        yield Edit(start, end, "; ".join(statements) + line_breaks)


def format_shared_reference(declared: SharedDeclaration, variable: SharedVariable, key: str, literal: str) -> str:
    """The statement that declares the reference; `literal` is the variable's name."""
    kind, name = variable.type, variable.name
    brackets = [f"[{extent}]" if re.fullmatch(r"\w*", extent) else f"[({extent})]" for extent in variable.extents]
    extents, inner = "".join(brackets), "".join(brackets[1:])
    if declared.is_dynamic:
        memory = f"::emulator::dynamic_shared<{kind}{inner}>({literal})"
        if not extents:
            return f"{kind}& {name} = *{memory}"
        reference = f"{kind} (*{name}){inner} = {memory}" if inner else f"{kind}* {name} = {memory}"
        if declared.is_at_file_scope or declared.type_definition:
            return reference
        # In C++, and so for nvcc, all `extern` declarations of a name are one variable, of one type.
        return f"extern {kind} emulator_dynamic_{name}[]{inner}; {reference}"
    target = f"{kind} (&{name}){extents}" if extents else f"{kind}& {name}"
    if declared.alignment:
        aligned = f"struct {declared.alignment} emulator_aligned_{name} {{ {kind} value{extents}; }}"
        return f"{aligned}; {target} = ::emulator::shared<emulator_aligned_{name}>({key}, {literal}).value"
    return f"{target} = ::emulator::shared<{kind}{extents}>({key}, {literal})"


def declare_local_references(source: Source, syntax: Syntax, after: int, name: str) -> Iterator[Edit]:
    """Declares the reference in each device function that begins after an offset and names the variable."""
    for function in syntax.functions:
        opener = source.tokens[function.opener]
        uses = [k for k in source.find(name) if function.qualifier <= k < function.closer]
        is_hidden = any(k < function.opener for k in uses)  # by a parameter
        is_named = any(not source.is_(k - 1, ".", "->", "::") for k in uses)
        if opener.start >= after and is_named and not is_hidden:
            yield insert(opener.end, f" decltype(auto) {name} = emulator_shared_{name}();")


def register_file_variables(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """Device variables at file scope are registered with their names.

    A `__managed__` variable becomes a reference to managed memory, and its definition the initial value of it.
    """
    for declared in syntax.variables:
        tokens = [source.tokens[index] for index in declared.names]
        end = source.tokens[declared.end].end
        if declared.qualifier == "__managed__":
            yield from (insert(token.start, "emulator_initial_") for token in tokens)
            yield insert(end, "".join(declare_managed(token.text, declared.is_extern) for token in tokens))
        else:
            call = "constant" if declared.qualifier == "__constant__" else "variable"
            registrations = (
                f' static const bool emulator_known_{name} = ::emulator::{call}({name}, "{name}");'
                for name in (token.text for token in tokens)
            )
            if not declared.is_extern:  # g++ then refuses a value that only code can compute, as nvcc does
                yield insert(source.tokens[declared.start].start, "__constinit ")
            yield insert(end, "".join(registrations))


def declare_managed(name: str, is_extern: bool) -> str:
    """The declaration of the reference to the managed memory of a variable."""
    type_ = f"decltype(emulator_initial_{name})&"
    return (
        f" extern {type_} {name};"
        if is_extern
        else (f' {type_} {name} = ::emulator::managed(emulator_initial_{name}, "{name}");')
    )
