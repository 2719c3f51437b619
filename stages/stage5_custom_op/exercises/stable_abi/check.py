import re
import subprocess

import torch

from common.emulator import demangle
from common.exercises.judge import OPERATORS, Failure, refused, require, same
from common.exercises.toolchain import commands

OLDEST = 0x020B << 48
OF_TORCH = re.compile(r"^(?:.* )?(at|c10|torch|caffe2)::")


def check(work):
    operator(work)
    unstable = [name for name in asked_for(work) if OF_TORCH.match(name)]
    some = "\n".join(f"  {name:.110}" for name in unstable[:4])
    require(
        not unstable,
        f"the library asks torch for {len(unstable)} name{'s' * (len(unstable) > 1)} of its C++, which change from "
        f"version to version, such as\n{some}",
    )
    target(work)


def operator(work):
    """It computes elu, of contiguous float32 tensors only."""
    probe, numbers = work.beside(OPERATORS), work.numbers()
    for shape in ((3, 70), (1, 33), (0, 5), (7,)):
        x = torch.randn(shape, generator=numbers)
        want = torch.nn.functional.elu(x.double())
        same("torch.ops.gates.elu(x)", probe.call("gates::elu", x), want, f"x {shape}", torch.float32)
    x = torch.randn(3, 70, generator=numbers)
    for other, what in ((x.double(), "float64"), (x.t(), "transposed")):
        try:
            refused(probe.call, "gates::elu", other)
        except Failure:
            raise Failure(f"x {what} is not refused: elu_of walks float32 numbers that lie side by side") from None


def asked_for(work):
    """The names of all functions that the library wants from others, as one writes them."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(work.library())], capture_output=True, text=True)
    if listed.returncode != 0:
        raise RuntimeError(f"nm: {listed.stderr}")
    return [line.split(maxsplit=1)[1] for line in demangle(listed.stdout).splitlines()]


def target(work):
    """setup.py says for which torch the headers are to be."""
    words = [word for command in commands(work) for word in command.words]
    found = [word.partition("=")[2] for word in words if word.startswith("-DTORCH_TARGET_VERSION=")]
    require(
        bool(found),
        "nothing of this torch's C++ is asked for, and still a function may be that an older torch lacks: the "
        "headers leave out what is newer than TORCH_TARGET_VERSION, which setup.py does not define",
    )
    require(
        re.fullmatch(rf"(0x0*{OLDEST:x}|{OLDEST})U?L{{0,2}}", found[0], re.IGNORECASE) is not None,
        f"TORCH_TARGET_VERSION is {found[0]}, expected that of 2.11",
    )
