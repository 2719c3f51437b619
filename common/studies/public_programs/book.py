"""The programs of the book Learn CUDA Programming (Packt, 2019), chapters 1 to 8.

Left out are programs that need MPI, NCCL, NPP, OpenCV or a picture. The headers of helper functions are those of
NVIDIA's samples.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from .program import Program

OPENMP = ("-fopenmp",)
DEBUG = ("-rdynamic",)
SIDES = ("N = M = K = 2048;", "N = M = K = 128;")
FEWER = ("int n_iter = 5;", "int n_iter = 2;")
ELEMENTS = ("1 << 24", "1 << 18")
VECTORS = (("int size = 1 << 24;", "int size = 1 << 18;"), ("i < 500", "i < 20"))
MANAGED = ("int N = 1<<20;", "int N = 1<<18;")
SAMPLES_OF_IMAGE = ("#define IMG_SIZE 1048576", "#define IMG_SIZE 65536")
MIXED = ("int size = 1 << 26;", "int size = 1 << 20;")
SIGNALS = (("sample_size = 1 << 20;", "sample_size = 1 << 10;"), ("batch_size = 1 << 9;", "batch_size = 1 << 2;"))


def program(
    path: str,
    *smaller: tuple[str, str],
    more: tuple[str, ...] = (),
    name: str = "",
    flags: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    devices: int = 1,
) -> Program:
    """A program of the book: its first source is `path`, `more` has the others of its folder."""
    first = PurePosixPath("Chapter" + path[:2]) / path
    return Program(
        "Learn-CUDA-Programming",
        (str(first), *(str(first.parent / name) for name in more)),
        arguments,
        smaller,
        include_dirs=("../cuda-samples/Common",),
        compiler_flags=flags,
        title=f"{first.parent.name}/{name or first.stem}",
        devices=devices,
    )


def reduction(
    folder: str, kernel: str, host: str = "reduction", flags: tuple[str, ...] = OPENMP, runs: int = 100
) -> Program:
    """A program of chapter 3 that sums an array; `kernel` is the rest of the name of the file with its kernels."""
    path, source = f"03_cuda_thread_programming/{folder}/{host}.cpp", f"reduction{kernel}"
    fewer = (f"int test_iter = {runs};", "int test_iter = 2;")
    return program(path, ELEMENTS, fewer, more=(f"{source}.cu",), name=source, flags=flags)


LANGUAGE = (
    program("01_cuda_introduction/01_hello_world/hello_world.cu"),
    *(
        program(f"01_cuda_introduction/02_vector_addition/vector_addition_gpu_{name}.cu")
        for name in ("block_only", "thread_only")
    ),
    program("02_memory_overview/02_vector_addition/vector_addition_gpu_thread_block.cu"),
    program("02_memory_overview/03_aos_soa/aos.cu", SAMPLES_OF_IMAGE),
    program("02_memory_overview/03_aos_soa/soa.cu", SAMPLES_OF_IMAGE),
    program("02_memory_overview/04_matrix_transpose/matrix_transpose.cu", ("#define N 2048", "#define N 256")),
    program("02_memory_overview/04_matrix_transpose/conflict_solved.cu", ("#define N 1024", "#define N 256")),
    *(
        program(f"02_memory_overview/06_unified_memory/unified_memory{name}.cu", MANAGED)
        for name in ("", "_initialized", "_prefetch", "_64align")
    ),
)
THREADS = (
    program("03_cuda_thread_programming/01_warp_and_thread_block/cuda_thread_block.cu", arguments=("4", "128")),
    program(
        "03_cuda_thread_programming/02_cuda_occupancy/sgemm.cu",
        *(SIDES, ("int test_iterations = 100;", "int test_iterations = 2;")),
    ),
    reduction("03_threadsync_and_reduction", "_global_kernel", "reduction_global", flags=()),
    reduction("03_threadsync_and_reduction", "_shared_kernel", "reduction_shared", flags=()),
    program("03_cuda_thread_programming/04_performance_limiter/sgemm.cu", SIDES),
    reduction("04_performance_limiter", "_shared_kernel", "reduction_shared", flags=()),
    reduction("05_warp_divergence", "_kernel_interleaving", runs=5),
    reduction("05_warp_divergence", "_kernel_sequential", runs=5),
    reduction("06_limiter_balancing", "_kernel"),
    reduction("06_limiter_balancing", "_kernel_opt"),
    reduction("07_warp_synchronous_programming", "_wp_kernel"),
    reduction("08_cooperative_group", "_cg_kernel"),
    reduction("08_cooperative_group", "_cg_shift_kernel"),
    reduction("09_loop_unrolling", "_wp_kernel"),
    reduction("09_loop_unrolling", "_cg_kernel"),
    reduction("10_atomic_operation", "_kernel"),
    reduction("10_atomic_operation", "_wrp_atmc_kernel"),
    reduction("10_atomic_operation", "_blk_atmc_kernel"),
    *(
        program(
            f"03_cuda_thread_programming/11_mixed_precision_operation/mixed_precision{name}.cu", MIXED, flags=OPENMP
        )
        for name in ("", "_half", "_int")
    ),
)
EXECUTION = (
    *(
        program(f"04_kernel_execution/01_cuda_stream/{name}.cu")
        for name in (
            *("1_cuda_default_stream", "2_cuda_multi_stream", "3_cuda_multi_stream_with_sync"),
            "4_cuda_multi_stream_with_default",
        )
    ),
    *(
        program(f"04_kernel_execution/{name}.cu", *VECTORS)
        for name in (
            *("02_pipelining/cuda_pipelining", "03_cuda_callback/cuda_callback"),
            "04_stream_priority/prioritized_cuda_stream",
        )
    ),
    *(
        program(f"04_kernel_execution/{name}.cu", *VECTORS, flags=OPENMP)
        for name in (
            *("05_cuda_event/cuda_event", "05_cuda_event/cuda_event_with_streams", "08_openmp_cuda/openmp"),
            "08_openmp_cuda/openmp_default_stream",
        )
    ),
    program("04_kernel_execution/08_openmp_cuda/openmp_gpus.cu", *VECTORS, flags=OPENMP, arguments=("4",)),
    program("04_kernel_execution/06_dynamic_parallelism/dynamic_parallelism.cu"),
    program("04_kernel_execution/06_dynamic_parallelism/recursion.cu"),
    program(
        *("04_kernel_execution/07_grid_level_cg/reduction.cpp", ELEMENTS),
        ("int test_iter = 100;", "int test_iter = 2;"),
        more=("reduction_kernel.cu",),
        flags=OPENMP,
    ),
    program("04_kernel_execution/10_kernel_execution_overhead/cuda_kernel.cu"),
)
DEBUGGING = (
    program("05_debug_profiling/01_focused_profile/sgemm.cu", SIDES, FEWER),
    program("05_debug_profiling/02_nvtx/sgemm.cu", SIDES, FEWER),
    program("05_debug_profiling/03_cuda_error/sgemm.cu", SIDES, FEWER, flags=OPENMP),
    program("05_debug_profiling/04_cuda_assert/sgemm.cu", SIDES, FEWER, flags=OPENMP),
    program("05_debug_profiling/05_debug_with_vs/simple_sgemm.cu", SIDES),
    program("05_debug_profiling/07_debug_with_gdb/simple_sgemm.cu", SIDES, flags=DEBUG),
    program("05_debug_profiling/08_memcheck/simple_sgemm_oob.cu", SIDES, flags=DEBUG),
    program(
        *("05_debug_profiling/08_memcheck/simple_sgemm_mem_leak.cu", SIDES),
        ("int n_iter = 10;", "int n_iter = 2;"),
        flags=DEBUG,
    ),
)
SEVERAL_GPUS = (
    program("06_multigpu/01_gaussian_single_gpu/gaussian_single_gpu.cu"),
    program("06_multigpu/02_gaussian_multi_gpu/gaussian_multi_gpu_p2p.cu", devices=2),
    program("06_multigpu/05_streams/vector_addition.cu", ("1<<28", "1<<18"), flags=OPENMP),
)
ALGORITHMS = (
    program("07_parallel_programming_pattern/01_sgemm_optimization/sgemm.cu", SIDES, flags=OPENMP),
    program(
        "07_parallel_programming_pattern/02_convolution/convolution.cu",
        *(("num_row = 2048;", "num_row = 128;"), ("num_col = 2048;", "num_col = 128;")),
        flags=(*DEBUG, *OPENMP),
    ),
    program("07_parallel_programming_pattern/03_scan/scan.cu", more=("scan_v1.cu", "scan_v2.cu")),
    program("07_parallel_programming_pattern/04_pack_n_split/pack_n_split.cu"),
    program(
        "07_parallel_programming_pattern/05_n-body/n_body.cu",
        *(("int nBodies = 30000;", "int nBodies = 560;"), ("const int nIters = 100;", "const int nIters = 2;")),
    ),
    program("07_parallel_programming_pattern/06_quicksort/quick_sort.cu"),
    program(
        "07_parallel_programming_pattern/07_radixsort/radix_warp_sort.cu", ("#define LOOPS 1000", "#define LOOPS 20")
    ),
    program("07_parallel_programming_pattern/07_radixsort/thrust_radix_sort.cu"),
)
LIBRARIES = (
    program("08_cuda_libs_and_other_languages/01_sgemm/cublasSgemm.cpp"),
    program(
        "08_cuda_libs_and_other_languages/01_sgemm/cublasXtSgemm.cpp",
        *(("M = 640;", "M = 64;"), ("N = 320;", "N = 32;"), ("K = 480;", "K = 48;")),
        devices=2,
    ),
    program("08_cuda_libs_and_other_languages/01_sgemm/cublasSgemm_async.cpp"),
    program("08_cuda_libs_and_other_languages/02_sgemm_mixed_precision/cublasGemmEx.cu"),
    program("08_cuda_libs_and_other_languages/03_curand/curand_host.cpp"),
    program("08_cuda_libs_and_other_languages/03_curand/curand_device.cu"),
    program(
        "08_cuda_libs_and_other_languages/03_curand/gemm_with_curand_host.cpp",
        *((f"{side} = 8192;", f"{side} = 64;") for side in "MNK"),
        more=("fp16.cu",),
    ),
    program("08_cuda_libs_and_other_languages/04_cufft/cufft.1d.cpp", *SIGNALS),
    program("08_cuda_libs_and_other_languages/04_cufft/cufft.half.cpp", *SIGNALS, more=("complex.cu", "fp16.cu")),
    program("08_cuda_libs_and_other_languages/04_cufft/cufft.mgpu.cu", *SIGNALS, more=("complex.cu",), devices=2),
)
PROGRAMS = (*LANGUAGE, *THREADS, *EXECUTION, *DEBUGGING, *SEVERAL_GPUS, *ALGORITHMS, *LIBRARIES)
