"""The common parts of building programs and extensions: rewritten sources, flags for g++, and the runtime."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .rewrite import Kernels, Spaces, find_kernels, find_spaces, given_macros, read, rewrite
from .toolchain.compiler import has_cpp20
from .toolchain.objects import Job, find_includes, find_own_headers

PACKAGE = Path(__file__).parent
RUNTIME = PACKAGE / "runtime"
INCLUDE_DIR = RUNTIME / "include"
# On many systems g++ defines _FORTIFY_SOURCE by default. Its checked copies would escape the emulator's own checks.
# -g1 records the lines that reports need, also for inlined functions. -g adds all types of torch's headers: half of
# the compiler's time.
# Where variables are, which -g1 does not record, is not tracked: that takes a third of the time of large kernels.
# With DWARF 5, if a source's first code comes from a header, addr2line of binutils 2.40 names the source instead.
STANDARD_FLAGS = (
    *("-g1", "-gdwarf-4", "-fno-var-tracking", "-fno-var-tracking-assignments"),
    *("-fPIC", "-fno-gnu-unique", "-U_FORTIFY_SOURCE"),
)
# -O1 keeps kernels close to their lines. Every load and store calls the runtime (src/accesses/hooks.cpp); the
# sanitizer's own library is not linked. A structure is copied in one access, not member by member, and kernels call
# no function that g++ could inline (see qualifiers.h). An index outside of an array calls the runtime. A stack that
# overflows must touch its guard page.
CHECKED_FLAGS = (
    *("-fsanitize=thread", "--param=tsan-distinguish-volatile=1", "-fno-tree-sra", "-fno-semantic-interposition"),
    *("-fsanitize=bounds", "-fstack-clash-protection"),
)
# Wrong kernels must run as written: g++ must not assume that undefined behaviour does not happen.
NVCC_LIKE_FLAGS = (
    *("-fwrapv", "-fno-strict-aliasing", "-fno-aggressive-loop-optimizations", "-fno-delete-null-pointer-checks"),
    "-Wno-volatile",
)
# The emulator's headers need concepts; g++ also has them in C++17.
KERNEL_FLAGS = ("-fconcepts", *STANDARD_FLAGS, "-O1", *CHECKED_FLAGS, *NVCC_LIKE_FLAGS)
# g++ frees no memory while it compiles the runtime: that saves a tenth of the time of a user's first run.
RUNTIME_FLAGS = (
    *("-std=c++20", *STANDARD_FLAGS, "-g0", "-fvisibility=hidden", "-pipe"),
    *("--param=ggc-min-expand=1000", "--param=ggc-min-heapsize=1000000"),
)
# Folders of the runtime that must be fast: they run at every load and store, or at every switch between threads.
OPTIMISED = ("state", "memory", "scheduler", "synchronisation", "ordering", "races", "accesses", "device")
HEADER_SUFFIXES = (".h", ".hpp", ".cuh", ".inl")


def why_unavailable() -> str | None:
    """Why the emulator cannot run on this machine; None when it can."""
    return None if has_cpp20() else "found no C++ compiler that supports C++20 (g++ 11 or newer)"


class SourceCopies(NamedTuple):
    """Rewritten copies, in `folder`, of the files below `root`. Messages name files by their paths from `here`."""

    root: Path
    folder: Path
    here: Path

    def copy_of(self, path: Path) -> Path:
        """Where the copy of a file or a folder is."""
        return self.folder / path.relative_to(self.root)

    @property
    def prefix_maps(self) -> list[str]:
        """The flags that make debug information name the originals."""
        original = os.path.relpath(self.root, self.here)
        # The compiler gets the path of the copies relative to `here` if that is shorter.
        maps = {self.here: ".", self.folder: original, os.path.relpath(self.folder, self.here): original}
        return [f"-fdebug-prefix-map={path}={name}" for path, name in maps.items()]


def rewrite_sources(
    sources: Iterable[Path],
    include_dirs: Sequence[Path],
    here: Path,
    folder: Path,
    root: Path | None = None,
    macros: Sequence[str] = (),
) -> SourceCopies:
    """Rewrites sources, and what they include from their own folders or from `include_dirs`, into `folder`.

    The layout of the copies begins at `root`, if it is given and no file is outside it. `macros` are those of the
    command line, such as `N=3`. Raises `UserError` for code that the emulator cannot run.
    """
    files = dict.fromkeys(path for source in sources for path in find_includes(source, include_dirs))
    folders = [*(path.parent for path in files), *include_dirs, *([root] if root else [])]
    copies = SourceCopies(Path(os.path.commonpath(folders)), folder, here)
    known = given_macros(macros)
    read_sources = [
        read(path, os.path.relpath(path, here), find_own_headers(path, include_dirs), known) for path in files
    ]
    kernels: Kernels = {}  # that headers declare for the files that include them
    spaces: Spaces = defaultdict(set)
    for path, source in zip(files, read_sources, strict=True):
        if path.suffix in HEADER_SUFFIXES:
            kernels |= find_kernels(source)
            for name, found in find_spaces(source)[0].items():
                spaces[name] |= found
    for path, source in zip(files, read_sources, strict=True):
        copy = copies.copy_of(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(rewrite(source, kernels, spaces), encoding="utf-8")
    return copies


def is_usable(include_dir: Path) -> bool:
    """Whether to look for headers in a folder: it exists and is not the include folder of the CUDA Toolkit."""
    return include_dir.exists() and not (include_dir / "cuda_runtime.h").exists()


def optimised_flags(macros: Sequence[str] = ()) -> list[str]:
    """The flags for sources that must be fast, and that include the emulator's headers."""
    return [*_runtime_flags(macros), "-O2"]


