import json
import os
import subprocess
import sys

from common import paths
from common.exercises.judge import require

LOOK = {
    "loud": "the code that inductor makes checks each result of an operator before it reads it",
    "without_asserts": "nothing is left that compares the result with what was said of it",
    "aot_eager": "there each operator asks the tensor that is really there, so tests with this backend find no lie",
    "writes": "an operator that returns nothing and writes nothing is not called at all",
    "opcheck": "it runs the operator and its fake kernel side by side, and looks whether arguments have changed",
    "values": "it compares the operator with itself, run in other ways: what is right, it cannot know",
}


def check(work):
    said = work.answers()
    numbers = {name: work.number(name) for name in LOOK if name not in ("writes", "values")}
    for name, found in measured(work.exercise.folder).items():
        answer = numbers.get(name, said[name].strip(" .").lower())
        require(answer == found, f"{name} = {said[name]}: measured just now, it is another answer; {LOOK[name]}")


def measured(exercise):
    """What becomes of each operator, in a process of its own; what inductor compiles is kept."""
    command = [sys.executable, "-W", "ignore", str(exercise / "measure.py"), str(exercise / "files")]
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(paths.build_dir() / "inductor"), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if ran.returncode != 0:
        raise RuntimeError(f"measure.py failed here:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
