"""The facts that `make doctor` judges: programs, versions, devices and space of this machine.

Imports only the standard library, and torch if it is installed. (results/machine.py describes the machine for
recorded files.)
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from .. import paths
from ..build import nvcc as architectures
from ..emulator import compiler_command
from ..paths import ROOT
from .install import Requirement, unmet_requirements

# Variables that change what is built, how, or where.
BUILD_VARIABLES = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAX_JOBS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"),
    *("CUDA_HOME", "CUDA_PATH", "NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS", "NVCC_CCBIN"),
    *("TORCH_CUDA_ARCH_LIST", "TORCH_EXTENSIONS_DIR", "CUDA_VISIBLE_DEVICES"),
)
# Of the toolkit, beside nvcc: headers that torch's own headers include, and the library that every extension links.
TOOLKIT_FILES = ("cuda_runtime_api.h", "cusparse.h", "cublas_v2.h", "cusolverDn.h", "libcudart.so")
TOOLKIT_FOLDERS = ("include", "lib64", "lib", "targets/x86_64-linux/include", "targets/x86_64-linux/lib")
PROGRAM_NAMES = ("make", "ninja", "cmake", "bwrap", "compute-sanitizer", "ncu")


@dataclass(frozen=True)
class Torch:
    """The installed torch. `cuda` is None for a CPU build; `problem` is why it cannot be imported."""

    version: str = ""
    cuda: str | None = None
    gpus: tuple[tuple[str, int, int], ...] = ()  # name and compute capability of each
    oldest_capability: tuple[int, int] = (0, 0)  # the oldest one that this build has code for
    no_gpu: str = ""  # why CUDA cannot be used, in torch's words
    problem: str = ""


@dataclass(frozen=True)
class Program:
    """A program that was found, and its version; empty if unknown."""

    path: str
    version: str = ""


@dataclass(frozen=True)
class Machine:
    """The facts about this machine; None for something that is missing."""

    system: str  # "Linux", "Darwin", "Windows"
    distribution: str
    wsl: bool
    python: str
    python_header: bool
    torch: Torch | None
    programs: dict[str, Program]
    nvcc_on_path: bool
    nvcc_newest_gxx: int | None  # the newest g++ that this nvcc accepts, as its own headers say
    nvcc_architectures: tuple[str, ...]  # that this nvcc compiles for, such as "9.0"
    toolkit_lacks: tuple[str, ...]  # the files of `TOOLKIT_FILES` that are not beside nvcc
    driver: str | None  # version of the NVIDIA driver
    gpu_names: tuple[str, ...]  # as the driver names them, without torch
    shares_cxx_library: bool  # whether what g++ links uses the system's C++ library, as torch does
    googletest: bool | None  # None here and below: not tried, because there is no compiler
    server_headers: bool | None  # of Boost, OpenSSL and nlohmann-json
    cores: int
    memory: int  # bytes
    disk_free: int  # bytes
    unwritable: str  # a folder that commands must write to but cannot; empty if there is none
    builds: str = ""  # the folder for builds if the workbook itself is not writable; otherwise empty
    lacking: tuple[Requirement, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)


def inspect_machine() -> Machine:
    """The facts about this machine. Takes a few seconds if torch is installed, because it is imported."""
    smi = program_output("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()
    gpus = [line.rpartition(", ") for line in smi if ", " in line]
    compiler = compiler_command()
    nvcc = architectures.find_nvcc() or ""
    programs = {
        "c++": find_program(*compiler, "-dumpfullversion", "-dumpversion"),
        "nvcc": find_program(nvcc, "--version", after="release "),
        **{name: find_program(name, "--version") for name in PROGRAM_NAMES},
    }
    return Machine(
        system=platform.system(),
        distribution=distribution_name(),
        wsl="microsoft" in platform.release().lower(),
        python=platform.python_version(),
        python_header=(Path(sysconfig.get_path("include")) / "Python.h").exists(),
        torch=inspect_torch(),
        programs={name: found for name, found in programs.items() if found},
        nvcc_on_path=shutil.which("nvcc") is not None,
        nvcc_newest_gxx=newest_gxx(nvcc),
        nvcc_architectures=tuple(architectures.supported_architectures()) if nvcc else (),
        toolkit_lacks=find_lacking_files(nvcc),
        driver=gpus[0][2] if gpus else None,
        gpu_names=tuple(name for name, _, _ in gpus),
        shares_cxx_library=shares_cxx_library(" ".join(compiler)),
        googletest=can_compile("#include <gtest/gtest.h>", compiler),
        server_headers=can_compile(
            "#include <boost/version.hpp>\n#include <openssl/evp.h>\n#include <nlohmann/json.hpp>", compiler
        ),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        disk_free=shutil.disk_usage(ROOT).free,
        unwritable=find_unwritable(),
        builds="" if paths.build_dir() == ROOT / "build" else str(paths.build_dir()),
        lacking=tuple(unmet_requirements()),
        variables={name: os.environ[name] for name in BUILD_VARIABLES if os.environ.get(name)},
    )


def inspect_torch() -> Torch | None:
    """The installed torch, imported to see whether it works."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch

            usable = torch.cuda.is_available()
    except ModuleNotFoundError as error:
        return None if error.name == "torch" else Torch(problem=str(error))
    except (ImportError, OSError) as error:
        return Torch(problem=str(error).splitlines()[0])
    facts = {"version": torch.__version__, "cuda": torch.version.cuda}
    if not usable:
        return Torch(**facts, no_gpu=why_no_gpu(torch))
    properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    built_for = [int(arch[3:].rstrip("af")) for arch in torch.cuda.get_arch_list() if arch.startswith("sm_")]
    return Torch(
        **facts,
        gpus=tuple((each.name, each.major, each.minor) for each in properties),
        oldest_capability=divmod(min(built_for, default=0), 10),
    )


