"""The programs, and the repositories that contain them."""

from __future__ import annotations

from pathlib import PurePosixPath

from . import book
from .program import Program

REPOSITORIES = {  # by the name of their clone
    "SGEMM_CUDA": "https://github.com/siboehm/SGEMM_CUDA",
    "llm.c": "https://github.com/karpathy/llm.c",
    "cuda-samples": "https://github.com/NVIDIA/cuda-samples",
    "cuda-training-series": "https://github.com/olcf/cuda-training-series",
    "cuda-course": "https://github.com/Infatoshi/cuda-course",
    "Learn-CUDA-Programming": "https://github.com/PacktPublishing/Learn-CUDA-Programming",
}

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


def lesson(repository: str, path: str, *smaller: tuple[str, str], arguments: tuple[str, ...] = ()) -> Program:
    """A program of a course; its title is the file's name and that of its folder."""
    file = PurePosixPath(path)
    return Program(repository, (path,), arguments, smaller, title=f"{file.parent.name}/{file.stem}")


def homework(path: str, *smaller: tuple[str, str]) -> Program:
    """A solution of the course of Oak Ridge's computing facility."""
    return lesson("cuda-training-series", f"exercises/{path}_solution.cu", *smaller)


CHUNKS = ("1024*1024*chunks", "1024*chunks")
MATRIX_SUMS = ("DSIZE = 16384", "DSIZE = 512")
ELEMENTS = ("8ULL*1024ULL*1024ULL", "1ULL << 18")
CUBE = ("define SIZE 4096", "define SIZE 512")
HOMEWORK = (
    homework("hw1/hello"),
    homework("hw1/vector_add"),
    homework("hw01/matrix_mul", ("DSIZE = 8192", "DSIZE = 256")),
    homework("hw2/matrix_mul_shared", ("DSIZE = 8192", "DSIZE = 256")),
    homework("hw2/stencil_1d"),
    homework("hw3/vector_add", ("32*1048576", "1 << 18")),
    homework("hw4/matrix_sums", MATRIX_SUMS),
    homework("hw05/matrix_sums", MATRIX_SUMS),
    homework("hw05/max_reduction", ELEMENTS),
    lesson("cuda-training-series", "exercises/hw5/reductions.cu", ELEMENTS),
    homework("hw6/array_inc", ("32ULL*1024ULL*1024ULL", "1ULL << 18")),
    homework("hw6/linked_list"),
    lesson("cuda-training-series", "exercises/hw07/multi.cu", CHUNKS),
    homework("hw07/overlap", CHUNKS),
    homework("hw7/overlap", CHUNKS),
    homework("hw8/task1/task1", CUBE),
    homework("hw8/task2/task2", CUBE),
    homework("hw8/task3/task3", CUBE),
    homework("hw9/task1"),
    homework("hw9/task2"),
    homework("hw10/streams", CHUNKS),
    homework("hw12/task1"),
    homework("hw12/task2"),
    homework("hw13/Solutions/axpy_cublas", ("define N 500000", "define N 1000"), ("i < 100", "i < 2")),
    homework("hw13/Solutions/axpy_stream_capture", ("define N 500000", "define N 1000"), ("i < 100", "i < 2")),
)


def first_kernel(path: str, *smaller: tuple[str, str]) -> Program:
    """A program of the course's chapter on first kernels."""
    return lesson("cuda-course", f"05_Writing_your_First_Kernels/{path}.cu", *smaller)


REPEATS = (("i < 20;", "i < 1;"), ("i < 3;", "i < 1;"))
SIDES = tuple((f"const int {side} = 1024;", f"const int {side} = 256;") for side in "MNK")
LESSONS = (
    first_kernel("01 CUDA Basics/01_idxing"),
    first_kernel("02 Kernels/00_vector_add_v1", ("N 10000000", "N 100000"), *REPEATS),
    first_kernel(
        "02 Kernels/01_vector_add_v2",
        ("N 10000000", "N 100000"),
        ("nz = 1000;", "nz = 10;"),
        ("i < 100;", "i < 1;"),
        ("i < 5;", "i < 1;"),
    ),
    first_kernel("02 Kernels/02 matmul", ("N 1024", "N 256"), *REPEATS),
    first_kernel("03 Profiling/00 nvtx_matmul", SIDES[1]),
    first_kernel("03 Profiling/01_naive_matmul", *SIDES),
    first_kernel("03 Profiling/02_tiled_matmul", *SIDES),
    first_kernel("04 Atomics/00_atomicAdd"),
    first_kernel("04 Triton/02_softmax"),
    first_kernel("05 Streams/01_stream_basics"),
    first_kernel("05 Streams/02_stream_advanced"),
    lesson("cuda-course", "06_CUDA_APIs/01 CUBLAS/01 cuBLAS/01_Hgemm_Sgemm.cu"),
    lesson(
        "cuda-course", "07 Faster Matmul/unrolling_example.cu", ("N 10000000", "N 10000"), ("_RUNS 10", "_RUNS 1")
    ),
    lesson("cuda-course", "08_Triton/02_softmax.cu", ("N = 1024;", "N = 128;")),
    lesson(
        *("cuda-course", "12flashattention/compare.cu"),
        arguments=("--batch", "1", "--heads", "2", "--seq", "64", "--dim", "32", "--iters", "1", "--warmup", "1"),
    ),
)
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
    *HOMEWORK,
    *LESSONS,
    *book.PROGRAMS,
)
