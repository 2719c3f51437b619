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
    expect(said, "codes", count(three, "sm"), "each number in the list adds one version of machine code")
    expect(said, "texts", count(three, "compute"), "PTX is added only for the number before +PTX")
    expect(
        said,
        "runs",
        running(plain),
        "code for 8.0 also runs on 8.6, but not on older GPUs and not on those of another major number",
    )
    expect(said, "forward", running(forward), "the driver compiles the PTX of 9.0 for a later GPU")
    expect(said, "switched", len(switched), "one flag contains `arch`, so torch leaves the choice to you")
    expect(said, "own", count(own, "sm"), "your flag chooses the architecture, so torch ignores the list")


def expect(said, name, found, why):
    way = "fewer" if said[name] > found else "more"
    require(said[name] == found, f"{name} = {said[name]}, but there are {way}: {why}")


def count(asked, kind):
    return sum(one == kind for one, _ in asked)


def running(asked):
    """How many of the GPUs can run the library: it has machine code for their major number, or older PTX."""
    return sum(
        any(number <= gpu and (kind == "compute" or number // 10 == gpu // 10) for kind, number in asked)
        for gpu in GPUS
    )


def measured(folder):
    """The architectures that the installed torch passes to nvcc, in each case."""
    command = [sys.executable, str(folder / "measure.py")]
    ran = subprocess.run(command, input=json.dumps(CASES), capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"measure.py failed:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
