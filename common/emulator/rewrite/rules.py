"""The rules of the rewriter. Each rule turns a part of the syntax into text edits that keep every line in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .assembly import find_asm, translate_asm
from .expressions import find_operand
from .syntax import LaunchExpression, Syntax, has_pack
from .tokens import Source
from .variables import SharedDeclaration, SharedVariable

# Macros that only nvcc defines, in .cu files. Headers that the rewriter does not see must not see them, either:
# torch's would include headers of the CUDA Toolkit.
NVCC_MACROS = (
    *("__CUDACC__", "__NVCC__", "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__"),
    *("__CUDA_ARCH_LIST__", "__CUDACC_EXTENDED_LAMBDA__", "__CUDACC_RELAXED_CONSTEXPR__"),
)
C_LIBRARY = ("memcpy", "memmove", "memset", "malloc", "free", "clock")
POINTERS = ("data_ptr", "mutable_data_ptr", "const_data_ptr")
ACCESSORS = ("packed_accessor", "packed_accessor32", "packed_accessor64", "generic_packed_accessor")
EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted")
NEW_EMPTY = ("new_empty", "new_empty_strided")
REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "EXPAND_TORCH_LIBRARY_IMPL")
DEVICE_ENUMS = ("DeviceType", "DispatchKey", "Backend")


class Edit(NamedTuple):
    """A replacement of the text between two offsets."""

    start: int
    end: int
    text: str


def insert(offset: int, text: str) -> Edit:
    """An edit that replaces nothing."""
    return Edit(offset, offset, text)


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


def declare_clusters(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """A kernel with `__cluster_dims__` begins with a call that tells the launch."""
    for index, opener in syntax.clusters:
        sizes = source.spelling(index + 2, source.after(index + 1) - 1)
        yield insert(source.tokens[opener].end, f" ::emulator::declare_cluster({sizes});")


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
        return f"{kind} (*{name}){inner} = {memory}" if inner else f"{kind}* {name} = {memory}"
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
            yield insert(end, "".join(registrations))


def declare_managed(name: str, is_extern: bool) -> str:
    """The declaration of the reference to the managed memory of a variable."""
    type_ = f"decltype(emulator_initial_{name})&"
    return (
        f" extern {type_} {name};"
        if is_extern
        else (f' {type_} {name} = ::emulator::managed(emulator_initial_{name}, "{name}");')
    )


def rewrite_assembly(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """Each asm statement becomes calls of the functions for its PTX instructions."""
    for index in find_asm(source, syntax.device_code):
        closer, text = translate_asm(source, index)
        start, end = source.tokens[index].start, source.tokens[closer].end
        line_breaks = "".join(re.findall(r"\\?\n", source.text[start:end]))
        yield Edit(start, end, text + line_breaks)


def rewrite_device_calls(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """In device code, `memcpy` and its like, `new` and `delete` become the emulator's own, which are checked."""
    for index in source.find(*C_LIBRARY, "new", "delete"):
        token = source.tokens[index]
        if not syntax.device_code[index]:
            continue
        if token.text == "new":
            if not source.is_(index + 1, "(") and not source.is_(index - 1, "operator"):
                yield insert(token.end, " (::emulator::heap())")
        elif token.text == "delete":
            yield from rewrite_delete(source, index)
        elif source.is_(index + 1, "(") and is_c_library_name(source, index):
            first = index
            while source.is_(first - 1, "::", "std"):
                first -= 1
            yield Edit(source.tokens[first].start, token.end, f"::emulator::{token.text}")


def is_c_library_name(source: Source, index: int) -> bool:
    """Whether a name is not a member, of a namespace other than `std`, or being declared."""
    before = index - 1
    if source.is_(before, "::"):
        return not source.is_name(before - 1) or source.is_(before - 1, "std", "return", "else")
    if source.is_(before, ".", "->"):
        return False
    return not source.is_name(before) or source.is_(before, "return", "else", "do", "case")


def rewrite_delete(source: Source, index: int) -> Iterator[Edit]:
    """`delete p` and `delete[] p` become function calls."""
    is_array = source.is_(index + 1, "[")
    first = index + 3 if is_array else index + 1
    if source.is_(index - 1, "=", "operator") or source.is_(first, ";"):  # `= delete`
        return
    end = first
    while end < len(source.tokens) and not source.is_(end, ";", ",", ")", "]", "}", "?", ":"):
        end = source.after(end)
    name = "delete_array" if is_array else "delete_one"
    yield Edit(source.tokens[index].start, source.tokens[first - 1].end, f"::emulator::{name}(")
    yield insert(source.tokens[end - 1].end, ")")


