import re

import torch

from common.exercises.judge import Failure, require, same, unchanged
from common.exercises.judging.toolchain import commands

SOURCES = ("softsign.py", "csrc/softsign.cpp", "csrc/curve.cpp", "csrc/curve.h")
THREADS = 4  # that torch is set to use
# Compiles a file with the flags of setup.py, and with one that makes g++ report which loops it has vectorised.
ASK = """
import os, subprocess, sys
command = [*os.environ.get("CXX", "g++").split(), *sys.argv[1:], "-fopt-info-vec-{}", "-c", "csrc/curve.cpp"]
subprocess.run([*command, "-o", os.devnull])
"""
# Prints which of g++'s options these flags turn on, also those that a flag such as -Ofast implies.
OPTIONS = """
import os, subprocess, sys
subprocess.run([*os.environ.get("CXX", "g++").split(), *sys.argv[1:], "-Q", "--help=optimizers"])
"""
# Options that let the compiler replace a calculation by one that rounds otherwise.
INEXACT = ("-funsafe-math-optimizations", "-freciprocal-math", "-fassociative-math")
INSTRUCTIONS = ("-march=", "-mcpu=", "-mavx", "-msse", "-mfma")  # flags that ask for some by name


def check(work):
    for source in SOURCES:
        unchanged(work, source, "Change only setup.py")
    flags = flags_of(work)
    values(work)
    of_some = [flag for flag in flags if flag.startswith(INSTRUCTIONS)]
    require(
        not of_some,
        f"{' '.join(of_some)} asks for instructions that not every CPU has; on an older CPU the program ends with "
        "SIGILL, an illegal instruction",
    )
    exact(work, flags)
    in_vectors(work, flags)
    used = work.load("softsign").threads(64, THREADS)
    require(
        used > 1,
        f"at::parallel_for ran everything in one thread, but torch was told to use {THREADS}: its header was "
        "compiled without OpenMP",
    )


def flags_of(work):
    """The flags that setup.py itself gives for curve.cpp: optimisation and code generation."""
    for command in commands(work):
        if command.source == "curve.cpp":
            return [word for word in command.own[1:] if word.startswith(("-O", "-f", "-m"))]
    raise Failure("setup.py no longer compiles csrc/curve.cpp")


def values(work):
    """Compares with the formula, also for NaN."""
    softsign, numbers = work.load("softsign").softsign, work.numbers()
    for B, S in ((3, 70), (1, 1), (64, 33)):
        x = 5 * torch.randn(B, S, generator=numbers)
        x[0, 0] = torch.nan
        x.view(-1)[7::11] = torch.nan
        got = softsign(x)
        exact = torch.nn.functional.softsign(x.double()).nan_to_num(nan=0.0)
        if got.isnan().any():
            raise Failure(
                f"softsign of NaN is NaN, expected 0 (B={B}, S={S}). The source calls std::isnan, but a flag "
                "promises the compiler that there is no NaN, so it removed the test"
            )
        same("softsign(x)", got, exact, f"B={B}, S={S}", torch.float32)


def exact(work, flags):
    """No flag allows another rounding."""
    said = work.python("-c", OPTIONS, *flags).output
    allowed = [name for name in INEXACT if re.search(rf"{name}\s+\[enabled\]", said)]
    require(
        not allowed,
        f"{' '.join(flags)} turns on {', '.join(allowed)}: the compiler may round otherwise, for example multiply by "
        "a reciprocal instead of dividing. The flags must not change the results",
    )


def in_vectors(work, flags):
    """The compiler reports that it has vectorised the loop."""
    said = work.python("-c", ASK.format("optimized"), *flags).output
    if "loop vectorized" in said:
        return
    missed = work.python("-c", ASK.format("missed"), *flags).output
    reasons = re.findall(r"curve\.cpp:\d+:\d+: missed: (?:not vectorized: )?(.+)", missed)
    reason = "it does not even try, because its optimisation level does not include it"
    if reasons:
        reason = next((one for one in reasons if "control flow" in one), reasons[-1]).rstrip(".")
        reason += (
            ".\nThe loop selects one of two quotients. Computing both of them might raise a floating-point exception"
        )
    raise Failure(f"with {' '.join(flags) or 'no flags'} g++ does not vectorise the loop: {reason}")
