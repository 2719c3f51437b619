"""Builds a torch extension for the emulator: rewrites its sources, compiles them with g++, links the runtime to them.

`build_extension` builds the extension that a setup.py describes into a folder. `load_extension` does all the steps
from setup.py to the imported module, with a cache.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import IO

from .compilation import (
    INCLUDE_DIR,
    KERNEL_FLAGS,
    add_versions,
    fingerprint,
    is_usable,
    optimised_flags,
    rewrite_sources,
    runtime_jobs,
    why_unavailable,
)
from .errors import UserError
from .toolchain.cache import Cache, build_once, default_cache, prune_cache
from .toolchain.compiler import compiler_command, compiler_version
from .toolchain.hints import find_hints
from .toolchain.libraries import find_libraries, hash_libraries, library_dirs, library_jobs, library_names
from .toolchain.messages import demangle, first_errors
from .toolchain.objects import Job, compile_objects, find_includes, precompile_headers, torch_version
from .toolchain.setup_py import Extension, read_setup

CUDA_LIBRARIES = ("cudart", "c10_cuda", "torch_cuda")


def load_extension(folder: str | Path, name: str | None = None, cache: Cache | None = None) -> ModuleType:
    """Builds the extension of a folder's setup.py for the emulator and imports it. CUDA tensors become CPU tensors.

    The module may have any name, and its sources may be outside the folder. `name` selects one of several
    extensions. The module is also added to `sys.modules`, so that its package finds it. Builds are kept in `cache`,
    or in the user's cache. Raises `UserError` for an extension that does not build or load.
    """
    folder = Path(folder).resolve()
    if reason := why_unavailable():
        raise UserError(f"cannot build {folder.name}: {reason}")
    if not (folder / "setup.py").is_file():
        raise UserError(f"{folder} has no setup.py")
    with tempfile.TemporaryDirectory() as work:
        extension = _read_setup(folder, Path(work), name)
    cache, user_cache = cache or default_cache(), cache is None
    final = cache.find("extensions", extension.name, _key_of(folder, extension))

    def build(work: Path, lock: int) -> None:
        with (work / "log.txt").open("w+") as log:
            if not build_extension(folder, extension, work, cache, log, lock, use_compiled_headers=True):
                log.seek(0)
                output = log.read()
                hints = find_hints(output).rstrip()
                raise UserError(f"{extension.name} does not build.\n{first_errors(output)}\n{hints}".rstrip())

    if build_once(final, build) and user_cache:
        prune_cache(cache)
    return _import(extension, final / f"{extension.module}.so", folder)


def build_extension(
    folder: Path,
    extension: Extension,
    work: Path,
    cache: Cache,
    log: IO[str],
    lock: int,
    use_compiled_headers: bool = False,
) -> bool:
    """Builds `work/MODULE.so` from a folder. Returns False if g++ fails; `log` then contains the reason.

    Objects are kept in `cache`, and so are torch's precompiled headers if `use_compiled_headers` is set. The
    compilers keep the file descriptor `lock` open. Raises `UserError` for what the emulator cannot run.
    """
    folder, work = Path(os.path.normpath(folder.absolute())), work.absolute()
    temp = work / "temp"
    temp.mkdir(exist_ok=True)
    sources, own_dirs = _sources_of(folder, extension), _own_include_dirs(folder, extension)
    copies = rewrite_sources(sources, own_dirs, folder, temp / "source", root=folder)
    used = find_libraries(sources, own_dirs)
    copied_dirs = [*(copies.copy_of(path) for path in own_dirs), *library_dirs(used)]
    others = [*(folder / path for path in extension.include_dirs), Path(sysconfig.get_paths()["include"])]
    include_dirs = [*copied_dirs, INCLUDE_DIR, *filter(is_usable, others)]
    common = [*extension.defines, *(f"-I{path}" for path in include_dirs)]
    jobs = []
    # The slow ones come first: host code includes torch's headers.
    for source in sorted(sources, key=lambda source: source.suffix == ".cu"):
        own = _preprocessor_flags(extension.nvcc) if source.suffix == ".cu" else extension.cxx
        flags = [*common, *own, "-std=c++20", *KERNEL_FLAGS, *copies.prefix_maps]
        jobs.append(Job(copies.copy_of(source), flags, folder, f"torch {torch_version()}"))
    jobs = add_versions([*jobs, *library_jobs(used, optimised_flags()), *runtime_jobs(temp)])
    if use_compiled_headers:
        jobs = [precompile_headers(job, cache, lock) for job in jobs]
    compiled = compile_objects(jobs, copied_dirs, cache, temp, lock)
    for _, output in compiled:
        log.write(output)
    if any(path is None for path, _ in compiled):
        return False
    emulated = (*CUDA_LIBRARIES, *library_names())
    libraries = [f"-l{name}" for name in extension.libraries if name not in emulated]
    paths = [f"-L{path}" for path in extension.library_dirs if (folder / path).exists()]
    objects = [str(path) for path, _ in reversed(compiled)]  # the runtime comes first, so its constructors run first
    command = [*compiler_command(), "-shared", *objects, "-o", str(work / f"{extension.module}.so")]
    command += [*paths, *libraries, *extension.link_args]
    log.flush()
    return subprocess.run(command, cwd=folder, stdout=log, stderr=log, pass_fds=[lock]).returncode == 0


def find_sources(folder: Path, extension: Extension) -> list[Path]:
    """The sources of an extension, and its own headers that they include."""
    own_dirs = _own_include_dirs(folder, extension)
    files = (path for source in _sources_of(folder, extension) for path in find_includes(source, own_dirs))
    return list(dict.fromkeys(files))


def _sources_of(folder: Path, extension: Extension) -> list[Path]:
    return [Path(os.path.normpath(folder / source)) for source in extension.sources]


def _own_include_dirs(folder: Path, extension: Extension) -> list[Path]:
    """The include folders with the extension's own headers: relative paths, and paths inside its folder."""
    dirs = [Path(path) for path in extension.include_dirs]
    own = [path for path in dirs if not path.is_absolute() or path.is_relative_to(folder)]
    installed = Path(sys.prefix)  # a virtual environment may be in the folder, too
    return [
        path
        for path in (Path(os.path.normpath(folder / path)) for path in own)
        if is_usable(path) and not path.is_relative_to(installed)
    ]


