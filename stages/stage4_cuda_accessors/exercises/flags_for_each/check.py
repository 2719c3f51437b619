from common.exercises.judge import require
from common.exercises.judging.toolchain import commands

FOR_CPP = ("-fopenmp", "-march=native", "-Wall")
FOR_NVCC = ("--use_fast_math", "-lineinfo")
# Other names that nvcc has for the same flags.
ALSO_CALLED = {"-use_fast_math": "--use_fast_math", "--generate-line-info": "-lineinfo"}
PASSES_ON = ("-Xcompiler", "--compiler-options")
ONLY_NVCC = (*FOR_NVCC, *ALSO_CALLED, *PASSES_ON)


def check(work):
    asked = commands(work, TORCH_CUDA_ARCH_LIST="8.6;9.0")
    compiled = {command.source: command for command in asked if command.source}
    for source in ("mean.cpp", "mean_kernel.cu"):
        require(source in compiled, f"{source} is no longer compiled")
    cpp = compiled["mean.cpp"].own
    nvcc, host = split_flags(compiled["mean_kernel.cu"].own)
    for result, words in (("mean.cpp", cpp), ("the library", asked[-1].words)):
        for flag in words:
            require(
                flag.partition("=")[0] not in ONLY_NVCC,
                f"g++ gets {flag} for {result}, but only nvcc knows this flag",
            )
    for flag in FOR_CPP:
        require(
            flag not in nvcc,
            f"nvcc itself gets {flag}, which it does not know: nvcc fatal   : Unknown option '{flag}'",
        )
    for flag in FOR_CPP:
        require(flag in cpp, f"{flag} does not reach g++ for mean.cpp")
    for flag in FOR_NVCC:
        require(flag in nvcc, f"{flag} does not reach nvcc")
    built_for = sorted({word.rpartition("code=")[2] for word in nvcc if "code=" in word})
    require(
        built_for == ["sm_86", "sm_90"],
        f"TORCH_CUDA_ARCH_LIST is 8.6;9.0, but nvcc compiles for {', '.join(built_for) or 'its own default'}. "
        "Which of the flags for nvcc contains `arch`?",
    )
    require("-Wall" in host, "-Wall does not reach the host compiler behind nvcc")
    require(
        "-fopenmp" in asked[-1].words, "the library is linked without -fopenmp, which adds the functions of OpenMP"
    )


def split_flags(words):
    """The flags for nvcc itself, and those that it passes to the host compiler."""
    own, host = [], []
    words = iter(words)
    for word in words:
        name, equals, value = word.partition("=")
        if name in PASSES_ON:
            host += (value if equals else next(words, "")).replace("'", "").split(",")
        else:
            own.append(ALSO_CALLED.get(word, word))
    return own, host
