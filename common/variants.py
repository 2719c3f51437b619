"""Stage 6 without some of its ideas: the sources, libraries and modules of what `make ablation` measures.

An idea is a file `stages/stage6_fused/ablation/NAME.diff`. Its first line says what the idea is; the rest takes it
out of the sources: behind a line `=== FILE` the hunks for that file, as exercises/diffs.py reads them. Diffs add up:
in the order of `IDEAS`, any of them may be applied or left out.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from . import architectures, host, objects, results
from .build import BUILD, build_folder, first_errors, import_folder, key_of, variables_of
from .errors import UserError
from .exercises.diffs import patched
from .extension import Extension, read_setup
from .objects import Job
from .stages import find

FOLDER = find(6).folder
DIFFS = FOLDER / "ablation"
PLACE = BUILD / "ablation"
# On which devices' tensors an idea makes a difference.
IDEAS = {
    "recomputed": ("cuda", "cpu"),
    "packs": ("cuda",),
    "units": ("cuda",),
    "bias": ("cuda", "cpu"),
    "small": ("cuda",),
    "joined": ("cuda", "cpu"),
    "autograd": ("cuda", "cpu"),
    "vectors": ("cpu",),
}


@dataclass(frozen=True)
class Variant:
    """The stage without the ideas in `out`."""

    name: str
    out: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its sources are written to."""
        return PLACE / self.name.replace(" ", "_")


WHOLE, BARE = Variant("all", ()), Variant("none", tuple(IDEAS))


def without(idea: str) -> Variant:
    """The stage without one idea."""
    return Variant(f"without {idea}", (idea,))


def only(idea: str) -> Variant:
    """The stage without all ideas but one."""
    return Variant(f"only {idea}", tuple(other for other in IDEAS if other != idea))


def variants(ideas: Iterable[str] = IDEAS) -> list[Variant]:
    """The stage, then without each of these ideas; the stage without any idea, then with each of these alone."""
    ideas = list(ideas)
    return [WHOLE, *map(without, ideas), BARE, *map(only, ideas)]


def of_device(device: str) -> list[Variant]:
    """Those that differ in what they do with tensors on a device."""
    return variants(idea for idea, devices in IDEAS.items() if device in devices)


# Sources --------------------------------------------------------------------------------------------------------


def meaning(idea: str) -> str:
    """What an idea is, in a sentence."""
    return diff_of(idea).partition("\n")[0]


def diff_of(idea: str) -> str:
    """The text of an idea's diff."""
    return (DIFFS / f"{idea}.diff").read_text()


def sources(variant: Variant) -> dict[str, str]:
    """The texts of a variant's files, by their names in the stage's folder.

    Raises `UserError`, naming the diff, when one does not fit the sources any more.
    """
    csrc = (path for path in (FOLDER / "csrc").iterdir() if path.is_file())
    paths = [FOLDER / "__init__.py", FOLDER / "lltm.py", FOLDER / "setup.py", *sorted(csrc)]
    texts = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in paths}
    for idea in variant.out:
        _, *parts = re.split(r"^=== (.+)\n", diff_of(idea), flags=re.MULTILINE)
        for name, diff in zip(parts[::2], parts[1::2], strict=True):
            try:
                texts[name] = patched(texts[name], diff)
            except (KeyError, ValueError) as error:
                shown = f"{DIFFS.name}/{idea}.diff"
                raise UserError(f"{shown} does not fit {name} ({variant.name} of {FOLDER.name}): {error}") from None
    return texts


def write(variant: Variant) -> Path:
    """Writes a variant's files; the folder."""
    for name, text in sources(variant).items():
        path = variant.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return variant.folder


