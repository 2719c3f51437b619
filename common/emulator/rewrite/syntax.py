"""Finds the declarations and launches of a source, once for all rules, and rejects unsupported code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .expressions import find_operand, find_template_opener, split_list
from .functions import Function, Signature, find_body, find_qualifier_words, is_for_host, read_signature
from .kernels import (
    ClusterAttribute,
    KernelValue,
    LaunchBounds,
    find_clusters,
    find_kernel_values,
    find_launch_bounds,
)
from .refusals import find_lambdas, find_refused, refuse_results
from .spaces import Spaces, find_spaces
from .tokens import Source
from .variables import FileVariables, SharedDeclaration, find_file_variables, read_shared_declaration

# Functions that the emulator does not have: of mipmaps, cube maps and gathers, and of conditional nodes.
OTHER_FUNCTIONS = re.compile(
    r"tex\dD\w*(Lod|Grad|gather)|(tex|surf)Cubemap\w*|cudaMallocMipmappedArray"
    r"|cudaGraphConditionalHandleCreate\w*|cudaGraphSetConditional"
)
# Headers of the CUDA Toolkit. The emulator cannot use them, even on machines that have them. A program may have
# headers of its own with such names, except those of the libraries.
LIBRARY_HEADERS = re.compile(r"(cub|thrust|cute|cutlass|cooperative_groups)/.*")
CUDA_HEADERS = re.compile(
    r"cuda/.*|(cooperative_groups|mma|cuda_|curand|cublas|cudnn|cufft|cusparse|cusolver|nvrtc|nvtx|texture_|surface_)\w*\.h"
)
# Functions that CUDA has removed, and what replaces them.
REMOVED = {
    "cudaThreadSynchronize": "cudaDeviceSynchronize",
    "cudaThreadExit": "cudaDeviceReset",
    "cudaThreadSetLimit": "cudaDeviceSetLimit",
    "cudaThreadGetLimit": "cudaDeviceGetLimit",
    "cudaThreadSetCacheConfig": "cudaDeviceSetCacheConfig",
    "cudaThreadGetCacheConfig": "cudaDeviceGetCacheConfig",
    "cudaConfigureCall": "kernel<<<...>>> or cudaLaunchKernel",
    "cudaSetupArgument": "kernel<<<...>>> or cudaLaunchKernel",
    "cudaLaunch": "kernel<<<...>>> or cudaLaunchKernel",
    "cudaLaunchCooperativeKernelMultiDevice": "cudaLaunchCooperativeKernel on each device",
    "cudaProfilerInitialize": "cudaProfilerStart",
    "cudaSetDoubleForDevice": "double, which every device has",
    "cudaSetDoubleForHost": "double, which every device has",
    "cudaBindTexture": "texture objects",
    "cudaBindTexture2D": "texture objects",
    "cudaBindTextureToArray": "texture objects",
    "cudaUnbindTexture": "texture objects",
    "cudaBindSurfaceToArray": "surface objects",
}
# What CUDA 13 has removed from its libraries, with their namespaces, and what replaces it.
REMOVED_OF_LIBRARIES = {
    "cub": {
        "Sum": "cuda::std::plus<>",
        "Max": "cuda::maximum<>",
        "Min": "cuda::minimum<>",
        "Equality": "cuda::std::equal_to<>",
        "Inequality": "cuda::std::not_equal_to<>",
        "Difference": "cuda::std::minus<>",
        "Division": "cuda::std::divides<>",
        "CountingInputIterator": "thrust::counting_iterator",
        "ConstantInputIterator": "thrust::constant_iterator",
        "TransformInputIterator": "thrust::transform_iterator",
        "DiscardOutputIterator": "thrust::discard_iterator",
        "Int2Type": "cuda::std::integral_constant",
        "LaneId": "cuda::ptx::get_sreg_laneid",
        "Swap": "cuda::std::swap",
    },
    "thrust": {
        "identity": "cuda::std::identity",
        "unary_function": "no base class",
        "binary_function": "no base class",
        "not1": "cuda::std::not_fn",
        "not2": "cuda::std::not_fn",
        "optional": "cuda::std::optional",
    },
}
# Functions that load kernels from a file or from memory.
LOADERS = re.compile(
    r"cuModuleLoad\w*|cuLink(Create|AddData|AddFile)|c(u|uda)LibraryLoad\w*|cuLaunchKernel(Ex)?|nvrtcCreateProgram"
)
DEVICE_COPIES = ("cudaMemcpyAsync", "cudaMemcpy2DAsync", "cudaMemcpy3DAsync", "cudaMemsetAsync", "cudaMemset2DAsync")
EMULATED = ("runtime/include", "libraries/*/include")  # folders in the package, as globs


Kernels = dict[str, list[Signature]]  # the parameters of each declaration, by the kernel's name


class LaunchExpression(NamedTuple):
    """A launch `kernel<<<configuration>>>(arguments)`.

    `start` is the first token of the kernel's expression, `opener` that of `<<<`, and `closer` that of `>>>`.
    """

    start: int
    opener: int
    closer: int
    signature: Signature | None  # where the file declares the kernel
    arguments: list[range]


@dataclass(frozen=True)
class Syntax:
    """The parts of a source that the rules rewrite. Each list is in the order of the source."""

    functions: list[Function]
    shared: list[SharedDeclaration]
    variables: list[FileVariables]
    launches: list[LaunchExpression]
    kernel_values: list[KernelValue]
    clusters: list[ClusterAttribute]
    bounds: list[LaunchBounds]
    device_code: bytearray  # for each token, whether it is in the body of a device function


def find_kernels(source: Source) -> Kernels:
    """The parameters of each kernel that a source declares, by its name."""
    return find_functions(source)[1]


def parse(source: Source, other_kernels: Kernels, other_spaces: Spaces) -> Syntax:
    """Recognises declarations and launches.

    Raises `UserError` for the first part that the emulator cannot run, or that nvcc refuses.
    """
    functions, own_kernels = find_functions(source)
    kernels = {**other_kernels, **own_kernels}
    device_code = bytearray(len(source.tokens))
    for function in functions:
        body = range(function.opener + 1, function.closer)
        device_code[body.start : body.stop] = b"\1" * len(body)
    host_words = find_qualifier_words(source, "__host__")
    only_device = [function for function in functions if not is_for_host(source, function, host_words)]
    refuse(source, [*find_unsupported(source), *find_device_calls(source, only_device)])
    launches = [read_launch(source, index, kernels) for index in source.find("<") if is_launch(source, index)]
    spaces, bodies = find_spaces(source)
    for name, others in other_spaces.items():
        spaces[name] |= others
    refused = find_refused(source, [(f.opener, f.closer) for f in only_device], bodies, spaces, device_code)
    global_words = find_qualifier_words(source, "__global__")
    results = refuse_results(source, [f for f in functions if source.is_(f.qualifier, *global_words)])
    lambdas = (found for launch in launches for found in find_lambdas(source, launch.arguments))
    refuse(source, [found for found in (*refused, *results, *lambdas) if is_certain_code(source, found[0])])
    variables = list(find_file_variables(source))
    refuse_other_managed_variables(source, variables)
    shared = [read_shared_declaration(source, index) for index in source.find("__shared__") if source.is_code(index)]
    values = list(find_kernel_values(source, kernels, device_code))
    clusters = list(find_clusters(source, functions))
    bounds = list(find_launch_bounds(source, functions))
    return Syntax(functions, shared, variables, launches, values, clusters, bounds, device_code)


def refuse(source: Source, found: list[tuple[int, str]]) -> None:
    """Raises `UserError` for the first of these tokens, with its reason."""
    if found:
        raise source.error(*min(found))


def is_certain_code(source: Source, index: int) -> bool:
    """Whether g++ certainly compiles a token: it is in no branch of an `#if` that depends on unknown macros."""
    return index not in source.uncertain and index not in source.skipped


def refuse_other_managed_variables(source: Source, variables: list[FileVariables]) -> None:
    """Raises `UserError` for the first `__managed__` that is not in one of the declarations at file scope."""
    for index in source.find("__managed__"):
        names = next((declared.names for declared in variables if declared.end > index), [])
        if index not in source.skipped and not (names and names[0] > index):
            raise source.error(index, "the emulator supports __managed__ only for variables at file scope")


def find_functions(source: Source) -> tuple[list[Function], Kernels]:
    """The device functions that have a body, and the parameters of each kernel's declarations by its name."""
    functions: list[Function] = []
    kernels: Kernels = defaultdict(list)
    global_words = find_qualifier_words(source, "__global__")
    for index in source.find(*find_qualifier_words(source, "__global__", "__device__")):
        if not source.is_code(index):
            continue
        opener = find_body(source, index + 1)
        if opener in source.matching and not (functions and functions[-1].opener == opener):
            functions.append(Function(index, opener, source.matching[opener]))
        kernel = read_signature(source, index) if source.is_(index, *global_words) else None
        if kernel:
            kernels[kernel[0]].append(kernel[1])
    return functions, kernels


