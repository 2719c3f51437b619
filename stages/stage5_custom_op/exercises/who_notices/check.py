import json
import os
import subprocess
import sys

from common import paths
from common.exercises.judge import require

LOOK = {
    "loud": "the code that inductor generates checks each result of an operator before it reads it",
    "without_asserts": "no check is left that compares the real result with the fake kernel's",
    "aot_eager": "each operator reads the properties of the real tensor, so tests with this backend find no lie",
    "writes": "the compiler does not call an operator that, by its schema, returns nothing and writes nothing",
    "opcheck": "it compares the operator with its fake kernel, and checks whether arguments have changed",
    "values": "it compares the operator only with itself, run in different ways, so it cannot know the right values",
}


def check(work):
    said = work.answers()
    numbers = {name: work.number(name) for name in LOOK if name not in ("writes", "values")}
    for name, found in measured(work.exercise.folder).items():
        answer = numbers.get(name, said[name].strip(" .").lower())
        require(answer == found, f"{name} = {said[name]}: the measurement gives another answer; {LOOK[name]}")


def measured(exercise):
    """What happens with each operator, measured in a separate process. A cache keeps what inductor compiles."""
    command = [sys.executable, "-W", "ignore", str(exercise / "measure.py"), str(exercise / "files")]
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(paths.build_dir() / "inductor"), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if ran.returncode != 0:
        raise RuntimeError(f"measure.py failed here:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
