"""Code that nvcc refuses, and that g++ would compile: rejected here with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .functions import TYPE_KEYWORDS, find_parameters
from .functions import Function as DeviceFunction
from .spaces import DEVICE, HOST, KERNEL, VARIABLE, Function, Spaces
from .tokens import Source

INCLUDE = Path(__file__).parents[1] / "runtime" / "include"
NO_EXCEPTIONS = ("throw", "try", "catch")
# Functions and classes of the standard libraries that device code cannot use. Those of C also count without std::.
OF_C = ("rand", "srand", "time", "exit", "getenv", "system", "fopen", "fclose", "fprintf", "fputs", "puts", "fread")
OF_CPP = (
    *("sort", "stable_sort", "accumulate", "transform", "to_string", "make_unique", "make_shared", "shuffle"),
    *("vector", "string", "map", "unordered_map", "set", "unordered_set", "deque", "list", "function", "thread"),
    *("unique_ptr", "shared_ptr", "mutex", "lock_guard", "mt19937", "cout", "cerr", "cin", "endl", "ostream"),
)
Refusals = Iterator[tuple[int, str]]


def find_refused(
    source: Source, bodies: list[tuple[int, int]], functions: list[Function], spaces: Spaces, device_code: bytearray
) -> Refusals:
    """The tokens of code that nvcc refuses, with the reason, in no particular order, also in branches of `#if`.

    `bodies` are the braces of the functions for the device alone, and `spaces` include those of other headers.
    """
    yield from find_exceptions(source, bodies)
    yield from find_library_calls(source, bodies)
    yield from find_calls_of_host(source, bodies, functions, spaces)
    yield from find_variables_of_host(source, bodies, spaces)
    yield from find_calls_of_device(source, functions, spaces, device_code)


def find_exceptions(source: Source, bodies: list[tuple[int, int]]) -> Refusals:
    """`throw` and `try` in device code."""
    for index in source.find(*NO_EXCEPTIONS):
        if body_around(index, bodies):
            text = source.tokens[index].text
            yield index, f"device code has no exceptions ({text}): return an error, or call __trap"


def find_library_calls(source: Source, bodies: list[tuple[int, int]]) -> Refusals:
    """Functions and classes of the standard libraries that are only for the host, in device code."""
    for index in source.find(*OF_C, *OF_CPP):
        name = source.tokens[index].text
        in_std = source.is_(index - 1, "::") and source.is_(index - 2, "std")
        is_call = name in OF_C and source.is_(index + 1, "(") and not source.is_(index - 1, ".", "->", "::")
        is_own = source.is_name(index - 1) and not source.is_(index - 1, "return", "else")
        if (in_std or (is_call and not is_own)) and body_around(index, bodies):
            yield index, f"{'std::' * in_std}{name} is for the host: device code cannot use it"


def find_calls_of_host(
    source: Source, bodies: list[tuple[int, int]], functions: list[Function], spaces: Spaces
) -> Refusals:
    """Calls of functions without `__device__` in device code."""
    names = [name for name, of in spaces.items() if of == {HOST} and not is_builtin(name)]
    members = {function.name: function.of_class for function in functions if function.of_class}
    for index in called(source, names):
        body = body_around(index, bodies)
        if body is None:
            continue
        name = source.tokens[index].text
        is_member = source.is_(index - 1, ".", "->")
        if is_member != (name in members) or (is_member and not is_object_of(source, index - 2, members[name], body)):
            continue
        if not is_declared_in(source, name, body):
            shown = f"{members[name]}::{name}" if is_member else name
            yield index, f"{shown} is a function for the host: to call it in device code, declare it __device__"


def find_calls_of_device(
    source: Source, functions: list[Function], spaces: Spaces, device_code: bytearray
) -> Refusals:
    """Calls of `__device__` functions and of kernels, without `<<<`, in host code that is no template."""
    reasons = {
        DEVICE: "is a __device__ function: to call it in host code, declare it __host__ __device__",
        KERNEL: "is a kernel: a call of it needs <<<grid, block>>>",
    }
    hosts = [function for function in functions if function.space == HOST and not function.is_template]
    names = [name for name, of in spaces.items() if len(of) == 1 and of <= {*reasons} and not is_builtin(name)]
    for index in called(source, names):
        function = next((function for function in hosts if function.opener < index < function.closer), None)
        if function is None or device_code[index] or source.is_(index - 1, ".", "->"):
            continue
        name = source.tokens[index].text
        if not is_declared_in(source, name, (function.start, function.closer)):
            yield index, f"{name} {reasons[next(iter(spaces[name]))]}"


def find_variables_of_host(source: Source, bodies: list[tuple[int, int]], spaces: Spaces) -> Refusals:
    """Variables of the host in device code, if no parameter or variable there has their name."""
    defined = defined_macros(source)
    for name in [name for name, of in spaces.items() if of == {VARIABLE} and name not in defined]:
        for index in source.find(name):
            body = body_around(index, bodies)
            if body is None or not is_value(source, index):
                continue
            if not is_declared_in(source, name, (start_of_parameters(source, body[0]), body[1])):
                yield index, f"{name} is a variable of the host: device code can only use it if it is __device__"


def is_value(source: Source, index: int) -> bool:
    """Whether a name may be that of a variable: no member, no directive, and in no namespace that is unknown."""
    is_part = source.is_(index - 1, ".", "->", "[") or source.is_(index + 1, "::", "<", ":")
    return not (is_part or source.tokens[index].directive or is_qualified_by_other(source, index))


def start_of_parameters(source: Source, opener: int) -> int:
    """The token before the parameters of the function with this `{`."""
    closer = next((k for k in range(opener - 1, -1, -1) if source.is_(k, ")", ";", "}")), opener)
    return source.matching.get(closer, opener) - 1


def defined_macros(source: Source) -> set[str]:
    """The names of the macros that a source defines."""
    return {source.text_of(index + 1) for index in source.find("define") if source.is_(index - 1, "#")}


def called(source: Source, names: list[str]) -> Iterator[int]:
    """The calls of functions of these names that are no macros, in code outside of directives."""
    defined = defined_macros(source)
    for name in names:
        if name in defined:
            continue
        for index in source.find(name):
            is_call = source.is_(index + 1, "(") and not source.tokens[index].directive
            if is_call and not is_qualified_by_other(source, index):
                yield index


def is_qualified_by_other(source: Source, index: int) -> bool:
    """Whether a name is that of a namespace or class which the source does not have: `std::f`."""
    if not source.is_(index - 1, "::"):
        return False
    owner = source.tokens[index - 2].text if source.is_name(index - 2) else ""
    return not any(source.is_(k - 1, "namespace") for k in source.find(owner)) if owner else False


def is_declared_in(source: Source, name: str, body: tuple[int, int]) -> bool:
    """Whether a function has a variable of this name: `auto gate = [](float x) { ... };`, `int x, y;`."""
    return any(body[0] < k < body[1] and is_declaration(source, k) for k in source.find(name))


def is_declaration(source: Source, index: int) -> bool:
    """Whether a name follows a type, or a comma between variables, and is no operand."""
    follows_type = source.is_name(index - 1) or source.is_(index - 1, "&", "*", ">")
    follows_type = follows_type and not source.is_(index - 1, "return", "else", "do")
    is_next = source.is_(index - 1, ",") and source.is_(next(source.enclosing(index), -1), "{")
    return (follows_type or is_next) and source.is_(index + 1, "=", "{", ";", ",", ")", "[", ":", "(")


def is_object_of(source: Source, index: int, of_class: str, body: tuple[int, int]) -> bool:
    """Whether a name in a body is a variable or a parameter of a class: `S x`, `const S& x`, `S* x`."""
    if not source.is_name(index):
        return False
    first = start_of_parameters(source, body[0])
    for k in source.find(source.tokens[index].text):
        before = k - 1
        while source.is_(before, "&", "*", "const", "__restrict__"):
            before -= 1
        if first < k < body[1] and source.is_(before, of_class):
            return True
    return False


def body_around(index: int, bodies: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The braces of the body that a token is in; None if it is in none."""
    return next((body for body in bodies if body[0] < index < body[1]), None)


