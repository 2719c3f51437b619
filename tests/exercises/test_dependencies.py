"""The proofs of exercises depend on every module that a check imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from common.exercises import every
from common.paths import ROOT
from support.proofs.keys import Keys, Modules

PROOFS = Path(__file__).with_name("test_exercises.py")


@pytest.mark.needs("grimp")
def test_a_proof_depends_on_all_that_a_check_imports():
    """And not on what draws, measures or writes pages."""
    checks = [str(one.check_file) for one in every()]
    code = "import runpy, sys; import common.exercises.checking; "
    code += "[runpy.run_path(path) for path in sys.argv[1:]]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *checks], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {name for name in done.stdout.split() if name.partition(".")[0] == "common"}
    assert {"common.exercises.judge", "common.exercises.judging.programs"} <= imported
    modules = Modules(["common", "support"])
    keys = Keys(ROOT, ["common", "support"])
    named = {module for path in [PROOFS, *checks] for module in keys.imports(Path(path))}
    named |= modules.in_package("common.exercises.runner")
    below = modules.files_of(modules.needed_by_all(named))
    assert {modules.file_of(name) for name in imported} <= below
    others = {"measure", "studies", "figures", "pages", "new", "setup", "commands"}
    assert not [path for path in below if set(path.relative_to(ROOT).parts) & others]
