"""Rewrites CUDA C++ so that g++ compiles it for the emulator.

Comments, literals and line numbers stay the same. tokens.py splits a file into tokens. syntax.py finds the launches
and the declarations of the file (functions.py, kernels.py, variables.py), with the help of expressions.py, and
rejects code that the emulator cannot run, or that nvcc refuses (refusals.py). Each rule in rules/ turns a part of
this syntax into edits of the text:
- `kernel<<<grid, block>>>(x)` becomes a call of `emulator::launch`;
- a kernel that is passed to a function or cast is recorded, so that it can be launched by its address;
- a kernel with `__cluster_dims__` or `__launch_bounds__` begins with a call that tells the launch;
- `__shared__` variables become references to the memory of a block;
- in device code, the C library's copies and heap become the emulator's, which are checked;
- inline PTX (asm) becomes calls of C++ functions (ptx/);
- `__device__` and `__constant__` variables at file scope are registered, `__managed__` ones get managed memory;
- `__CUDA_ARCH__` is defined in device code (rules/architecture.py), and macros such as `__CUDACC__` in .cu files;
- `x.operator __half()` becomes a cast;
- `cudaFree` and similar functions that are passed, not called, become functions of one parameter;
- in host code, CUDA tensors become CPU tensors, and each is registered by name where the code takes its pointer.
"""

from __future__ import annotations

from pathlib import Path

from .conditions import given_macros
from .rules.architecture import define_architecture
from .rules.declarations import register_file_variables, rewrite_shared_variables
from .rules.device_code import rewrite_assembly, rewrite_conversions, rewrite_device_calls
from .rules.edits import apply
from .rules.host_code import register_tensors, rename_nvcc_macros, rewrite_deleters, rewrite_device_names
from .rules.launches import declare_bounds, declare_clusters, register_kernel_values, rewrite_launches
from .spaces import Spaces, find_spaces
from .syntax import Kernels, find_kernels, parse
from .tokens import Source, read

__all__ = ["Kernels", "Source", "Spaces", "find_kernels", "find_spaces", "given_macros", "read", "rewrite"]

# nvcc includes cuda_runtime.h by itself, and defines macros.
CUDA_PROLOGUES = {".cu": '#include "emulator/nvcc.h"\n', ".cuh": "#include <cuda_runtime.h>\n"}
PTX_PROLOGUE = '#include "emulator/ptx.h"\n'
SIXTEEN_BITS_PROLOGUE = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"  # as torch's headers do for nvcc
TENSOR_PROLOGUE = '#include "emulator/tensor.h"\n'
# Makes a literal from a macro's arguments: the text of a launch or a tensor in a macro.
NAME_PROLOGUE = "#undef EMULATOR_NAME\n#define EMULATOR_NAME(...) #__VA_ARGS__\n"


def rewrite(source: Source, other_kernels: Kernels | None = None, other_spaces: Spaces | None = None) -> str:
    """The text for g++. Raises `UserError` with file and line for code that the emulator or nvcc cannot compile.

    `other_kernels` are the parameters of kernels that headers of the program declare (`find_kernels`), and
    `other_spaces` the execution spaces of the functions in these headers (`find_spaces`).
    After the lines that must come first, `#line 1 "FILE"` makes messages and debuggers point to the original.
    """
    syntax = parse(source, other_kernels or {}, other_spaces or {})
    tensors = list(register_tensors(source, syntax))
    conversions = list(rewrite_conversions(source))
    assembly = list(rewrite_assembly(source, syntax))
    edits = [
        *assembly,
        *rewrite_launches(source, syntax),
        *register_kernel_values(source, syntax),
        *declare_clusters(source, syntax),
        *declare_bounds(source, syntax),
        *rewrite_shared_variables(source, syntax),
        *rewrite_device_calls(source, syntax),
        *register_file_variables(source, syntax),
        *rewrite_device_names(source),
        *rename_nvcc_macros(source),
        *rewrite_deleters(source),
        *tensors,
        *conversions,
    ]
    edits += list(define_architecture(source, syntax, edits))
    prologue = CUDA_PROLOGUES.get(Path(source.path).suffix, "") + TENSOR_PROLOGUE * bool(tensors)
    prologue += PTX_PROLOGUE * bool(assembly) + SIXTEEN_BITS_PROLOGUE * bool(conversions)
    prologue += NAME_PROLOGUE * any("EMULATOR_NAME" in edit.text for edit in edits)
    path = source.path.replace("\\", "\\\\").replace('"', '\\"')
    return f'{prologue}#line 1 "{path}"\n{apply(edits, source.text)}'
