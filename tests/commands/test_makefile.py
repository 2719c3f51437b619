"""The Makefile: its help, its choice of Python, and what it says when something is wrong."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.__main__ import parser
from common.exercises.commands import NOT_YET
from common.paths import ROOT
from common.study import find_studies

pytestmark = pytest.mark.needs("make")
MAKEFILE = (ROOT / "Makefile").read_text()
# Offered by a standard tool and not by `python -m common`.
STANDARD_TOOLS = {"test", "prove", "format", "lint"}
INNER = {"python", "any-python", "torch", ".venv/bin/python"}


def make(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=inherited | variables, capture_output=True, text=True, timeout=300
    )


def targets() -> set[str]:
    """What rules of the Makefile name, and the commands of the studies, for which it has one rule."""
    rules = re.findall(r"^([\w.%/ -]+):(?!=)", MAKEFILE, re.MULTILINE)
    named = {name for rule in rules for name in rule.split() if name not in (".PHONY", ".DELETE_ON_ERROR")}
    return named | {command.name for study in find_studies() for command in study.commands}


def python_shim(folder: Path, script: str) -> Path:
    """An executable `python` that is a shell script."""
    folder.mkdir(parents=True, exist_ok=True)
    shim = folder / "python"
    shim.write_text(f"#!/bin/sh\n{script}\n")
    shim.chmod(0o755)
    return shim


def copied(folder: Path) -> Path:
    """A folder with a Makefile and no sources, so that what a target would do is all that happens."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "Makefile", folder)
    return folder


def test_make_alone_lists_every_target() -> None:
    shown = make(f"PYTHON={sys.executable}")
    assert shown.returncode == 0
    assert shown.stdout == make("help", f"PYTHON={sys.executable}").stdout
    listed = set(re.findall(r"^  make (\S+)  +\S", shown.stdout, re.MULTILINE))
    shown_as = {"stage-%": "stage-2", "diff-%": "diff-1-2"}
    concrete = {shown_as.get(name, name) for name in targets() - INNER - {"help"}}
    assert listed == concrete
    for group in ("Start here", "Work with a stage", "Measure", "For maintainers"):
        assert f"\n{group}\n" in f"\n{shown.stdout}"


def test_every_target_is_a_command_and_every_command_a_target() -> None:
    [commands] = [action.choices for action in parser()._actions if action.choices and "tour" in action.choices]
    offered = {name.removesuffix("-%") for name in targets() - INNER} - STANDARD_TOOLS
    assert set(commands) == offered


def test_every_command_of_a_study_is_a_target() -> None:
    names = [command.name for study in find_studies() for command in study.commands]
    shown = make("-n", *names, f"PYTHON={sys.executable}")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert re.findall(r"-m common ([\w-]+)$", shown.stdout, re.MULTILINE) == ["setup", *names]


@pytest.mark.parametrize("target", ["stage-x", "stage-99", "diff-1-99", "diff-x", "diff-1", "diff-1-2-0"])
def test_bad_targets_give_one_clear_line(target: str) -> None:
    done = make(target, f"PYTHON={sys.executable}")
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", ["doctor", "setup", "stage-1"])
def test_a_python_that_is_too_old_or_absent_is_named(target: str, tmp_path: Path) -> None:
    old = python_shim(tmp_path, "exit 1")  # what the question about its version comes to
    for wrong in (str(old), "no-such-python"):
        done = make(target, f"PYTHON={wrong}")
        assert done.returncode != 0
        first, *others = done.stderr.splitlines()
        assert first.startswith(f"error: {wrong} is not Python 3.10 or newer; name one that is")
        assert all(line.startswith("make: ***") for line in others)


def test_the_choice_of_python(tmp_path: Path) -> None:
    folder = copied(tmp_path / "book")
    shims = {
        name: python_shim(tmp_path / f"{name} env" / "bin", f'case "$*" in -m*) echo {name} "$@";; esac')
        for name in ("named", "virtual", "conda")
    }
    environments = {name: str(shim.parents[1]) for name, shim in shims.items()}
    both = {"VIRTUAL_ENV": environments["virtual"], "CONDA_PREFIX": environments["conda"]}
    named = f"PYTHON={shims['named']}"
    assert make("stage-1", named, folder=folder, **both).stdout == "named -m common stage 1\n"
    assert make("diff-1-2", folder=folder, **both).stdout == "virtual -m common diff 1 2\n"
    assert make("clean", folder=folder, CONDA_PREFIX=both["CONDA_PREFIX"]).stdout == "conda -m common clean\n"
    gone = str(tmp_path / "gone")
    shown = make("setup", folder=folder, VIRTUAL_ENV=gone, CONDA_PREFIX=both["CONDA_PREFIX"]).stdout
    assert shown == "conda -m common setup\n"