def rename_nvcc_macros(source: Source) -> Iterator[Edit]:
    """`__CUDACC__` and its like become macros that emulator/nvcc.h defines."""
    for index in source.find(*NVCC_MACROS):
        token = source.tokens[index]
        yield Edit(token.start, token.end, f"EMULATOR_NVCC{token.text}")


def rewrite_device_names(source: Source) -> Iterator[Edit]:
    """Rewrites host code that expects, creates or registers for CUDA tensors to use CPU tensors.

    Code that is registered for the CPU itself is registered for a device that no tensor uses.
    """
    words = [text for text in source.positions if text == "is_cuda" or text.endswith(("CUDA", "CPU"))]
    for index in source.find(*words):
        token, new = source.tokens[index], None
        is_key = source.is_(index - 4, *REGISTRATIONS) and source.is_(index - 1, ",")
        if token.text == "is_cuda":
            new = "is_cpu" if source.is_(index - 1, ".", "->", "::") else None
        elif token.text == "kCUDA":
            new = "kCPU"
        elif token.text.endswith("CUDA"):  # CUDA, AutogradCUDA, AutocastCUDA
            is_enum = source.is_(index - 1, "::") and source.is_(index - 2, *DEVICE_ENUMS)
            new = token.text.replace("CUDA", "CPU") if is_enum or is_key else None
        elif is_key:
            new = token.text.replace("CPU", "PrivateUse1")
        if new:
            yield Edit(token.start, token.end, new)


def register_tensors(source: Source, syntax: Syntax) -> Iterator[Edit]:
    """In host code, registers tensors where their pointers are taken, and marks new tensors without values.

    `x.data_ptr<T>()` becomes `::emulator::tensor("x", x).data_ptr<T>()`, and `at::empty(...)` becomes
    `::emulator::fresh(at::empty(...))`. Both return objects other than tensors unchanged. Outer calls come first.
    """
    for index in reversed(source.find(*POINTERS, *ACCESSORS, "data", *EMPTY, *NEW_EMPTY)):
        if not syntax.device_code[index]:
            rule = mark_uninitialised if source.is_(index, *EMPTY, *NEW_EMPTY) else register_tensor
            yield from rule(source, index)


def register_tensor(source: Source, method: int) -> Iterator[Edit]:
    """Registers `x` under its name in `x.data_ptr<T>()` and its like."""
    is_typed = source.is_(method + 1, "<")
    if not is_typed and (source.is_(method, "data") or not source.is_(method + 1, "(")):
        return
    dot = method - 2 if source.is_(method - 1, "template") else method - 1
    start = find_operand(source, dot) if source.is_(dot, ".", "->") else None
    if start is None or source.is_(start - 1, "#"):
        return
    inner = start, dot
    while source.is_(inner[0], "(") and source.matching.get(inner[0]) == inner[1] - 1:
        inner = inner[0] + 1, inner[1] - 1
    name = source.literal(source.spelling(*inner), method)
    is_const = source.is_(method, "const_data_ptr") or (is_typed and source.is_(method + 2, "const"))
    yield insert(source.tokens[start].start, f"::emulator::tensor({name}, ")
    yield insert(source.tokens[dot - 1].end, ", true)" if is_const else ")")


def mark_uninitialised(source: Source, function: int) -> Iterator[Edit]:
    """Marks the memory of the tensor from `at::empty(...)` or `x.new_empty(...)` as uninitialised."""
    if not source.is_(function + 1, "(") or function + 1 not in source.matching:
        return
    is_function = source.is_(function, *EMPTY) and source.is_(function - 1, "::")
    is_function = is_function and source.is_(function - 2, "at", "torch")
    is_method = source.is_(function, *NEW_EMPTY) and source.is_(function - 1, ".", "->")
    start = find_operand(source, function + 1) if is_function or is_method else None
    if start is None or source.is_(start - 1, "#"):
        return
    yield insert(source.tokens[start].start, "::emulator::fresh(")
    yield insert(source.tokens[source.matching[function + 1]].end, ")")
