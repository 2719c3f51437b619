"""The command `cuemu`, also `python -m cuemu`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .errors import UserError
from .program import STANDARD, STANDARDS, emulate

EPILOG = """\
The exit status is that of the program, with three exceptions: 66 if the program ends with 0 but a check failed, 124
if it exceeds the time limit, and 1 if it does not build. Settings such as EMULATOR_TIMEOUT=10 or
EMULATOR_CHECKS=-races are environment variables.
"""
COMPILER_FLAGS = ("-Xcompiler", "--compiler-options")  # as nvcc calls them


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Parses the command line. Arguments after -- are passed to the program."""
    top = argparse.ArgumentParser(prog="cuemu", description="Runs CUDA programs on the CPU and checks their kernels.")
    commands = top.add_subparsers(dest="command", required=True)
    usage = (
        "cuemu run FILE.cu [FILE.cu ...] [-I FOLDER] [-D NAME[=VALUE]] [-std=c++20]\n"
        "                 [-Xcompiler FLAG[,FLAG]] [--counts] [--fast] [-- ARGUMENT ...]"
    )
    run = commands.add_parser(
        "run", usage=usage, help="build a CUDA program and run it under all checks",
        description="Builds a CUDA program with g++ and runs it on the CPU under all checks.", epilog=EPILOG,
    )  # fmt: skip
    run.add_argument("files", nargs="+", metavar="FILE.cu", help="the source files of one program")
    run.add_argument(
        "-I", dest="include_dirs", action="append", default=[], metavar="FOLDER", help="a folder with headers"
    )
    run.add_argument("-D", dest="macros", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    run.add_argument(
        *("-std", "--std"), dest="standard", choices=STANDARDS, default=STANDARD, help="the version of C++"
    )
    run.add_argument(
        *COMPILER_FLAGS,
        dest="compiler_flags",
        action="append",
        default=[],
        metavar="FLAG[,FLAG]",
        help="give flags to g++",
    )
    run.add_argument("--counts", action="store_true", help="show how each line of the kernels accesses memory")
    run.add_argument("--fast", action="store_true", help="without the checks, on all cores: the results are the same")
    own, after = list(words), []
    if "--" in own:
        own, after = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments, unknown = top.parse_known_args(join_compiler_flags(own))
    if unknown:
        run.error(f"unknown arguments: {' '.join(unknown)} (put arguments for the program after --)")
    arguments.arguments = after
    return arguments


def join_compiler_flags(words: Sequence[str]) -> list[str]:
    """The words with -Xcompiler and its value as one word: argparse takes a value such as -fopenmp for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in COMPILER_FLAGS:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; a `UserError` becomes a message on stderr and the status 1."""
    given = parse_arguments(sys.argv[1:] if words is None else words)
    try:
        return emulate(
            *(given.files, given.arguments, given.include_dirs, given.macros, given.counts),
            standard=given.standard,
            checks=not given.fast,
            compiler_flags=[flag for flags in given.compiler_flags for flag in flags.split(",") if flag],
        )
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
