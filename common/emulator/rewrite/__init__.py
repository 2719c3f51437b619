"""Rewrites CUDA C++ so that g++ compiles it for the emulator.

Comments, literals and line numbers stay the same. tokens.py splits a file into tokens. syntax.py finds the launches
and the declarations of the file (functions.py, variables.py), with the help of expressions.py, and rejects code that
the emulator cannot run. Each rule in rules.py turns a part of this syntax into edits:
- `kernel<<<grid, block>>>(x)` becomes a call of `emulator::launch`;
- a kernel that is passed to a function or cast is recorded, so that it can be launched by its address;
- a kernel with `__cluster_dims__` begins with a call that tells the launch;
- `__shared__` variables become references to the memory of a block;
- in device code, the C library's copies and heap become the emulator's, which are checked;
- `__device__` and `__constant__` variables at file scope are registered;
- in host code, CUDA tensors become CPU tensors, and each is registered by name where the code takes its pointer.
"""

from __future__ import annotations

from . import rules
from .syntax import parse
from .tokens import Source, read

__all__ = ["Source", "read", "rewrite"]

# nvcc includes this by itself.
CUDA_PROLOGUE = "#include <cuda_runtime.h>\n"
TENSOR_PROLOGUE = '#include "emulator/tensor.h"\n'
# Makes a literal from a macro's arguments: the text of a launch or a tensor in a macro.
NAME_PROLOGUE = "#undef EMULATOR_NAME\n#define EMULATOR_NAME(...) #__VA_ARGS__\n"


def rewrite(source: Source) -> str:
    """The text for g++. Raises `UserError` with file and line for code that the emulator cannot run.

    After the lines that must come first, `#line 1 "FILE"` makes messages and debuggers point to the original.
    """
    syntax = parse(source)
    tensors = list(rules.register_tensors(source, syntax))
    edits = [
        *rules.rewrite_launches(source, syntax),
        *rules.register_kernels(source, syntax),
        *rules.declare_clusters(source, syntax),
        *rules.rewrite_shared_variables(source, syntax),
        *rules.rewrite_device_calls(source, syntax),
        *rules.register_file_variables(source, syntax),
        *rules.rewrite_device_names(source),
        *tensors,
    ]
    prologue = CUDA_PROLOGUE * source.path.endswith((".cu", ".cuh")) + TENSOR_PROLOGUE * bool(tensors)
    prologue += NAME_PROLOGUE * any("EMULATOR_NAME" in edit.text for edit in edits)
    path = source.path.replace("\\", "\\\\").replace('"', '\\"')
    return f'{prologue}#line 1 "{path}"\n{apply(edits, source.text)}'


def apply(edits: list[rules.Edit], text: str) -> str:
    """The edited text; edits at the same place keep their order."""
    pieces, last = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        between = text[last:start]
        blank = " " * (between.endswith(":") and new.startswith("::"))
        pieces += [between, blank, new]
        last = end
    return "".join([*pieces, text[last:]])
