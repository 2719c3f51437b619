import re
import subprocess

import torch

from common.emulator import demangle
from common.exercises.judge import OPERATORS, Failure, refused, require, same
from common.exercises.judging.repeats import results_kept
from common.exercises.judging.toolchain import commands

OLDEST = 0x020B << 48
OF_TORCH = re.compile(r"^(?:.* )?(at|c10|torch|caffe2)::")


def check(work):
    operator(work)
    unstable = [name for name in undefined_symbols(work) if OF_TORCH.match(name)]
    some = "\n".join(f"  {name:.110}" for name in unstable[:4])
    require(
        not unstable,
        f"the library needs {len(unstable)} C++ symbol{'s' * (len(unstable) > 1)} of torch, which change from "
        f"version to version, such as\n{some}",
    )
    target(work)


def operator(work):
    """The operator computes elu, and accepts only contiguous float32 tensors."""
    probe, numbers = work.beside(OPERATORS), work.numbers()
    for shape in ((3, 70), (1, 33), (0, 5), (7,)):
        x = torch.randn(shape, generator=numbers)
        want = torch.nn.functional.elu(x.double())
        same("torch.ops.gates.elu(x)", probe.call("gates::elu", x), want, f"x {shape}", torch.float32)
    require(
        probe.has_kernel("gates::elu", "CPU") and not probe.has_kernel("gates::elu", "CUDA"),
        "gates::elu is not registered for the CPU alone: on another device, elu_of would read its memory",
    )
    x, another = torch.randn(2, 3, 70, generator=numbers)
    results_kept(work, "torch.ops.gates.elu", ["the result"], [x], [another])
    for other, what in (
        (x.double(), "float64"),
        (x.int(), "int32"),
        (x.half(), "float16"),
        (x.t(), "transposed numbers"),
        (torch.randn(3, 80)[:, :70], "part of wider rows"),
    ):
        try:
            refused(probe.call, "gates::elu", other)
        except Failure:
            raise Failure(f"x of {what} is not rejected, but elu_of needs contiguous float32 numbers") from None


def undefined_symbols(work):
    """The demangled names of all symbols that the library needs from other libraries."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(work.library())], capture_output=True, text=True)
    if listed.returncode != 0:
        raise RuntimeError(f"nm: {listed.stderr}")
    return [line.split(maxsplit=1)[1] for line in demangle(listed.stdout).splitlines()]


def target(work):
    """setup.py tells the headers which torch is the oldest."""
    words = [word for command in commands(work) for word in command.words]
    found = [word.partition("=")[2] for word in words if word.startswith("-DTORCH_TARGET_VERSION=")]
    require(
        bool(found),
        "the library needs no C++ symbol of torch, but it may still use a function that an older torch lacks: the "
        "headers leave out what is newer than TORCH_TARGET_VERSION, which setup.py does not define",
    )
    require(
        re.fullmatch(rf"(0x0*{OLDEST:x}|{OLDEST})U?L{{0,2}}", found[0], re.IGNORECASE) is not None,
        f"TORCH_TARGET_VERSION is {found[0]}, expected the value for 2.11",
    )
