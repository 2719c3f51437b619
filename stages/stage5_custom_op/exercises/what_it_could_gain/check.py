import json
import os
import subprocess
import sys

from common import paths
from common.exercises.judge import require

LOOK = {
    "eager_kernels": "each operation that computes is one",
    "eager": "what one kernel writes, the next one reads again",
    "kernels": "operations that go through the same units one by one are what a compiler fuses first",
    "compiled": "what lies between the operations stays in registers, and nothing is kept for a backward pass",
    "product": "it reads each matrix and writes the third; with nothing around it there is nothing to leave out",
}


def check(work):
    said = {name: work.number(name) for name in LOOK}
    found = measured(work.exercise.folder)
    for name, look in LOOK.items():
        require(said[name] == found[name], f"{name} = {said[name]}: counted just now, it is another number; {look}")
    gain = found["eager"] / found["compiled"]
    return (
        f"Against eager mode a fused kernel can gain {gain:.1f} times at large sizes, and torch.compile has that "
        "gain. Against torch.compile a kernel of one's own gains where it knows more: what the backward needs, or "
        "what stays on the chip from step to step"
    )


def measured(exercise):
    """What is moved, counted in a process of its own; what inductor compiles is kept, with what it counted then."""
    command = [sys.executable, "-W", "ignore", str(exercise / "measure.py"), str(exercise / "files")]
    variables = {
        "TORCHINDUCTOR_CACHE_DIR": str(paths.build_dir() / "inductor-counted"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if ran.returncode != 0:
        raise RuntimeError(f"measure.py failed here:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
