"""The programs in ../programs/features: each feature works as its program says, or is refused as it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from common.emulator import UserError, build_program
from common.emulator.tests.nvcc import compile_with_nvcc
from common.pages.tables import features_table as features
from common.paths import ROOT, build_cache

pytestmark = pytest.mark.proof(
    "features of CUDA", files=["common/emulator/programs/features/*", "common/emulator/libraries/**/*"]
)
FEATURES = features.read_features()
SEEDS = ("", "1", "20")  # orders of blocks and threads; the first is the usual one


def of_support(*kinds: str):
    """The features of some kinds of support, as parameters of a test."""
    chosen = [one for one in FEATURES if one.support in kinds]
    return pytest.mark.parametrize("feature", chosen, ids=lambda one: one.program.stem)


def build(feature: features.Feature, work: Path) -> Path:
    """A feature's program, built for the emulator."""
    return build_program(str(feature.program.relative_to(ROOT)), work, build_cache(), here=ROOT)


@pytest.mark.needs("g++")
@of_support("yes", "approximate")
def test_a_supported_feature_computes_what_it_should(feature, tmp_path):
    """The programs compare their results themselves. The emulator finds no mistake in them, in any order.

    Without checks, the results are right on one core and on several.
    """
    program = build(feature, tmp_path)
    others = {name: value for name, value in os.environ.items() if not name.startswith("EMULATOR_")}
    for seed in SEEDS:
        environment = others | ({"EMULATOR_SEED": seed} if seed else {}) | {"EMULATOR_LEAKS": "error"}
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), f"seed {seed!r}: {done.stderr}"
        assert re.fullmatch(r"emulator: .*(no problem found|no kernel was launched).*\n", done.stderr), done.stderr
    for cores in ("1", "4"):
        environment = others | {"EMULATOR_CHECKS": "none", "EMULATOR_CORES": cores}
        done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, ""), f"without checks, {cores} cores: {done.stderr}"


@pytest.mark.needs("g++")
@of_support("refused")
def test_a_refused_feature_is_named(feature, tmp_path):
    with pytest.raises(UserError) as refused:
        build(feature, tmp_path)
    assert feature.detail in str(refused.value)
    assert re.search(rf"{feature.program.name}:\d+", str(refused.value)), "the message names no line"


@pytest.mark.needs("nvcc")
@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.program.stem)
def test_nvcc_takes_it(feature, tmp_path):
    done = compile_with_nvcc(feature.program, tmp_path, architecture="sm_90a")
    assert done.returncode == 0, done.stderr
