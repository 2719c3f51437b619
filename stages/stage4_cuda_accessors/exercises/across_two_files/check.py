from common.exercises.judge import require, unchanged
from common.exercises.judging.toolchain import commands

GIVEN = ("binding.cpp", "cubes.cu", "square.cu", "square.h")
RELOCATABLE = ("-rdc=true", "-rdc true", "--relocatable-device-code=true", "-dc", "--device-c")


def check(work):
    asked = commands(work)
    compiled = {command.source: command for command in asked if command.source}
    for source in ("binding.cpp", "cubes.cu", "square.cu"):
        require(source in compiled, f"{source} is no longer compiled")
        levels = [word for word in compiled[source].own if word.startswith("-O")]
        require(
            levels[-1:] == ["-O3"],
            f"{source} is compiled with {' '.join(levels) or 'no -O flag'}: every file must still be compiled with "
            "-O3, and of several -O flags the last one counts",
        )
        if source.endswith(".cu"):
            require(
                any(f" {flag} " in f" {' '.join(compiled[source].words)} " for flag in RELOCATABLE),
                f"nvcc completes the device code of {source}, so no call in it can stay unresolved: ptxas fatal   : "
                "Unresolved extern function '_Z6squaref'",
            )
            require(
                "-dlto" not in compiled[source].words or "-gencode" not in " ".join(compiled[source].words),
                f"nvcc refuses the command for {source}: '-dlto' conflicts with '-gencode', which torch adds",
            )
    linked = [command for command in asked if "-dlink" in command.words]
    require(
        bool(linked),
        "the device code has unresolved calls, and no command links it. The library builds, but its import fails: "
        "undefined symbol: __cudaRegisterLinkedBinary_...",
    )
    wanted = architectures(linked[0])
    for source in ("cubes.cu", "square.cu"):
        found = architectures(compiled[source])
        require(
            found == wanted,
            f"{source} is compiled for {' '.join(sorted(found))}, but the device linker links for "
            f"{' '.join(sorted(wanted))}: as soon as one of your flags names an architecture, torch leaves out those "
            "of TORCH_CUDA_ARCH_LIST for the compiler, but not for the linker",
        )
    objects = {word.rpartition("/")[2] for word in linked[0].words}
    require({"cubes.o", "square.o"} <= objects, "the device linker does not get both cubes.o and square.o")
    last = asked[-1]
    require(
        any(word.endswith(linked[0].result) for word in last.words),
        f"the output of the device linker, {linked[0].result}, is not linked into the library",
    )
    for file in GIVEN:
        unchanged(work, f"csrc/{file}", "Each file on its own is right: change setup.py, and nothing else")


def architectures(command):
    """The flags of a command that say for which architectures."""
    return {word for word in command.words if "arch" in word}
