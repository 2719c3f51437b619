"""Host code: nvcc's macros, code for CUDA tensors, and the tensors that kernels access."""

from __future__ import annotations

from collections.abc import Iterator

from ..expressions import find_operand
from ..syntax import Syntax
from ..tokens import Source
from .edits import Edit, insert

# Macros that only nvcc defines, in .cu files. Headers that the rewriter does not see must not see them, either:
# torch's would include headers of the CUDA Toolkit.
NVCC_MACROS = (
    *("__CUDACC__", "__NVCC__", "__CUDACC_VER_MAJOR__", "__CUDACC_VER_MINOR__", "__CUDACC_VER_BUILD__"),
    *("__CUDA_ARCH_LIST__", "__CUDACC_EXTENDED_LAMBDA__", "__CUDACC_RELAXED_CONSTEXPR__"),
)
POINTERS = ("data_ptr", "mutable_data_ptr", "const_data_ptr")
ACCESSORS = ("packed_accessor", "packed_accessor32", "packed_accessor64", "generic_packed_accessor")
EMPTY = ("empty", "empty_like", "empty_strided", "empty_permuted")
NEW_EMPTY = ("new_empty", "new_empty_strided")
REGISTRATIONS = ("TORCH_LIBRARY_IMPL", "EXPAND_TORCH_LIBRARY_IMPL")
# Functions that C++ programs pass as deleters, and the type of their only parameter.
DELETERS = {
    **dict.fromkeys(("cudaFree", "cudaFreeHost"), "void*"),
    **{"cudaFreeArray": "cudaArray_t", "cudaStreamDestroy": "cudaStream_t", "cudaEventDestroy": "cudaEvent_t"},
    **{"cudaGraphDestroy": "cudaGraph_t", "cudaGraphExecDestroy": "cudaGraphExec_t"},
}
DEVICE_ENUMS = ("DeviceType", "DispatchKey", "Backend")


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


def rewrite_deleters(source: Source) -> Iterator[Edit]:
    """`cudaFree` that is not called becomes a function of one parameter: the emulator's also takes the position.

    So `std::unique_ptr<float, decltype(&cudaFree)>` compiles. Reports name the line where the function is passed.
    """
    for index in source.find(*DELETERS):
        if source.is_(index + 1, "(") or source.is_(index - 1, ".", "->", "::", "#"):
            continue
        token = source.tokens[index]
        operand = index - 1 if source.is_(index - 1, "&") else index
        type_only = source.is_(operand - 1, "(") and source.is_(operand - 2, "decltype")
        kind = DELETERS[token.text]
        call = f"(*+[]({kind} emulated) {{ return ::{token.text}(emulated); }})"
        yield Edit(token.start, token.end, f"::emulator::deleter<{kind}>" if type_only else call)


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
