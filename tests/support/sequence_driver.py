"""The driver of stage 7's kernels, common/studies/sequence/driver.cu, built with the emulator for some instances."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from common import stages
from common.emulator import build_program
from common.paths import ROOT, build_cache

DRIVER = Path("common/studies/sequence/driver.cu")
CSRC = stages.find_stage(7).folder.relative_to(ROOT) / "csrc"
PERSISTENT = CSRC / "persistent"


def build_driver(work: Path, instances: Iterable[str], here: Path = ROOT, start: str = "") -> Path:
    """The driver with some instances of the kernels, such as `float_lltm`, from the sources in `here`.

    All kernels are in one source, which begins with `start` after their headers. The other instances have none.
    """
    paths = {path.stem: path for path in (here / PERSISTENT / "instances").glob("*.cu")}
    assert set(instances) <= set(paths)
    lines = ['#include "instantiate.cuh"', start]
    for name, path in sorted(paths.items()):
        declared = re.search(r"^template (Kernels kernels_of<.*>\(\));", path.read_text(), re.MULTILINE)[1]
        used = f'#include "instances/{name}.cu"'
        lines.append(used if name in instances else f"template <> {declared} {{ return {{}}; }}")
    work.mkdir(parents=True, exist_ok=True)
    kernels = work / "kernels.cu"
    kernels.write_text("\n".join(lines) + "\n")
    sources = [str(DRIVER), str(PERSISTENT / "launch.cpp"), str(kernels)]
    return build_program(sources, work, build_cache(), here=here, include_dirs=[str(PERSISTENT)])


def run_driver(program: Path, *arguments: object, **settings: str) -> subprocess.CompletedProcess:
    """The driver with these arguments, on an emulated GPU with room for 16 blocks unless `settings` say otherwise."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    environment = {**others, "EMULATOR_DEVICE": "multiProcessorCount=16", "EMULATOR_TIMEOUT": "30", **settings}
    command = [program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