def source_hash() -> str:
    """A hash of the stage's sources and of the diffs."""
    texts = [results.hash_of(FOLDER), *map(diff_of, IDEAS)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


# Libraries ------------------------------------------------------------------------------------------------------


def build(wanted: Iterable[Variant], target: str, emulated: Iterable[Variant] = ()) -> dict[tuple[str, str], Path]:
    """The libraries of variants for `target`, and of those for the emulator, by names of variant and target.

    `target` is `cuda` or `host`; a library for `cuda` has the code for CPUs too. As many compilers run as there are
    cores. What is the same in several variants is compiled once, but for the operators' namespace, which must differ.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    keys = {variant: key_of(write(variant), target) for variant in wanted}
    libraries = {variant: PLACE / f"{target}-{key}" / "_C.so" for variant, key in keys.items()}
    missing = {library: variant for variant, library in libraries.items() if not library.exists()}
    with (
        tempfile.TemporaryDirectory(prefix="unfinished-", dir=PLACE) as work,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        temp = Path(work)
        others = {(v.name, "emulator"): pool.submit(build_emulator, v) for v in emulated}
        if missing:
            extension = extension_of(target, temp)
            jobs = {library: jobs_of(variant, extension, keys[variant]) for library, variant in missing.items()}
            compile_all([job for several in jobs.values() for job in several], temp, pool)
            for library, several in jobs.items():
                link([object_of(job, temp) for job in several], extension, library)
        found = {(variant.name, target): library for variant, library in libraries.items()}
        return found | {name: future.result() for name, future in others.items()}


def build_emulator(variant: Variant) -> Path:
    """The library of a variant for the emulator."""
    place = PLACE / f"{variant.folder.name}_emulator"
    return build_folder(write(variant), "emulator", place, f"{FOLDER.name}, {variant.name}", quick=True).path


def extension_of(target: str, work: Path) -> Extension:
    """What setup.py asks for, without the namespace."""
    offered = [architectures.of_gpus()] if target == "cuda" else []
    with (work / "setup.log").open("w+") as log:
        extension = read_setup(FOLDER, work, log, variables_of(target, PLACE), offered)
        if extension is None:
            log.seek(0)
            raise UserError(f"setup.py of {FOLDER.name} fails.\n{first_errors(log.read())}")
    return replace(extension, macros=[macro for macro in extension.macros if macro[0] != "LLTM_NAMESPACE"])


def jobs_of(variant: Variant, extension: Extension, key: str) -> list[Job]:
    """What is to be compiled for a variant; the namespace is given only to those who ask for it."""
    include = [*extension.include_dirs, sysconfig.get_paths()["include"]]
    common = [*extension.defines, *(f"-I{path}" for path in include)]
    cxx = ["-DNDEBUG", "-fPIC", host.standard(), *extension.cxx]
    numbers = [name.removeprefix("sm_") for name in extension.architectures]
    nvcc = [*extension.nvcc_defaults, *(f"-gencode=arch=compute_{n},code=sm_{n}" for n in numbers)]
    nvcc += ["--compiler-options", "-fPIC", host.standard(), *extension.nvcc]
    jobs = []
    for name in extension.sources:
        source = variant.folder / name
        texts = (path.read_text() for path in objects.included(source, []))
        own = [f"-DLLTM_NAMESPACE=lltm_ablation_{key}"] if any("LLTM_NAMESPACE" in text for text in texts) else []
        if name.endswith(".cu"):
            job = Job(source, [*common, *own, *nvcc], variant.folder, architectures.nvcc_version())
            jobs.append(job._replace(command=(architectures.nvcc(),)))
        else:
            version = f"torch {objects.torch_version()}"
            prefix = f"-ffile-prefix-map={variant.folder}=."
            jobs.append(Job(source, [*common, *own, *cxx, prefix], variant.folder, version))
    return jobs


def object_of(job: Job, temp: Path) -> Path:
    """Where the object of a source is kept, or will be."""
    return objects.object_of(job, [], BUILD / "objects", temp)


def compile_all(jobs: Iterable[Job], temp: Path, pool: ThreadPoolExecutor) -> None:
    """Compiles each object once, the slow ones first."""
    different = {object_of(job, temp): job for job in jobs}.values()

    def compiled(job: Job) -> None:
        found, said = objects.compiled(job, [], BUILD / "objects", temp, None)
        if found is None:
            name = job.source.relative_to(PLACE)
            raise UserError(f"{name} does not compile.\n{first_errors(said)}")

    list(pool.map(compiled, sorted(different, key=lambda job: job.source.suffix != ".cu")))


def link(made: list[Path], extension: Extension, library: Path) -> None:
    """Makes a library of objects; it is there whole or not at all."""
    library.parent.mkdir(exist_ok=True)
    unfinished = library.with_suffix(f".{os.getpid()}")
    command = [*objects.compiler(), "-shared", *map(str, made), "-o", str(unfinished)]
    command += [*(f"-L{path}" for path in extension.library_dirs if Path(path).exists())]
    command += [*(f"-l{name}" for name in extension.libraries), *extension.link_args]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(library.parent)
        raise UserError(f"a variant of {FOLDER.name} does not link.\n{first_errors(done.stderr)}")
    unfinished.replace(library)


def load(variant: Variant, library: Path, target: str) -> ModuleType:
    """A variant's module `lltm`, with its library as `_C`."""
    package = f"lltm_ablation_{variant.folder.name}_{target}"
    return import_folder(package, variant.folder, library, f"{FOLDER.name}, {variant.name},")
