from common.exercises.judge import Failure

CASES = {
    "right": ("4", "256", "memory"),
    "many_threads": ("1", "1025", "memory"),
    "no_blocks": ("0", "256", "memory"),
    "no_memory": ("4", "256", "null"),
}
WHY = {
    ("right", "launch"): "4 blocks of 256 threads are allowed, and the guard turns away those that are too many",
    ("right", "wait"): "1024 threads for 1000 elements, and the guard turns away those that are too many",
    ("many_threads", "wait"): "such a launch is refused, so nothing runs that one could wait for",
    ("many_threads", "none"): "a block may have 1024 threads",
    ("no_blocks", "wait"): "such a launch is refused, so nothing runs that one could wait for",
    ("no_blocks", "none"): "an empty grid is not a launch that does nothing: it is refused",
    ("no_memory", "launch"): "a launch returns before the kernel runs, and its sizes are all right",
    ("no_memory", "none"): "1000 threads write through a null pointer",
    ("goes_on", "yes"): "an error inside of a kernel stays: every call after it reports it again",
}


def check(work):
    said = {name: word.lower() for name, word in work.answers().items()}
    program = work.ours(work.exercise.folder / "files")
    measured = {name: measure(program, *arguments) for name, arguments in CASES.items()}
    first = {name: next(iter(errors), "none") for name, errors in measured.items()}
    first["goes_on"] = "no" if "again" in measured["no_memory"] else "yes"
    for name, word in first.items():
        words = ("yes", "no") if name == "goes_on" else ("launch", "wait", "none")
        if said[name] not in words:
            raise Failure(f"{name} = {said[name]}: one of {', '.join(words)} is wanted")
        if said[name] != word:
            raise Failure(f"{name} = {said[name]}: not so: {WHY[name, said[name]]}")


def measure(program, *arguments):
    """The calls of when.cu that report an error."""
    lines = [line.split(":") for line in program.program("when.cu", *arguments).output.splitlines()[:3]]
    return [call for call, error in lines if error.strip() != "cudaSuccess"]
