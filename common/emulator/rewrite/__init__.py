"""Rewrites CUDA C++ so that g++ compiles it for the emulator.

Comments, literals and line numbers stay the same. tokens.py splits a file into tokens. syntax.py finds the launches
and the declarations of the file (functions.py, kernels.py, variables.py), with the help of expressions.py, and
rejects code that the emulator cannot run. Each rule in rules.py turns a part of this syntax into edits:
- `kernel<<<grid, block>>>(x)` becomes a call of `emulator::launch`;
- a kernel that is passed to a function or cast is recorded, so that it can be launched by its address;
- a kernel with `__cluster_dims__` begins with a call that tells the launch;
- `__shared__` variables become references to the memory of a block;
- in device code, the C library's copies and heap become the emulator's, which are checked;
- inline PTX (asm) becomes calls of C++ functions: assembly.py reads the statement, ptx.py the text, and ptx_*.py have
  the instructions;
- `__device__` and `__constant__` variables at file scope are registered, `__managed__` ones get managed memory;
- `__CUDA_ARCH__` is defined in device code (architecture.py), and macros such as `__CUDACC__` in .cu files;
- in host code, CUDA tensors become CPU tensors, and each is registered by name where the code takes its pointer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from . import rules
from .architecture import define, find_device_regions, line_directive, undefine
from .syntax import Syntax, parse
from .tokens import Source, read

__all__ = ["Source", "read", "rewrite"]

# nvcc includes cuda_runtime.h by itself, and defines macros.
CUDA_PROLOGUES = {".cu": '#include "emulator/nvcc.h"\n', ".cuh": "#include <cuda_runtime.h>\n"}
PTX_PROLOGUE = '#include "emulator/ptx.h"\n'
TENSOR_PROLOGUE = '#include "emulator/tensor.h"\n'
# Makes a literal from a macro's arguments: the text of a launch or a tensor in a macro.
NAME_PROLOGUE = "#undef EMULATOR_NAME\n#define EMULATOR_NAME(...) #__VA_ARGS__\n"


def rewrite(source: Source) -> str:
    """The text for g++. Raises `UserError` with file and line for code that the emulator cannot run.

    After the lines that must come first, `#line 1 "FILE"` makes messages and debuggers point to the original.
    """
    syntax = parse(source)
    tensors = list(rules.register_tensors(source, syntax))
    assembly = list(rules.rewrite_assembly(source, syntax))
    edits = [
        *assembly,
        *rules.rewrite_launches(source, syntax),
        *rules.register_kernel_values(source, syntax),
        *rules.declare_clusters(source, syntax),
        *rules.rewrite_shared_variables(source, syntax),
        *rules.rewrite_device_calls(source, syntax),
        *rules.register_file_variables(source, syntax),
        *rules.rewrite_device_names(source),
        *rules.rename_nvcc_macros(source),
        *tensors,
    ]
    edits += list(define_architecture(source, syntax, edits))
    prologue = CUDA_PROLOGUES.get(Path(source.path).suffix, "") + TENSOR_PROLOGUE * bool(tensors)
    prologue += PTX_PROLOGUE * bool(assembly)
    prologue += NAME_PROLOGUE * any("EMULATOR_NAME" in edit.text for edit in edits)
    path = source.path.replace("\\", "\\\\").replace('"', '\\"')
    return f'{prologue}#line 1 "{path}"\n{apply(edits, source.text)}'


def define_architecture(source: Source, syntax: Syntax, edits: list[rules.Edit]) -> Iterator[rules.Edit]:
    """Defines `__CUDA_ARCH__` in device code. A function for host and device has its body twice."""
    for start, end, function in find_device_regions(source, syntax):
        before, after = define(source, start), undefine(source, end)
        if function:
            inner = [
                rules.Edit(e.start - start, e.end - start, e.text) for e in edits if start <= e.start and e.end <= end
            ]
            host_body = apply(inner, source.text[start:end])
            before = f" if (::emulator::is_device_code()) {{{before}"
            after += f"}} else {{\n{line_directive(source, start)}{host_body}}}"
        yield rules.insert(start, before)
        yield rules.insert(end, after)


def apply(edits: list[rules.Edit], text: str) -> str:
    """The edited text; edits at the same place keep their order."""
    pieces, last = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        between = text[last:start]
        blank = " " * (between.endswith(":") and new.startswith("::"))
        pieces += [between, blank, new]
        last = end
    return "".join([*pieces, text[last:]])
