"""Stage 6 without some of its optimisations: the sources, libraries and modules that `make ablation` measures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from ...build import host
from ...build import nvcc as architectures
from ...build.library import build_folder, folder_key, setup_variables
from ...build.modules import import_folder
from ...commands.optimisations import FOLDER, OPTIMISATIONS, read_diff, sources_without
from ...emulator import (
    Extension,
    Job,
    compile_object,
    compiler_command,
    find_includes,
    find_object,
    first_errors,
    read_setup,
    torch_version,
)
from ...errors import UserError
from ...key import Key
from ...paths import build_cache, build_dir
from ...results.sources import hash_code
from ...stages import code_of

VARIANTS_FOLDER = build_dir() / "ablation"


@dataclass(frozen=True)
class Variant:
    """The stage without the optimisations in `out`."""

    name: str
    out: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder for the variant's sources."""
        return VARIANTS_FOLDER / self.name.replace(" ", "_")


WHOLE, BARE = Variant("all", ()), Variant("none", tuple(OPTIMISATIONS))


def without(optimisation: str) -> Variant:
    """The stage without one optimisation."""
    return Variant(f"without {optimisation}", (optimisation,))


def only(optimisation: str) -> Variant:
    """The stage without all optimisations but one."""
    return Variant(f"only {optimisation}", tuple(other for other in OPTIMISATIONS if other != optimisation))


def variants_of(optimisations: Iterable[str] = OPTIMISATIONS) -> list[Variant]:
    """The stage, the stage without each of these, the stage without any optimisation, and with each alone."""
    optimisations = list(optimisations)
    return [WHOLE, *map(without, optimisations), BARE, *map(only, optimisations)]


def variants_for_device(device: str) -> list[Variant]:
    """The variants that behave differently for tensors on a device."""
    return variants_of(optimisation for optimisation, devices in OPTIMISATIONS.items() if device in devices)


# Sources --------------------------------------------------------------------------------------------------------


def write_sources(variant: Variant) -> Path:
    """Writes a variant's files and returns the folder."""
    for name, text in sources_without(variant.out).items():
        path = variant.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return variant.folder


def hash_ablation() -> str:
    """A hash of the stage's sources and of the diffs."""
    return Key(hash_code(code_of(FOLDER), FOLDER), *map(read_diff, OPTIMISATIONS)).text


# Libraries ------------------------------------------------------------------------------------------------------


