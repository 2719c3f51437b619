import json
import subprocess
import sys
import tempfile

from common.exercises.judge import require

WHY = {
    "unchanged": "ninja finds every object newer than its sources",
    "one_file": "ninja compiles each object that is older than its source, and links",
    "header": "the compiler tells ninja which headers each file includes",
    "same_process": "the library gets another name here, numbers_v1, and that name is in every command line",
    "touched": "ninja compares modification times, not contents",
}


def check(work):
    said = {name: work.number(name) for name in WHY}
    flag = work.answers()["optimisation"].strip(" .")
    found = measured(work.exercise.folder)
    for name, why in WHY.items():
        more_or_fewer = "more" if said[name] < found[name] else "fewer"
        require(
            said[name] == found[name], f"{name} = {said[name]}: load compiled {more_or_fewer} files just now: {why}"
        )
    require(
        flag.lower() == found["optimisation"].lower(),
        f"optimisation = {flag}: the -O flag in the ninja file that load wrote just now: {found['optimisation']}. "
        "For optimised code, pass extra_cflags=['-O2']",
    )


def measured(exercise):
    """Measures what load does on this machine, with the exercise's own files."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(exercise / "measure.py"), str(exercise / "files" / "sources"), folder]
        ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        raise RuntimeError(f"load failed here:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