def find_unsupported(source: Source) -> Iterator[tuple[int, str]]:
    """The tokens of code that only a GPU can run, with the reason, in no particular order."""
    for index in source.find("include"):
        if source.is_(index - 1, "#") and source.tokens[index].directive and index not in source.skipped:
            header = source.rest_of_line(index).strip('<>" ')
            is_other = CUDA_HEADERS.fullmatch(header) and header not in source.own_headers
            if (is_other or LIBRARY_HEADERS.fullmatch(header)) and not is_emulated(header):
                yield index, f"the emulator does not support <{header}>"
    others = [text for text in source.positions if OTHER_FUNCTIONS.fullmatch(text)]
    for index in source.find(*REMOVED):
        if source.is_(index + 1, "(") and index not in source.skipped:
            yield index, f"CUDA 13 has no {source.tokens[index].text}: use {REMOVED[source.tokens[index].text]}"
    for library, names in REMOVED_OF_LIBRARIES.items():
        for index in source.find(*names):
            if source.is_(index - 1, "::") and source.is_(index - 2, library) and index not in source.skipped:
                name = source.tokens[index].text
                yield index, f"CUDA 13 has no {library}::{name}: use {names[name]}"
    loaders = [text for text in source.positions if LOADERS.fullmatch(text)]
    for index in source.find(*loaders):
        if source.is_(index + 1, "(") and index not in source.skipped:
            yield index, f"the emulator cannot load compiled kernels ({source.tokens[index].text})"
    for index in source.find(*others):
        if source.is_(index + 1, "<", "(") and index not in source.skipped:
            yield index, f"the emulator does not support {source.tokens[index].text}"
    for index in source.find("texture", "surface"):
        if is_texture_reference(source, index):
            name = source.tokens[index].text
            yield index, f"CUDA 12 has no {name} references: use a {name} object (cuda{name.title()}Object_t)"


