"""Libraries that are loaded into one process: each keeps its own static objects, and so calls its own operators."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common import stages
from common.build import targets
from common.build.library import build_folder, build_stage
from common.emulator import compiler_command
from common.paths import build_dir
from common.studies.wheels import recorder as wheels
from support.labs import texts
from support.proofs.files import stage_files

# Whose headers may have objects that are one for the whole process: torch's, the standard library's and CUDA's.
OTHERS = re.compile(r"(guard variable for )?(at|c10|torch|ska|pybind11|std|__gnu_cxx|cuda|cub|thrust)::")
ON_GPU = pytest.mark.needs("gpu", "nvcc")
LIBRARIES = [
    pytest.param(stage.number, target, marks=[ON_GPU] if target == "cuda" else [])
    for stage in stages.STAGES
    if targets.has_cpp(stage)
    for target in ("host", "cuda")
    if target in stage.targets
]

pytestmark = [
    pytest.mark.needs("g++"),
    pytest.mark.proof(
        "stages' tests",
        files=[*stage_files(), "notebooks/05b_using_an_operator.py", "stages/stage5_custom_op/stable_abi/**/*"],
    ),
]


def unique(library: Path) -> list[str]:
    """The names of a library that are one for the whole process, however it is loaded (STB_GNU_UNIQUE)."""
    shown = subprocess.run(["nm", "--demangle", str(library)], capture_output=True, text=True, check=True)
    return re.findall(r"^[0-9a-f]+ u (.+)$", shown.stdout, re.MULTILINE)


def of_ours(library: Path) -> list[str]:
    return [name for name in unique(library) if not OTHERS.match(name)]


@pytest.mark.parametrize(("number", "target"), LIBRARIES)
def test_a_stage_shares_no_object_of_its_own(number: int, target: str) -> None:
    assert of_ours(build_stage(stages.get_stage(number), target).path) == []


def test_nor_does_the_variant_through_the_stable_abi() -> None:
    place = build_dir() / "lltm_stage5_stable-host"
    assert of_ours(build_folder(wheels.STABLE, "host", place, "the stable variant", quick=True).path) == []


ASK = """
import ctypes, sys
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
    library.ask.restype = ctypes.c_char_p
    print(library.ask().decode())
"""
OBJECT = "found<0>()::pointwise"


@pytest.mark.syllabus("5.1g")
@pytest.mark.parametrize(
    ("around", "flags", "shared"),
    [(("", ""), [], True), (("namespace {", "}"), [], False), (("", ""), ["-fvisibility=hidden"], False)],
    ids=["as it stands", "without a name", "hidden"],
)
def test_the_static_object_of_a_template(around, flags, shared, tmp_path) -> None:
    """The notebook's, in two libraries that do not see each other: whichever is asked first decides for both."""
    source = texts("05b_using_an_operator")["LOOKS_UP"] % around
    source = source.replace('extern "C"', 'extern "C" __attribute__((visibility("default")))')
    for name in ("lltm", "mycell"):
        options = ["-shared", "-fPIC", f'-DNAMESPACE="{name}"', *flags, "-x", "c++", "-", "-o", f"{name}.so"]
        subprocess.run([*compiler_command(), *options], cwd=tmp_path, input=source, text=True, check=True)
    for names in (("lltm", "mycell"), ("mycell", "lltm")):
        command = [sys.executable, "-c", ASK, *(f"./{name}.so" for name in names)]
        asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()
        assert asked == [f"{names[0] if shared else name}::pointwise" for name in names]
    assert unique(tmp_path / "lltm.so") == ([f"guard variable for {OBJECT}", OBJECT] if shared else [])


CALL_BOTH = """
import sys
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Called(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        if operator.namespace != "aten":
            print(operator.namespace)
        return operator(*arguments, **options or {})


namespaces = "lltm_stage5_host", "lltm_stage5_twin"
for path in sys.argv[1:]:
    torch.ops.load_library(path)
with Called(), torch.autocast("cpu"):
    for namespace in namespaces:
        getattr(torch.ops, namespace).pointwise(torch.zeros(2, 9), torch.zeros(2, 3))
"""


@pytest.mark.syllabus("5.1g")
def test_two_builds_of_one_source_call_their_own_operators() -> None:
    """Under autocast, where the C++ looks the operator up by its name, and keeps what it has found."""
    stage = stages.get_stage(5)
    twin = build_folder(stage.folder, "host", build_dir() / "lltm_stage5-twin", "the twin", quick=True)
    command = [sys.executable, "-c", CALL_BOTH, str(build_stage(stage, "host").path), str(twin.path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["lltm_stage5_host", "lltm_stage5_twin"]
