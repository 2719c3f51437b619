"""Rewrites CUDA C++ so that g++ compiles it for the emulator: `python -m common.emulator.rewrite FILE -o OUT`.

Everything is left where it is, in its line, except
- `kernel<<<grid, block>>>(x)`, which becomes a call of `emulator::launch`;
- declarations with `__shared__`, which become references into the memory of a block (see shared.py);
- in host code, what asks for tensors on a CUDA device: on the emulator they are on the CPU.
The first line of the result is `#line 1 "FILE"`, after what nvcc includes by itself, so that messages and debuggers
point at the original. What the emulator cannot run is refused with a `UserError`.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ..errors import UserError
from . import shared
from .tokens import Edit, Source, read

# What nvcc includes by itself, and how a launch inside a macro learns its kernel's name.
CUDA_PROLOGUE = "#include <cuda_runtime.h>\n"
NAME_PROLOGUE = "#undef EMULATOR_NAME\n#define EMULATOR_NAME(...) #__VA_ARGS__\n"
STATEMENTS = ("if", "for", "while", "switch", "return", "else", "do", "case", "co_await", "co_return", "constexpr")
TEXTURES = re.compile(r"(tex|surf)(1D|2D|3D|Cubemap)\w*|(texture|surface)|cuda(Texture|Surface)Object_t")
# Headers that come with CUDA. On some machines they are there, and would be of no use.
CUDA_HEADERS = re.compile(
    r"(cub|thrust|cuda|cute|cutlass|cooperative_groups)/.*"
    r"|(cooperative_groups|mma|cuda_|curand|cublas|cudnn|cufft|cusparse|cusolver|nvrtc|nvtx|texture_|surface_)\w*\.h"
)
INCLUDE = Path(__file__).parent / "include"
DEVICE_ENUMS = ("DeviceType", "DispatchKey", "Backend")


def rewrite(source: Source) -> str:
    """The text for g++. Raises `UserError` with file and line for what the emulator cannot run."""
    functions = shared.device_functions(source)
    refuse(source, functions)
    edits = [*launches(source, functions), *shared.declarations(source, functions), *host_devices(source)]
    text, last = [], 0
    for start, end, new in sorted(edits):
        text += [source.text[last:start], new]
        last = end
    text.append(source.text[last:])
    is_cuda = source.path.endswith((".cu", ".cuh"))
    prologue = CUDA_PROLOGUE * is_cuda + NAME_PROLOGUE * any("EMULATOR_NAME" in edit.text for edit in edits)
    path = source.path.replace("\\", "\\\\").replace('"', '\\"')
    return f'{prologue}#line 1 "{path}"\n{"".join(text)}'


def refuse(source: Source, functions: list[shared.Function]) -> None:
    """Names the first thing that only a GPU can run."""
    is_cuda = source.path.endswith((".cu", ".cuh"))
    for index, token in enumerate(source.tokens):
        if token.kind != "name" or index in source.skipped:
            continue
        if token.text == "include" and token.directive and source.is_(index - 1, "#"):
            header = source.rest_of_line(index).strip('<>" ')
            if CUDA_HEADERS.fullmatch(header) and not (INCLUDE / header).exists():
                raise source.refuse(index, f"the emulator has no <{header}>")
        if token.text in ("asm", "__asm__", "__asm") and (is_cuda or shared.function_at(index, functions)):
            raise source.refuse(index, "the emulator cannot run inline PTX (asm)")
        if token.text == "__managed__":
            raise source.refuse(index, "the emulator has no __managed__ variables")
        if TEXTURES.fullmatch(token.text) and (token.text[:4] == "cuda" or source.is_(index + 1, "<", "(")):
            raise source.refuse(index, f"the emulator has no textures and surfaces ({token.text})")


def launches(source: Source, functions: list[shared.Function]) -> list[Edit]:
    """Edits for every `kernel<<<...>>>`; the arguments that follow it stay as they are."""
    edits = []
    for index in range(len(source.tokens)):
        if not is_launch(source, index):
            continue
        if index not in source.skipped and shared.function_at(index, functions):
            raise source.refuse(index, "the emulator cannot launch a kernel from a kernel (dynamic parallelism)")
        start, end = kernel_start(source, index), configuration_end(source, index + 3, 0)
        if start is None:
            raise source.refuse(index, "no kernel in front of this <<<")
        if end is None:
            raise source.refuse(index, "this <<< has no >>>( that ends it")
        name = source.spelling(start, index)
        quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if source.tokens[index].directive:  # a parameter of the macro may be a part of the name
            quoted = f"EMULATOR_NAME({name})"
        tokens = source.tokens
        opening = f"::emulator::launch({quoted}, [=](auto... emulator_args) {{ "
        edits += [
            Edit(tokens[start].start, tokens[start].start, opening),
            Edit(tokens[index].start, tokens[index + 2].end, "(emulator_args...); }, ::emulator::config("),
            Edit(tokens[end].start, tokens[end + 2].end, "))"),
        ]
    return edits


def is_launch(source: Source, index: int) -> bool:
    """Whether `<<<` begins here. Some editors write it as `<< <`; `operator<<<T>` is none."""
    three = all(source.is_(k, "<") for k in range(index, index + 3))
    if not three or not (source.touches(index) and source.touches(index + 1)):
        return False
    return not source.is_(index - 1, "<", "operator") and not source.is_(index + 3, "<")


def kernel_start(source: Source, launch: int) -> int | None:
    """Where the expression that ends in front of a `<<<` begins: `f`, `a::f<T>`, `(f)`, `f[i]`, `get(i)`, `x.f`."""
    first, _ = source.bounds(launch)
    last = launch - 1
    while last >= first:
        start = primary_start(source, last, first)
        if start is None:
            return None
        while start > first and source.is_(start - 1, "template", "typename"):
            start -= 1
        before = start - 1
        if before < first or not source.is_(before, "::", ".", "->"):
            return start
        is_global = source.is_(before, "::") and not (
            before > first and (source.is_(before - 1, ">") or is_plain_name(source, before - 1))
        )
        if is_global:
            return before
        last = before - 1
    return None


def primary_start(source: Source, last: int, first: int) -> int | None:
    """The start of a name with its template arguments, subscripts and calls, or of an expression in brackets."""
    while last >= first:
        if is_plain_name(source, last):
            return last
        if source.is_(last, ">"):
            opener = template_opener(source, last, first)
            return None if opener is None else opener - 1
        opener = source.partner.get(last)
        if opener is None or opener < first or not source.is_(last, ")", "]"):
            return None
        before = opener - 1
        is_suffix = before >= first and (
            is_plain_name(source, before)
            or source.is_(before, "]", ">")
            or (source.is_(before, ")") and not is_condition(source, before))
        )
        if not is_suffix:
            return opener if source.is_(last, ")") else None
        last = before
    return None


def is_plain_name(source: Source, index: int) -> bool:
    """Whether a token is a name that is no word of the language with a meaning in front of an expression."""
    return source.is_name(index) and not source.is_(index, *STATEMENTS)


def is_condition(source: Source, closer: int) -> bool:
    """Whether `)` ends the brackets of an `if` or a loop."""
    return source.is_(source.partner.get(closer, 0) - 1, *STATEMENTS)


def template_opener(source: Source, closer: int, first: int) -> int | None:
    """The `<` whose template arguments end here. A `<` that compares, or two that shift, are passed over."""
    depth, index = 1, closer - 1
    while index > first:
        if source.is_(index, ")", "]", "}"):
            index = source.partner.get(index, first)
        elif source.is_(index, ";", "(", "[", "{"):
            return None
        elif source.is_(index, ">"):
            depth += 1
        elif source.is_(index, "<") and source.is_(index - 1, "<"):
            index -= 1
        elif source.is_(index, "<") and source.is_name(index - 1):
            depth -= 1
            compares = source.is_(index - 2, "<", "+", "-", "*", "/", "%", "&", "|", "==", "!")
            if depth == 0 and not compares:
                return index
            depth += depth == 0
        index -= 1
    return None


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


def host_devices(source: Source) -> list[Edit]:
    """Edits that make host code expect CPU tensors, and register for the CPU, where it says CUDA."""
    edits = []
    for index, token in enumerate(source.tokens):
        new = None
        if token.kind != "name":
            continue
        if token.text == "is_cuda" and source.is_(index - 1, ".", "->", "::"):
            new = "is_cpu"
        elif token.text == "kCUDA":
            new = "kCPU"
        elif token.text.endswith("CUDA"):  # CUDA, AutogradCUDA, AutocastCUDA
            is_enum = source.is_(index - 1, "::") and source.is_(index - 2, *DEVICE_ENUMS)
            is_key = source.is_(index - 4, "TORCH_LIBRARY_IMPL") and source.is_(index - 1, ",")
            new = token.text.replace("CUDA", "CPU") if is_enum or is_key else None
        if new:
            edits.append(Edit(token.start, token.end, new))
    return edits


def main() -> int:
    """The command line. Refusals become one line and status 1."""
    parser = argparse.ArgumentParser(prog="python -m common.emulator.rewrite", description=rewrite.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", dest="output", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        text = rewrite(read(arguments.file, str(arguments.file)))
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="utf-8")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: cannot write {arguments.output}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
