"""The C++ compiler that torch would call, and its version."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess


def compiler_command() -> list[str]:
    """The beginning of a command line of the C++ compiler: the words of CXX, or else c++ or g++."""
    return (os.environ.get("CXX") or ("c++" if shutil.which("c++") else "g++")).split()


def compiler_version() -> str:
    """The compiler's output for --version; empty if there is no compiler."""
    program = shutil.which(compiler_command()[0])
    return version_text(program, *compiler_command()[1:]) if program else ""


def describe_compiler() -> str | None:
    """The name of the C++ compiler and the first line of its version; None if there is no compiler."""
    name = compiler_command()[-1]
    program = shutil.which(name)
    return f"{name}: {version_text(program).strip().partition(chr(10))[0]}" if program else None


def has_cpp20() -> bool:
    """Whether there is a compiler that supports the parts of C++20 that the emulator needs."""
    return bool(describe_compiler()) and _compiles_cpp20(*compiler_command())


@functools.cache
def version_text(*command: str) -> str:
    """The output of `command --version`; each command runs once per process."""
    return subprocess.run([*command, "--version"], capture_output=True, text=True).stdout


@functools.cache
def _compiles_cpp20(*compiler: str) -> bool:
    command = [*compiler, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=b"#include <source_location>\n", capture_output=True).returncode == 0