@cache
def builtin_names() -> frozenset[str]:
    """The names that the emulator's own headers may declare as functions: CUDA's, and those of the C library."""
    texts = (path.read_text(encoding="utf-8") for path in INCLUDE.rglob("*") if path.is_file())
    return frozenset(name for text in texts for name in re.findall(r"\b([A-Za-z_]\w*)\s*\(", text))


def is_builtin(name: str) -> bool:
    """Whether device code has functions of this name, too, which overload resolution may choose."""
    return name in builtin_names() or f"{name}f" in builtin_names() or name.removesuffix("f") in builtin_names()


def refuse_results(source: Source, kernels: list[DeviceFunction]) -> Refusals:
    """Kernels that return a value."""
    for kernel in kernels:
        opener = find_parameters(source, kernel.qualifier + 1)
        if opener is None:
            continue
        types = [k for k in range(kernel.qualifier + 1, opener - 1) if source.is_(k, *TYPE_KEYWORDS)]
        returned = [source.tokens[k].text for k in types if not source.is_(k, "const", "volatile", "typename")]
        if returned and ("void" not in returned or source.is_(types[-1] + 1, "*")):
            yield kernel.qualifier, f"a kernel cannot return a value: make {source.tokens[opener - 1].text} void"


def find_lambdas(source: Source, arguments: list[range]) -> Refusals:
    """Lambdas without `__device__` among the arguments of a launch, written there or in a variable."""
    reason = "a kernel can call only a lambda for the device: write [=] __device__ (...) { ... }, for nvcc with"
    for argument in arguments:
        index = argument.start
        if len(argument) == 1 and source.is_name(index):
            index = next((k + 2 for k in source.find(source.tokens[index].text) if is_lambda(source, k)), index)
        if source.is_(index, "[") and not source.is_(source.after(index), "__device__", "__host__"):
            yield argument.start, f"{reason} --extended-lambda"


def is_lambda(source: Source, index: int) -> bool:
    """Whether a variable gets a lambda as its value: `auto f = [](float x) { ... };`."""
    return source.is_(index - 1, "auto") and source.is_(index + 1, "=") and source.is_(index + 2, "[")
