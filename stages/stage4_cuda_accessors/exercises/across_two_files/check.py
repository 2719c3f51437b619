from common.exercises.judge import require
from common.exercises.toolchain import commands

OPEN = ("-rdc=true", "-rdc true", "--relocatable-device-code=true", "-dc", "--device-c")


def check(work):
    asked = commands(work)
    compiled = {command.source: command for command in asked if command.source}
    for source in ("binding.cpp", "cubes.cu", "square.cu"):
        require(source in compiled, f"{source} is compiled no more")
        require("-O3" in compiled[source].own, f"{source} has lost its -O3")
        if source.endswith(".cu"):
            require(
                any(f" {flag} " in f" {' '.join(compiled[source].words)} " for flag in OPEN),
                f"nvcc compiles {source} to its end, and nothing can be left open in it: ptxas fatal   : "
                "Unresolved extern function '_Z6squaref'",
            )
    linked = [command for command in asked if "-dlink" in command.words]
    require(
        bool(linked),
        "the device code is left open, and nobody links it. The library builds, and its import fails: "
        "undefined symbol: __cudaRegisterLinkedBinary_...",
    )
    objects = {word.rpartition("/")[2] for word in linked[0].words}
    require({"cubes.o", "square.o"} <= objects, "the device linker does not get both cubes.o and square.o")
    last = asked[-1]
    require(
        any(word.endswith(linked[0].result) for word in last.words),
        f"what the device linker makes, {linked[0].result}, is not linked into the library",
    )
