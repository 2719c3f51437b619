from common.exercises.judge import Failure

CASES = {
    "right": ("4", "256", "memory"),
    "many_threads": ("1", "1025", "memory"),
    "no_blocks": ("0", "256", "memory"),
    "no_memory": ("4", "256", "null"),
}
WHY = {
    ("right", "launch"): "4 blocks of 256 threads are allowed, and the guard stops the 24 surplus threads",
    ("right", "wait"): "there are 1024 threads for 1000 elements, but the guard stops the 24 surplus threads",
    ("many_threads", "wait"): "such a launch is rejected, so there is no kernel to wait for",
    ("many_threads", "none"): "a block may have at most 1024 threads",
    ("no_blocks", "wait"): "such a launch is rejected, so there is no kernel to wait for",
    ("no_blocks", "none"): "a launch with an empty grid does not just do nothing: it is rejected",
    ("no_memory", "launch"): "a launch returns before the kernel runs, and the sizes of this launch are valid",
    ("no_memory", "none"): "1000 threads write through a null pointer",
    ("goes_on", "yes"): "an error inside a kernel is sticky: every later call reports it again",
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
            raise Failure(f"{name} = {said[name]}: expected one of {', '.join(words)}")
        if said[name] != word:
            raise Failure(f"{name} = {said[name]} is wrong: {WHY[name, said[name]]}")


def measure(program, *arguments):
    """The calls of when.cu that report an error."""
    lines = [line.split(":") for line in program.program("when.cu", *arguments).output.splitlines()[:3]]
    return [call for call, error in lines if error.strip() != "cudaSuccess"]