def test_a_stage_sets_up_only_when_torch_is_missing(tmp_path: Path) -> None:
    folder = copied(tmp_path / "book")
    torch_missing = python_shim(tmp_path, 'case "$*" in *find_spec*) exit 1;; -m*) echo "$@";; esac')
    done = make("stage-2", f"PYTHON={torch_missing}", folder=folder)
    assert done.stdout == "-m common setup\n-m common stage 2\n"


def test_a_venv_is_made_when_there_is_no_environment(tmp_path: Path) -> None:
    folder = copied(tmp_path / "book")
    python_shim(tmp_path / "bin", "").rename(tmp_path / "bin" / "python3")
    made = (
        'mkdir -p .venv/bin; printf "#!/bin/sh\\ncase \\"\\$*\\" in -m*) echo venv \\$@;; esac\\n" > .venv/bin/python'
    )
    (tmp_path / "bin" / "python3").write_text(
        f'#!/bin/sh\ncase "$*" in "-m venv"*) {made}; chmod +x .venv/bin/python;; -m*) echo system "$@";; esac\n'
    )
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert make("doctor", folder=folder, PATH=path).stdout == "system -m common doctor\n"
    assert not (folder / ".venv").exists()
    assert make("tour", folder=folder, PATH=path).stdout == (
        "Making .venv\nvenv -m common setup\nvenv -m common tour\n"
    )
    assert make("doctor", folder=folder, PATH=path).stdout == "venv -m common doctor\n"


def test_a_venv_that_cannot_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = copied(tmp_path / "book")
    shim = python_shim(
        tmp_path / "bin", 'case "$*" in "-m venv"*) mkdir -p .venv/bin; touch .venv/bin/python; exit 1;; esac'
    )
    shim.rename(tmp_path / "bin" / "python3")
    done = make("tour", folder=folder, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert done.returncode != 0
    first, *others = done.stderr.splitlines()
    assert first == "error: python3 cannot make .venv; on Debian and Ubuntu: sudo apt install python3-venv"
    assert all(line.startswith("make: ***") for line in others)
    assert not (folder / ".venv").exists()


def test_nothing_is_written_beside_the_sources(tmp_path: Path) -> None:
    folder = copied(tmp_path / "the book")
    shim = python_shim(tmp_path, 'case "$*" in -m*) echo "$PYTHONPYCACHEPREFIX";; esac')
    assert make("setup", f"PYTHON={shim}", folder=folder).stdout == f"{folder}/build/pycache\n"


def test_a_check_that_does_not_pass_is_no_failure_of_make(tmp_path: Path) -> None:
    """Make would add a line of its own to the answer; for scripts there is `python -m common check`."""
    done = make("check", "EX=1/cell", f"PYTHON={sys.executable}", WORK=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "exercise 1/cell: not yet\n" in done.stdout
    command = [sys.executable, "-m", "common", "check", "1/cell"]
    alone = subprocess.run(command, cwd=ROOT, env={**os.environ, "WORK": str(tmp_path)}, capture_output=True)
    assert alone.returncode == NOT_YET
    assert make("check", "EX=1/sell", f"PYTHON={sys.executable}", WORK=str(tmp_path)).returncode != 0


def test_a_starter_is_answered_at_once(tmp_path: Path) -> None:
    """Within 3 s of processor time, which is less than an import of torch takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "still the starter" in make("check", "EX=3/launch", f"PYTHON={sys.executable}", WORK=str(tmp_path)).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3


def test_next_and_the_commands_after_it_mean_the_exercise_that_was_named(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        return make(*arguments, f"PYTHON={sys.executable}", WORK=str(tmp_path)).stdout

    assert said("next", "EX=3/launch").startswith("Exercise 3/launch ")
    assert said("check").startswith("exercise 3/launch: not yet")
    assert " for 3/launch:" in said("hint")
    assert said("solution").startswith("Exercise 3/launch: your solution (-) and ours (+)")