def build_variants(
    wanted: Iterable[Variant], target: str, emulated: Iterable[Variant] = ()
) -> dict[tuple[str, str], Path]:
    """The libraries of variants for `target`, and of those for the emulator, by names of variant and target.

    `target` is `cuda` or `host`; a library for `cuda` has the code for CPUs, too. As many compilers run as there are
    cores. Sources that several variants share are compiled once, except those with the operators' namespace.
    """
    VARIANTS_FOLDER.mkdir(parents=True, exist_ok=True)
    keys = {variant: folder_key(write_sources(variant), target) for variant in wanted}
    libraries = {variant: VARIANTS_FOLDER / f"{target}-{key}" / "_C.so" for variant, key in keys.items()}
    missing = {library: variant for variant, library in libraries.items() if not library.exists()}
    with (
        tempfile.TemporaryDirectory(prefix="unfinished-", dir=VARIANTS_FOLDER) as work,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        temp = Path(work)
        others = {(v.name, "emulator"): pool.submit(build_variant_for_emulator, v) for v in emulated}
        if missing:
            extension = read_extension(target, temp)
            jobs = {library: compile_jobs(variant, extension, keys[variant]) for library, variant in missing.items()}
            compile_variants([job for several in jobs.values() for job in several], temp, pool)
            for library, several in jobs.items():
                link_library([object_path(job, temp) for job in several], extension, library)
        found = {(variant.name, target): library for variant, library in libraries.items()}
        return found | {name: future.result() for name, future in others.items()}


def build_variant_for_emulator(variant: Variant) -> Path:
    """The library of a variant for the emulator."""
    place = f"{VARIANTS_FOLDER.name}/{variant.folder.name}_emulator"
    return build_folder(write_sources(variant), "emulator", place, f"{FOLDER.name}, {variant.name}", quick=True).path


def read_extension(target: str, work: Path) -> Extension:
    """The extension that setup.py describes, without the namespace."""
    offered = [architectures.gpu_architectures()] if target == "cuda" else []
    with (work / "setup.log").open("w+") as log:
        extension = read_setup(FOLDER, work, log, setup_variables(target, VARIANTS_FOLDER), offered)
        if extension is None:
            log.seek(0)
            raise UserError(f"setup.py of {FOLDER.name} fails.\n{first_errors(log.read())}")
    return replace(extension, macros=[macro for macro in extension.macros if macro[0] != "LLTM_NAMESPACE"])


def compile_jobs(variant: Variant, extension: Extension, key: str) -> list[Job]:
    """The objects to compile for a variant; only sources that use the namespace get it as a macro."""
    include = [*extension.include_dirs, sysconfig.get_paths()["include"]]
    common = [*extension.defines, *(f"-I{path}" for path in include)]
    cxx = ["-DNDEBUG", "-fPIC", host.cpp_standard(), *extension.cxx]
    numbers = [name.removeprefix("sm_") for name in extension.architectures]
    nvcc = [*extension.nvcc_defaults, *(f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers)]
    nvcc += ["--compiler-options", "-fPIC", host.cpp_standard(), *extension.nvcc]
    jobs = []
    for name in extension.sources:
        source = variant.folder / name
        texts = (path.read_text() for path in find_includes(source, []))
        own = [f"-DLLTM_NAMESPACE=lltm_ablation_{key}"] if any("LLTM_NAMESPACE" in text for text in texts) else []
        if name.endswith(".cu"):
            job = Job(source, [*common, *own, *nvcc], variant.folder, architectures.nvcc_version())
            jobs.append(job._replace(command=(architectures.find_nvcc(),)))
        else:
            version = f"torch {torch_version()}"
            prefix = f"-ffile-prefix-map={variant.folder}=."
            jobs.append(Job(source, [*common, *own, *cxx, prefix], variant.folder, version))
    return jobs


def object_path(job: Job, temp: Path) -> Path:
    """The path of the object of a source, which may not exist yet."""
    return find_object(job, [], build_cache(), temp)


def compile_variants(jobs: Iterable[Job], temp: Path, pool: ThreadPoolExecutor) -> None:
    """Compiles each object once, starting with the slow ones."""
    different = {object_path(job, temp): job for job in jobs}.values()

    def compiled(job: Job) -> None:
        found, said = compile_object(job, [], build_cache(), temp, None)
        if found is None:
            name = job.source.relative_to(VARIANTS_FOLDER)
            raise UserError(f"{name} does not compile.\n{first_errors(said)}")

    list(pool.map(compiled, sorted(different, key=lambda job: job.source.suffix != ".cu")))


def link_library(made: list[Path], extension: Extension, library: Path) -> None:
    """Links objects to a library, atomically."""
    library.parent.mkdir(exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")
    command = [*compiler_command(), "-shared", *map(str, made), "-o", str(unfinished)]
    command += [*(f"-L{path}" for path in extension.library_dirs if Path(path).exists())]
    command += [*(f"-l{name}" for name in extension.libraries), *extension.link_args]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(library.parent)
        raise UserError(f"a variant of {FOLDER.name} does not link.\n{first_errors(done.stderr)}")
    unfinished.replace(library)


def load_variant(variant: Variant, library: Path, target: str) -> ModuleType:
    """A variant's module `lltm`, with its library as `_C`."""
    package = f"lltm_ablation_{variant.folder.name}_{target}"
    return import_folder(package, variant.folder, library, f"{FOLDER.name}, {variant.name},")