def runtime_jobs(temp: Path, *folders: str, macros: Sequence[str] = ()) -> list[Job]:
    """The jobs that compile the runtime: its sources in `src`, and those in other folders beside it.

    The sources share headers and templates. Compiled together, as one file for each of two cores, they take a third
    of the time. So names must be unique within the whole runtime.
    """
    sources = [source for folder in ("src", *folders) for source in sorted((RUNTIME / folder).rglob("*.cpp"))]
    builtin = RUNTIME / "src" / "state" / "builtin_variables.cpp"  # apart: each kernel reads these variables
    fast = [source for source in sources if source.parent.name in OPTIMISED and source != builtin]
    bundles = {"fast": fast, "slow": [source for source in sources if source not in (*fast, builtin)]}
    flags = _runtime_flags(macros)
    jobs = [Job(builtin, [*flags, "-O1"], PACKAGE)]
    for name, bundle in bundles.items():
        source = temp / f"{name}.cpp"
        source.write_text("".join(f'#include "{path}"\n' for path in bundle))
        jobs.append(Job(source, [*flags, "-O2" if name == "fast" else "-O0"], PACKAGE))
    return jobs


def _runtime_flags(macros: Sequence[str]) -> list[str]:
    return [f"-I{INCLUDE_DIR}", *RUNTIME_FLAGS, *(f"-D{macro}" for macro in macros)]


def add_versions(jobs: Iterable[Job]) -> list[Job]:
    """The jobs with the emulator's headers added to the dependencies of their objects."""
    version = _hash_files(path for path in INCLUDE_DIR.rglob("*") if path.is_file()).hex()
    return [job._replace(versions=f"{job.versions} {version}") for job in jobs]


def fingerprint() -> bytes:
    """A hash of the emulator itself."""
    folders = [path for name in ("rewrite", "toolchain", "runtime") for path in (PACKAGE / name).rglob("*")]
    files = [*PACKAGE.iterdir(), *folders]
    return _hash_files(path for path in files if path.is_file() and path.suffix in (".py", ".h", ".cuh", ".cpp", ""))


def _hash_files(paths: Iterable[Path]) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()
