"""The programs in common/emulator/features: each row of the table of what the emulator supports is tried."""

from __future__ import annotations

import re

import pytest

from common.paths import ROOT
from tests.emulator.test_program import emulate

FEATURES = sorted((ROOT / "common" / "emulator" / "features").glob("*.cu"))
KINDS = r"yes|approximate: \w.*|refused: \w.*"


@pytest.mark.needs("g++")
@pytest.mark.parametrize("program", FEATURES, ids=lambda path: path.stem)
def test_the_emulator_supports_a_feature_as_its_program_says(program):
    feature, support = program.read_text().splitlines()[:2]
    assert re.match(r"// \w.*: \w", feature), feature
    assert re.fullmatch(rf"// Support: ({KINDS})", support), support
    done = emulate(program.relative_to(ROOT))
    if support.startswith("// Support: refused: "):
        assert done.returncode == 1
        assert support.removeprefix("// Support: refused: ") in done.stderr
    else:
        assert (done.stdout, done.returncode) == ("", 0), done.stderr
        assert "error:" not in done.stderr