def find_device_calls(source: Source, functions: list[Function]) -> Iterator[tuple[int, str]]:
    """The calls in device code that would wait for kernels, which CUDA 12 has removed, and copies by kernels."""
    for index in source.find("cudaDeviceSynchronize", *DEVICE_COPIES):
        if index in source.skipped or not any(f.opener < index < f.closer for f in functions):
            continue
        if source.is_(index, *DEVICE_COPIES):
            yield index, f"the emulator does not support {source.tokens[index].text} in a kernel"
        else:
            reason = "a kernel cannot wait for the kernels that it launches (since CUDA 12): launch the work that"
            yield index, f"{reason} comes after them with cudaStreamTailLaunch"


def is_texture_reference(source: Source, index: int) -> bool:
    """Whether `texture<float, 2> t` or `surface<void, 2> s` begins here, and not a template of the program's own."""
    is_type = source.is_(index + 1, "<") and not source.is_(index - 1, ".", "->", "::", "struct", "class")
    name = source.tokens[index].text
    is_own = any(source.is_(k - 1, "struct", "class", "using") for k in source.find(name))
    return is_type and not is_own and index not in source.skipped


def is_emulated(header: str) -> bool:
    """Whether the emulator or one of its libraries has a header of this name."""
    package = Path(__file__).parents[1]
    return any((folder / header).is_file() for pattern in EMULATED for folder in package.glob(pattern))


