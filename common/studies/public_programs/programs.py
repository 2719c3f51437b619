"""The programs, and the repositories that contain them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

REPOSITORIES = {  # by the name of their clone
    "SGEMM_CUDA": "https://github.com/siboehm/SGEMM_CUDA",
    "llm.c": "https://github.com/karpathy/llm.c",
    "cuda-samples": "https://github.com/NVIDIA/cuda-samples",
}


class Program(NamedTuple):
    """A program of a repository: its source files, the first of which names it, and how it is built and run.

    `smaller` has texts of the sources and what replaces them: sizes with which it would compute for hours on a CPU.
    """

    repository: str
    sources: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    smaller: tuple[tuple[str, str], ...] = ()
    include_dirs: tuple[str, ...] = ()
    standard: str = "c++17"

    @property
    def name(self) -> str:
        """The name of the first source file, and the arguments: "sgemm 3"."""
        return " ".join((PurePosixPath(self.sources[0]).stem, *self.arguments))


SMALL_SGEMM = (
    ("SIZE = {128, 256, 512, 1024, 2048, 4096}", "SIZE = {256}"),
    ("repeat_times = 50", "repeat_times = 1"),
)


def sgemm(kernel: int) -> Program:
    """A kernel of SGEMM_CUDA, which is compared with cuBLAS."""
    return Program("SGEMM_CUDA", ("sgemm.cu", "src/runner.cu"), (str(kernel),), SMALL_SGEMM, include_dirs=("src",))


# Some files define the types of bfloat16 that common.h has since then defined, if it is asked to.
BFLOAT16 = ('#include "common.h"', '#define ENABLE_BF16\n#include "common.h"')


def llm_c(
    name: str, kernels: int, repeats: int = 1000, more: tuple[tuple[str, str], ...] = (), **sizes: tuple[int, int]
) -> list[Program]:
    """The kernels of a file of llm.c, which are compared with a loop on the CPU; `sizes`: old and new value."""
    once = (f"repeat_times = {repeats};", "repeat_times = 1;")
    constants = ((f"int {size} = {old};", f"int {size} = {new};") for size, (old, new) in sizes.items())
    smaller = (*more, once, *constants)
    source = (f"dev/cuda/{name}.cu",)
    return [Program("llm.c", source, (str(kernel),), smaller) for kernel in range(1, kernels + 1)]


def sample(folder: str, *sources: str, arguments: tuple[str, ...] = (), **smaller: tuple[str, str]) -> Program:
    """A program of NVIDIA's samples; `smaller`: for each constant, the text of its old and new definition."""
    home = f"Samples/{folder}"
    paths = tuple(f"{home}/{source}" for source in sources or (f"{PurePosixPath(folder).name}.cu",))
    return Program("cuda-samples", paths, arguments, tuple(smaller.values()), include_dirs=("Common",))