def _preprocessor_flags(flags: Iterable[str]) -> list[str]:
    """The nvcc flags that mean the same to g++."""
    return [flag for flag in flags if flag[:2] in ("-D", "-U", "-I")]


def _read_setup(folder: Path, work: Path, name: str | None) -> Extension:
    """The extension as setup.py describes it on a machine with a GPU. Raises `UserError` if setup.py fails."""
    has_torch = importlib.util.find_spec("torch") is not None
    with (work / "setup.log").open("w+") as log:
        extension = read_setup(folder, work, log, {"FORCE_CUDA": "1"}, name=name, claims_gpu=has_torch)
        if extension is None:
            log.seek(0)
            raise UserError(f"setup.py of {folder.name} fails.\n{first_errors(log.read())}")
    return extension


def _key_of(folder: Path, extension: Extension) -> str:
    """A hash of everything that a build depends on."""
    parts = [json.dumps(asdict(extension)), torch_version(), sys.version, *compiler_command(), compiler_version()]
    digest = hashlib.sha256("\0".join(parts).encode() + fingerprint())
    digest.update(
        hash_libraries(find_libraries(_sources_of(folder, extension), _own_include_dirs(folder, extension)))
    )
    for path in find_sources(folder, extension):
        if not path.is_file():
            raise UserError(f"{extension.name} does not build: there is no file {os.path.relpath(path, folder)}")
        digest.update(os.path.relpath(path, folder).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _import(extension: Extension, library: Path, folder: Path) -> ModuleType:
    """The module in a library, imported unless it is already imported."""
    known = sys.modules.get(extension.name)
    if known is not None and getattr(known, "__file__", None) == str(library):
        return known
    if "torch" in extension.libraries or "c10" in extension.libraries:
        importlib.import_module("torch")  # comes first, because the extension is linked with its libraries
    sys.modules.pop(extension.name, None)  # from an earlier build, which pybind11 would return
    loader = importlib.machinery.ExtensionFileLoader(extension.name, str(library))
    spec = importlib.util.spec_from_file_location(extension.name, library, loader=loader)
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        if "does not define module export function" not in str(error):  # for example an undefined symbol
            raise UserError(f"{extension.name} builds, but does not load: {demangle(str(error))}") from None
        module = ModuleType(extension.name)  # the library only registers operators, which loading it has done
        module.__file__ = str(library)
    module.__source_folder__ = str(folder)  # counts show lines of the sources
    sys.modules[extension.name] = module
    return module
