"""Rewrites CUDA C++ so that g++ compiles it for the emulator: `python -m common.emulator.rewrite FILE -o OUT`.

Everything is left where it is, in its line, except
- `kernel<<<grid, block>>>(x)`, which becomes a call of `emulator::launch`;
- declarations with `__shared__`, which become references into the memory of a block (see shared.py);
- in device code, what would escape the checks: copies and the heap of the C library (calls.py), and variables of a
  file, which are registered (variables.py);
- in host code, what asks for tensors on a CUDA device: on the emulator they are on the CPU;
- in host code, what takes a tensor's memory, for the sake of names (see tensors.py).
The first line of the result is `#line 1 "FILE"`, after what nvcc includes by itself, so that messages and debuggers
point at the original. What the emulator cannot run is refused with a `UserError`.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from ..errors import UserError
from . import calls, launches, shared, tensors, variables
from .tokens import Edit, Source, read

# What nvcc includes by itself, and how a launch inside a macro learns its kernel's name.
CUDA_PROLOGUE = "#include <cuda_runtime.h>\n"
NAME_PROLOGUE = "#undef EMULATOR_NAME\n#define EMULATOR_NAME(...) #__VA_ARGS__\n"
TEXTURES = re.compile(r"(tex|surf)(1D|2D|3D|Cubemap)\w*|(texture|surface)|cuda(Texture|Surface)Object_t")
# Headers that come with CUDA. On some machines they are there, and would be of no use.
CUDA_HEADERS = re.compile(
    r"(cub|thrust|cuda|cute|cutlass|cooperative_groups)/.*"
    r"|(cooperative_groups|mma|cuda_|curand|cublas|cudnn|cufft|cusparse|cusolver|nvrtc|nvtx|texture_|surface_)\w*\.h"
)
INCLUDE = Path(__file__).parent / "include"
REGISTERS = ("TORCH_LIBRARY_IMPL", "EXPAND_TORCH_LIBRARY_IMPL")
DEVICE_ENUMS = ("DeviceType", "DispatchKey", "Backend")


def rewrite(source: Source) -> str:
    """The text for g++. Raises `UserError` with file and line for what the emulator cannot run."""
    functions = shared.device_functions(source)
    refuse(source, functions)
    of_tensors = tensors.tensors(source, functions)
    edits = [
        *launches.launches(source, functions),
        *shared.declarations(source, functions),
        *calls.calls(source, functions),
        *variables.variables(source),
        *host_devices(source),
        *of_tensors,
    ]
    text, last = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        between = source.text[last:start]
        apart = " " * (between.endswith(":") and new.startswith("::"))
        text += [between, apart, new]
        last = end
    text.append(source.text[last:])
    is_cuda = source.path.endswith((".cu", ".cuh"))
    prologue = CUDA_PROLOGUE * is_cuda + tensors.INCLUDE * bool(of_tensors)
    prologue += NAME_PROLOGUE * any("EMULATOR_NAME" in edit.text for edit in edits)
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


def host_devices(source: Source) -> list[Edit]:
    """Edits that make host code expect CPU tensors, and register for the CPU, where it says CUDA.

    What registers for the CPU itself gives way: to a device that no tensor is on.
    """
    edits = []
    for index, token in enumerate(source.tokens):
        new = None
        if token.kind != "name":
            continue
        is_key = source.is_(index - 4, *REGISTERS) and source.is_(index - 1, ",")
        if token.text == "is_cuda" and source.is_(index - 1, ".", "->", "::"):
            new = "is_cpu"
        elif token.text == "kCUDA":
            new = "kCPU"
        elif token.text.endswith("CUDA"):  # CUDA, AutogradCUDA, AutocastCUDA
            is_enum = source.is_(index - 1, "::") and source.is_(index - 2, *DEVICE_ENUMS)
            new = token.text.replace("CUDA", "CPU") if is_enum or is_key else None
        elif token.text.endswith("CPU") and is_key:
            new = token.text.replace("CPU", "PrivateUse1")
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
