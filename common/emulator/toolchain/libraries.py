"""CUDA's libraries, such as cuBLAS: each is a folder of `libraries/`, for programs that include one of its headers.

A library's headers are in its folder `include/`, and its sources, if it has any, in `src/`. A library may include
the headers of another one. Programs that include no such header get nothing of all this: not even a flag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .objects import Job, find_includes

FOLDER = Path(__file__).parents[1] / "libraries"


def library_names() -> list[str]:
    """The names of all libraries, as a linker's option -l has them."""
    return sorted(path.parent.name for path in FOLDER.glob("*/include"))


def find_libraries(sources: Iterable[Path], include_dirs: Iterable[Path]) -> list[Path]:
    """The folders of the libraries whose headers are included by some sources, or by the libraries among them."""
    folders = [*include_dirs, *(FOLDER / name / "include" for name in library_names())]
    found, left = [], list(sources)
    for source in left:  # grows during the loop
        for path in find_includes(source, folders):
            library = FOLDER / path.relative_to(FOLDER).parts[0] if path.is_relative_to(FOLDER) else None
            if library and library not in found:
                found.append(library)
                left += _sources_of(library)
    return found


def library_dirs(libraries: Iterable[Path]) -> list[Path]:
    """The folders with the headers of some libraries."""
    return [library / "include" for library in libraries]


def library_jobs(libraries: Iterable[Path], flags: Iterable[str]) -> list[Job]:
    """The jobs that compile the sources of some libraries, one for each source."""
    flags = [*flags, *(f"-I{path}" for path in library_dirs(libraries))]
    return [Job(source, flags, FOLDER.parent) for library in libraries for source in _sources_of(library)]


def hash_libraries(libraries: Iterable[Path]) -> bytes:
    """A hash of all files of some libraries."""
    digest = hashlib.sha256()
    for path in sorted(path for library in libraries for path in library.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(FOLDER)}\0".encode() + path.read_bytes() + b"\0")
    return digest.digest()


def _sources_of(library: Path) -> list[Path]:
    return sorted((library / "src").glob("*.cpp"))