def is_launch(source: Source, index: int) -> bool:
    """Whether `<<<` begins here. Some editors write it as `<< <`; `operator<<<T>` is not a launch."""
    if not source.is_(index + 1, "<") or not source.is_(index + 2, "<"):
        return False
    if not source.is_adjacent(index) or not source.is_adjacent(index + 1):
        return False
    return not source.is_(index - 1, "<", "operator") and not source.is_(index + 3, "<")


def read_launch(source: Source, opener: int, kernels: Kernels) -> LaunchExpression:
    """Reads the launch with its `<<<` at a token. Raises `UserError` if the emulator cannot run it."""
    start, closer = find_operand(source, opener), find_configuration_end(source, opener + 3, 0)
    if start is None:
        raise source.error(opener, "there is no kernel before this <<<")
    if closer is None:
        raise source.error(opener, "this <<< has no matching >>>(")
    overloads = kernels.get(read_kernel_name(source, opener), [])
    return LaunchExpression(start, opener, closer, *match_arguments(source, overloads, closer + 3))


def find_configuration_end(source: Source, start: int, pending: int) -> int | None:
    """The `>>>` that ends a launch. A `>>>` that closes templates is skipped if a later one can end the launch."""
    _, stop = source.bounds(start - 1)
    index = start
    while index < stop:
        if source.is_(index, "(", "[", "{"):
            index = source.matching.get(index, stop)
        elif source.is_(index, ")", "]", "}", ";"):
            return None
        elif source.is_(index, "<") and source.is_(index + 1, "<"):
            index += 1
        elif source.is_(index, "<") and source.is_name(index - 1):
            pending += 1
        elif source.is_(index, ">"):
            count = 1
            while source.is_(index + count, ">") and source.is_adjacent(index + count - 1):
                count += 1
            after = index + count
            in_macro = bool(source.tokens[index].directive)
            if count >= 3 and (source.is_(after, "(") or (in_macro and (after >= stop or source.is_name(after)))):
                later = find_configuration_end(source, after, pending - count) if pending >= count else None
                return after - 3 if later is None else later
            pending -= min(count, pending)
            index = after - 1
        index += 1
    return None


def read_kernel_name(source: Source, opener: int) -> str:
    """The name before a `<<<`; empty for expressions, members, and the parameters of a macro."""
    last, (first, _) = opener - 1, source.bounds(opener)
    while source.is_(last, ")"):
        last -= 1
    if source.is_(last, ">"):
        last = (find_template_opener(source, last, first) or first) - 1
    if not source.is_name(last) or source.is_(last - 1, ".", "->") or source.is_macro_parameter(last):
        return ""
    return source.tokens[last].text


def match_arguments(source: Source, overloads: list[Signature], opener: int) -> tuple[Signature | None, list[range]]:
    """The overload that a launch's arguments fit, if the file declares one, and the tokens of each argument."""
    if not source.is_(opener, "(") or opener not in source.matching:
        return None, []
    ways = [split_list(source, opener + 1, source.matching[opener], templates) for templates in (True, False)]
    if has_pack(source, ways[0]):
        return (overloads[0] if len(overloads) == 1 else None), ways[0]
    for arguments in ways:
        for least in (len, count_required):
            for signature in overloads:
                if least(signature) <= len(arguments) <= len(signature):
                    return signature, arguments
    return None, ways[0]


def count_required(signature: Signature) -> int:
    """The number of parameters without a default."""
    return sum(not parameter.has_default for parameter in signature)


def has_pack(source: Source, arguments: list[range]) -> bool:
    """Whether an argument stands for any number of arguments: `xs...`, `__VA_ARGS__`."""
    return any(source.is_(each.stop - 1, "__VA_ARGS__", ".") for each in arguments)