INTRODUCTION = "0_Introduction"
CONCEPTS = "2_Concepts_and_Techniques"
FEATURES = "3_CUDA_Features"
SAMPLES = (
    *(
        sample(f"{INTRODUCTION}/{name}")
        for name in (
            "asyncAPI", "clock", "concurrentKernels", "cppOverload", "fp16ScalarProduct", "simpleAWBarrier",
            "simpleAssert", "simpleAttributes", "simpleCooperativeGroups", "simpleHyperQ", "simpleMultiCopy",
            "simpleOccupancy", "simplePrintf", "simpleTemplates", "simpleVoteIntrinsics", "simpleZeroCopy",
            "systemWideAtomics", "vectorAdd",
        )
    ),
    sample(f"{INTRODUCTION}/simpleStreams", n=("n = 16 * 1024 * 1024", "n = 1 << 18")),
    sample(f"{INTRODUCTION}/cppIntegration", "cppIntegration.cu", "cppIntegration_gold.cpp", "main.cpp"),
    sample(f"{INTRODUCTION}/matrixMul", iterations=("int nIter = 300", "int nIter = 1")),
    sample(
        *(f"{INTRODUCTION}/mergeSort", "mergeSort.cu", "bitonic.cu", "main.cpp", "mergeSort_host.cpp"),
        "mergeSort_validate.cpp",
        N=("N = 4 * 1048576", "N = 1 << 16"),
    ),
    sample(f"{INTRODUCTION}/simpleAtomicIntrinsics", "simpleAtomicIntrinsics.cu", "simpleAtomicIntrinsics_cpu.cpp"),
    sample(f"{INTRODUCTION}/simpleCallback", "simpleCallback.cu", "multithreading.cpp"),
    sample(f"{INTRODUCTION}/simpleSeparateCompilation", "simpleSeparateCompilation.cu", "simpleDeviceLibrary.cu"),
    sample(f"{INTRODUCTION}/template", "template.cu", "template_cpu.cpp"),
    sample(
        *(f"{CONCEPTS}/convolutionSeparable", "convolutionSeparable.cu", "convolutionSeparable_gold.cpp", "main.cpp"),
        width=("imageW = 3072", "imageW = 384"),
        height=("imageH = 3072", "imageH = 384"),
        iterations=("iterations = 16", "iterations = 1"),
    ),
    sample(
        *(f"{CONCEPTS}/histogram", "histogram64.cu", "histogram256.cu", "histogram_gold.cpp", "main.cpp"),
        size=("64 * 1048576", "1048576"),
    ),
    sample(f"{CONCEPTS}/inlinePTX"),
    sample(f"{CONCEPTS}/radixSortThrust", arguments=("-n=65536", "-iterations=1")),
    sample(f"{CONCEPTS}/reduction", "reduction_kernel.cu", "reduction.cpp", arguments=("--n=65536",)),
    sample(f"{CONCEPTS}/reductionMultiBlockCG", arguments=("--n=65536",)),
    sample(f"{CONCEPTS}/scalarProd", "scalarProd.cu", "scalarProd_cpu.cpp"),
    sample(
        *(f"{CONCEPTS}/scan", "scan.cu", "scan_gold.cpp", "main.cpp"),
        N=("N = 13 * 1048576 / 2", "N = 1 << 18"),
        cycles=("iCycles = 100", "iCycles = 1"),
    ),
    sample(f"{CONCEPTS}/shfl_scan"),
    sample(
        *(f"{CONCEPTS}/sortingNetworks", "bitonicSort.cu", "oddEvenMergeSort.cu", "main.cpp"),
        "sortingNetworks_validate.cpp",
        N=("             = 1048576", "             = 1 << 15"),
    ),
    sample(f"{CONCEPTS}/streamOrderedAllocation"),
    sample(f"{CONCEPTS}/threadFenceReduction", arguments=("--n=65536",)),
    *(
        sample(f"{FEATURES}/{name}")
        for name in (
            "StreamPriorities", "binaryPartitionCG", "cdpSimplePrint", "cdpSimpleQuicksort", "newdelete",
            "simpleCudaGraphs", "warpAggregatedAtomicsCG",
        )
    ),
    sample(
        f"{FEATURES}/globalToShmemAsyncCopy",
        arguments=("wA=256", "hA=256", "wB=256", "hB=256"),
        iterations=("int nIter = 100", "int nIter = 1"),
    ),
    *(
        sample(f"{FEATURES}/{name}", **{side: (f"{side}_TILES {tiles}", f"{side}_TILES 8") for side in "MNK"})
        for name, tiles in (("cudaTensorCoreGemm", 256), ("bf16TensorCoreGemm", 512), ("tf32TensorCoreGemm", 512))
    ),
)  # fmt: skip
TOKENS = {"B": (8, 2), "T": (1024, 64)}  # sequences in a batch, tokens in a sequence
PROGRAMS = (
    *(sgemm(kernel) for kernel in range(1, 13)),
    *llm_c("adamw", 3),
    *llm_c("attention_forward", 1, 10, **TOKENS),
    *llm_c("crossentropy_forward", 1, **TOKENS),
    *llm_c("crossentropy_softmax_backward", 1, 100, **TOKENS),
    *llm_c("encoder_backward", 2, **TOKENS),
    *llm_c("encoder_forward", 3, **TOKENS),
    *llm_c("gelu_backward", 2, more=(BFLOAT16,), **TOKENS),
    *llm_c("gelu_forward", 2, more=(BFLOAT16,), **TOKENS),
    *llm_c("global_norm", 4, L=(12, 1)),
    *llm_c("layernorm_forward", 6, 2000, **TOKENS),
    *llm_c("permute", 1),
    *llm_c("residual_forward", 2, **TOKENS),
    *llm_c("softmax_forward", 5, **TOKENS),
    *llm_c("trimat_forward", 4, 100, B=(8, 1), T=(1024, 128), C=(768, 256), NH=(12, 4)),
    *SAMPLES,
)
