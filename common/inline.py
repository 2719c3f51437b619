"""Builds CUDA code given as text, for the notebooks: for a GPU or, if there is none, for the emulator.

first = inline("first", cpp_source, cuda_source, ["square"])
first.square(torch.ones(3, device=device()))
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from . import paths
from .build import targets
from .build.notebooks import notebook_builds, remove_locks
from .console import say
from .emulator import Extension, build_extension, describe_compiler, fingerprint, first_errors
from .errors import UserError
from .key import Key

BINDING = """
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
{definitions}
}}
"""


def device() -> str:
    """The device of the tensors that an inline module takes: "cuda" with a GPU and nvcc, otherwise "cpu"."""
    return "cpu" if targets.why_unavailable("cuda") else "cuda"


def inline(
    name: str, cpp_source: str, cuda_source: str, functions: Sequence[str], target: str | None = None
) -> ModuleType:
    """Builds a module from a .cpp and a .cu text and prints the target. Python sees the `functions` of the .cpp.

    Only the binding adds includes of its own. The emulator's reports call the .cu NAME.cu and count its lines from
    the first non-empty one; `target="emulator"` uses the emulator even if there is a GPU. Builds are kept under
    build/notebooks/. Raises `UserError` with the compiler's first errors, and ImportError for an undefined symbol.
    """
    definitions = "\n".join(f'  m.def("{f}", torch::wrap_pybind_function({f}));' for f in functions)
    host = cpp_source + BINDING.format(definitions=definitions)
    if target != "emulator" and device() == "cuda":
        say(f"{name}: built with nvcc, runs on the GPU")
        return _on_gpu(name, host, cuda_source)
    why = "" if target else "no nvcc with a GPU here, so "
    say(f"{name}: {why}built with g++ for the emulator, from the same text")
    return _emulated(name, host, cuda_source.lstrip("\n"))


def _on_gpu(name: str, host: str, cuda_source: str) -> ModuleType:
    """Builds with torch's load_inline."""
    from torch.utils.cpp_extension import load_inline

    folder = notebook_builds() / name
    folder.mkdir(exist_ok=True)
    remove_locks()
    try:
        return load_inline(
            name,
            host,
            cuda_source,
            extra_cuda_cflags=["-arch=native"],
            build_directory=str(folder),
            no_implicit_headers=True,
        )
    except RuntimeError as error:
        raise UserError(f"{name} does not build.\n{first_errors(str(error))}") from None


def _emulated(name: str, host: str, cuda_source: str) -> ModuleType:
    """Builds for the emulator, into a folder named by a hash of all inputs: a new text never uses an old library."""
    from torch.utils.cpp_extension import include_paths, library_paths

    if reason := targets.why_unavailable("emulator"):
        raise UserError(f"cannot build {name}: {reason}")
    digest = Key(host, cuda_source, describe_compiler() or "", *include_paths(), fingerprint()).text
    folder = paths.build_dir() / "notebooks" / "emulator" / name
    library = folder / digest / "_C.so"
    if not library.exists():
        work = folder / f"{digest}.{os.getpid()}.unfinished"  # two processes may build the same text at once
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        (work / "main.cpp").write_text(host)  # the same name for all, so that equal host code shares its object
        (work / f"{name}.cu").write_text(cuda_source)
        _compile(name, work, include_paths(), library_paths())
        shutil.rmtree(folder / digest, ignore_errors=True)
        work.rename(folder / digest)
    # Of two modules with the same name, pybind11 would return the first.
    loader = importlib.machinery.ExtensionFileLoader(f"{name}_{digest}._C", str(library))
    spec = importlib.util.spec_from_file_location(loader.name, library, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _compile(name: str, work: Path, include_dirs: list[str], library_dirs: list[str]) -> None:
    """Builds `work/_C.so` from the two sources in it."""
    extension = Extension(
        name="_C",
        sources=["main.cpp", f"{name}.cu"],
        include_dirs=include_dirs,
        macros=[],
        cxx=[],
        nvcc=[],
        libraries=["c10", "torch", "torch_cpu", "torch_python"],
        library_dirs=library_dirs,
        link_args=[],
        nvcc_defaults=[],
        architectures=[],
    )
    log = work / "log.txt"
    with log.open("w") as file:
        cache = paths.build_cache()
        built = build_extension(work, extension, work, cache, file, file.fileno(), use_compiled_headers=True)
    if not built:
        raise UserError(f"{name} does not build.\n{first_errors(log.read_text(errors='replace'))}")