def why_no_gpu(torch) -> str:
    """The first sentence of torch's error when CUDA cannot be used."""
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return re.split(r"\.\s|\n", str(error).strip())[0].rstrip(".")
    return ""


def distribution_name() -> str:
    """The name that a Linux distribution gives itself, such as 'Debian GNU/Linux 12 (bookworm)'."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.platform()


def toolkit_folders(nvcc: str) -> list[Path]:
    """The folders that can be the root of nvcc's toolkit; none without nvcc."""
    found = shutil.which(nvcc)
    return [Path(found).parents[1], Path(found).resolve().parents[1]] if found else []


def find_lacking_files(nvcc: str) -> tuple[str, ...]:
    """The files of `TOOLKIT_FILES` that nvcc's toolkit does not have; none if nvcc is only a script, elsewhere."""
    roots = [root for root in toolkit_folders(nvcc) if (root / "include" / "crt" / "host_config.h").exists()]
    folders = [root / name for root in roots for name in TOOLKIT_FOLDERS]
    return tuple(name for name in TOOLKIT_FILES if folders and not any((one / name).exists() for one in folders))


def newest_gxx(nvcc: str) -> int | None:
    """The newest g++ that nvcc accepts, from the header with which it rejects newer ones."""
    for header in [root / "include" / "crt" / "host_config.h" for root in toolkit_folders(nvcc)]:
        if header.exists() and (bound := re.search(r"#if __GNUC__ > (\d+)", header.read_text())):
            return int(bound[1])
    return None


def find_program(name: str, *arguments: str, after: str = "") -> Program | None:
    """A program, by name or path, with the version that it prints after `after`; None if it is not installed."""
    path = shutil.which(name)
    if not path:
        return None
    version = re.search(re.escape(after) + r"(\d+(?:\.\d+)*)", program_output(path, *arguments))
    return Program(path, version[1] if version else "")


def program_output(*command: str, text: str = "") -> str:
    """The output of a program for the input `text`; empty if it is not installed, fails or hangs."""
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def can_compile(source: str, compiler: list[str]) -> bool | None:
    """Whether the compiler finds the header that a line of C++ includes. None if there is no such compiler.

    If CXX names none, another compiler that is on PATH is asked.
    """
    if not shutil.which(compiler[0]):
        compiler = next(([name] for name in ("c++", "g++", "clang++") if shutil.which(name)), [])
    if not compiler:
        return None
    return bool(program_output(*compiler, "-E", "-x", "c++", "-", text=source))


def shares_cxx_library(command: str) -> bool:
    """Whether what a compiler links uses the shared C++ library. True if the compiler cannot link at all."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "probe.so"
        options = ("-shared", "-fPIC", "-x", "c++", "-", "-o", str(library))
        program_output(*command.split(), *options, text="int* probe() { return new int; }\n")
        return not library.exists() or any(name in library.read_bytes() for name in (b"libstdc++.so", b"libc++.so"))


def find_unwritable() -> str:
    """The first folder that commands must write to but this user cannot; empty if there is none."""
    for folder in (
        (paths.build_dir(), ROOT / "out") if paths.build_dir().is_relative_to(ROOT) else (paths.build_dir(),)
    ):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not os.access(nearest, os.W_OK):
            return str(nearest)
    return ""
