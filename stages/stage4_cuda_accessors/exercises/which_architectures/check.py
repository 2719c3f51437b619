import json
import subprocess
import sys

from common.exercises.judge import require

GPUS = (75, 86, 90, 100)
CASES = [
    ("8.0;8.6;9.0+PTX", []),
    ("8.0;9.0", []),
    ("8.0;9.0+PTX", []),
    ("8.0;9.0", ["-Xcompiler=-march=native"]),
    ("8.0;9.0", ["-gencode=arch=compute_86,code=sm_86"]),
]


def check(work):
    names = ("codes", "texts", "runs", "forward", "switched", "own")
    said = {name: work.number(name) for name in names}
    three, plain, forward, switched, own = measured(work.exercise.folder)
    expect(said, "codes", count(three, "sm"), "each number of the list is one machine code")
    expect(said, "texts", count(three, "compute"), "the text is added for the number that +PTX stands behind, only")
    expect(
        said,
        "runs",
        running(plain),
        "8.0 runs on 8.6, too, and neither on what is older nor on the next major number",
    )
    expect(said, "forward", running(forward), "the driver of a later GPU compiles the PTX of 9.0")
    expect(said, "switched", len(switched), "a flag with `arch` in it, and torch leaves the choice to you")
    expect(said, "own", count(own, "sm"), "you have chosen yourself, so the list is not looked at")


def expect(said, name, found, why):
    way = "fewer" if said[name] > found else "more"
    require(said[name] == found, f"{name} = {said[name]}: there are {way}: {why}")


def count(asked, kind):
    return sum(one == kind for one, _ in asked)


def running(asked):
    """How many of the GPUs find something that they can run: machine code of their major number, or older PTX."""
    return sum(
        any(number <= gpu and (kind == "compute" or number // 10 == gpu // 10) for kind, number in asked)
        for gpu in GPUS
    )


def measured(folder):
    """What torch here asks nvcc for, in each case."""
    command = [sys.executable, str(folder / "measure.py")]
    ran = subprocess.run(command, input=json.dumps(CASES), capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"torch cannot be asked:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
