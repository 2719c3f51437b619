import json
import os
import subprocess
import sys

from common import paths
from common.exercises.judge import require

LOOK = {
    "eager_kernels": "each operation that computes something launches one",
    "eager": "each kernel writes its result to memory, and the next one reads it again",
    "kernels": "pointwise operations on the same units are the first that a compiler fuses",
    "compiled": "intermediate results stay in registers, and nothing is saved for a backward pass",
    "product": "it reads two matrices and writes the third; fusion can remove none of these accesses",
}


def check(work):
    said = {name: work.number(name) for name in LOOK}
    found = measured(work.exercise.folder)
    for name, look in LOOK.items():
        require(said[name] == found[name], f"{name} = {said[name]}: the count is another number; {look}")
    gain = found["eager"] / found["compiled"]
    return (
        f"At large sizes a fused kernel can be {gain:.1f} times as fast as eager mode, and torch.compile reaches "
        "that. Your own kernel can be faster than torch.compile where it uses more knowledge: what the backward "
        "needs, or what stays on the chip from step to step"
    )


def measured(exercise):
    """The counts, from a separate process. A cache keeps what inductor compiles, together with its counts."""
    command = [sys.executable, "-W", "ignore", str(exercise / "measure.py"), str(exercise / "files")]
    variables = {
        "TORCHINDUCTOR_CACHE_DIR": str(paths.build_dir() / "inductor-counted"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    if ran.returncode != 0:
        raise RuntimeError(f"measure.py failed here:\n{ran.stdout}{ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])
