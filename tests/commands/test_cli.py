"""The command line: the diff, errors in one line, and a new stage that needs a folder and a row and nothing else."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from common import __main__, stages
from common.__main__ import parser
from common.commands import diff
from common.errors import UserError
from common.paths import ROOT
from common.studies.ablation import ABLATION_PARTS


def common(*arguments: str, cwd=ROOT) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "common", *arguments], cwd=cwd, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stage", "99"], "error: there is no stage 99; the stages are 0 to 9"),
        (["stage", "0", "--target", "cuda"], "error: stage 0 has no target 'cuda'; it has host"),
        (
            ["diff", "0", "1"],
            "error: stage 0 (Extending PyTorch from Python) has no cell to compare; read its README",
        ),
        (["diff", "1", "99"], "error: there is no stage 99; the stages are 0 to 9"),
        (["diff", "1", "8"], "error: stage 8 (Deployment without Python) has no cell to compare; read its README"),
        (["stage", "2", "--target", "tpu"], "error: stage 2 has no target 'tpu'; it has host"),
        (["stage", "2", "--target", "cuda"], "error: stage 2 has no target 'cuda'; it has host"),
    ],
)
def test_a_mistake_is_one_line(arguments, message):
    result = common(*arguments)
    assert result.returncode == 1
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr + result.stdout


def test_incomplete_bytecode_is_removed(tmp_path):
    """A full disk can leave such files."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "pycache"), "WORK": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "common", "progress"]
    right = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
    for path in (tmp_path / "pycache").rglob("common/exercises/commands.*.pyc"):
        path.write_bytes(path.read_bytes()[:100])
    failed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: files of Python's compiled code were incomplete, as after a full disk.")
    assert failed.stderr.count("\n") == 1
    assert not (tmp_path / "pycache").exists()
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
    assert (again.returncode, again.stdout) == (right.returncode, right.stdout)


def test_a_folder_of_another_user_is_named_in_one_line(monkeypatch, capsys):
    def refused(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/theirs/build")

    monkeypatch.setattr(sys, "argv", ["common", "progress"])
    monkeypatch.setattr(__main__, "run_command", refused)
    assert __main__.main() == 1
    told = "error: /theirs/build belongs to another user: Permission denied. `make doctor` says what to do\n"
    assert capsys.readouterr().err == told


@pytest.mark.parametrize("free", [1 << 20, 1 << 30])
def test_bytecode_that_a_full_disk_may_have_cut_off_is_not_kept(tmp_path, monkeypatch, capsys, free):
    (tmp_path / "pycache").mkdir()
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "pycache"))
    monkeypatch.setattr(sys, "argv", ["common", "help"])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert __main__.main() == 0
    assert (tmp_path / "pycache").exists() == (free > __main__.ROOM)


def test_bytecode_in_a_folder_of_another_user_is_left_alone(monkeypatch):
    def refuse(path: str):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(sys, "pycache_prefix", "/theirs/pycache")
    monkeypatch.setattr(sys, "argv", ["common", "help"])
    monkeypatch.setattr(shutil, "disk_usage", refuse)
    assert __main__.main() == 0


@pytest.mark.parametrize("arguments", [["progress"], ["next"], ["help"], ["check", "1/cell"]])
def test_a_reader_that_leaves_early_changes_nothing(arguments, tmp_path):
    """As `head -1` does."""
    command, environment = [sys.executable, "-m", "common", *arguments], {**os.environ, "WORK": str(tmp_path)}
    whole = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True)
    shutil.rmtree(tmp_path)
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as nobody_reads:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=nobody_reads, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (whole.returncode, b"")
    assert whole.stdout


@pytest.mark.needs("git")
def test_the_diff_is_the_lesson():
    text = diff.diff_text(stages.get_stage(1), stages.get_stage(2))
    assert "-    X = torch.cat([old_h, input], dim=1)" in text
    assert "+PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {" in text
    assert "+++ b/stages/stage2_aten/setup.py" in text
    assert "README" not in text
    assert "deleted file" in text[text.index("by_hand.py") :]
    assert "-def " not in text[text.index("by_hand.py") :]  # of what is gone, only the name


@pytest.mark.needs("git")
def test_the_diff_has_all_of_the_code_and_begins_with_the_cell():
    stage = stages.get_stage(7)
    text = diff.diff_text(stages.get_stage(6), stage)
    shown = re.findall(r"^diff --git .* b/stages/stage7_sequence/(.*)$", text, flags=re.MULTILINE)
    assert {path.relative_to(stage.folder).as_posix() for path in stage.sources} <= {*shown, "__init__.py"}
    assert shown[0] == "sequence.py"


@pytest.mark.needs("git")
def test_the_diff_of_a_stage_with_itself_is_empty():
    assert diff.diff_text(stages.get_stage(2), stages.get_stage(2)) == ""


def test_files_that_every_stage_has_are_the_same():
    """What is equal in two stages does not show in their diff; so it must stay equal."""
    folders = [stage.folder for stage in stages.cell_stages()]
    assert len({(folder / "__init__.py").read_text() for folder in folders}) == 1


def test_a_stage_never_imports_common():
    for stage in stages.cell_stages():
        for path in stage.folder.rglob("*.py"):
            if path.relative_to(stage.folder).parts[0] != "exercises":
                assert "common" not in path.read_text(), path


ROW = '    Stage(10, "stage10_toy", "cell", "A toy", HOST),\n'


@pytest.mark.needs("git", "g++", "matplotlib")
def test_a_stage_is_a_folder_and_a_row(tmp_path):
    for name in ("common", "stages", "docs", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("README.md", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    table = tmp_path / "common" / "stages.py"
    last = '    Stage(9, "stage9_distributed", "program", "Training on many GPUs", HOST),\n'
    assert last in table.read_text()
    table.write_text(table.read_text().replace(last, last + ROW))
    folder = tmp_path / "stages" / "stage10_toy"
    shutil.copytree(ROOT / "stages" / "stage1_python", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "README.md").write_text("# Toy\n\n<!-- generated: stage-10 -->\n<!-- end: stage-10 -->\n")

    shown = common("stage", "10", cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Stage 10: A toy" in shown.stdout
    assert "10 passed" in shown.stdout
    assert "stage 10" in shown.stdout  # its row beside eager's
    assert common("diff", "1", "10", cwd=tmp_path).stdout == ""
    assert common("tables", cwd=tmp_path).returncode == 0
    assert "[A toy](stages/stage10_toy)" in (tmp_path / "README.md").read_text()

    (folder / "lltm.py").write_text((folder / "lltm.py").read_text().replace("* output_gate", "* input_gate"))
    shown = common("stage", "10", cwd=tmp_path)
    assert shown.returncode == 1
    assert "FAILED sizes: new_h is wrong at [0, 0]" in shown.stdout


def test_an_unknown_part_is_refused():
    assert tuple(parser().parse_args(["ablation", "--only", *ABLATION_PARTS]).only) == ABLATION_PARTS
    with pytest.raises(UserError, match="invalid choice: 'gpu'"):
        parser().parse_args(["ablation", "--only", "cpu", "gpu"])


def test_variables_of_make_are_arguments_of_a_study(monkeypatch):
    for name in ("RECORD", "ONLY", "EX", "JOBS"):
        monkeypatch.delenv(name, raising=False)
    assert __main__.with_variables(["ablation"]) == ["ablation"]
    monkeypatch.setenv("RECORD", "my results/ablation.json")
    monkeypatch.setenv("ONLY", "cpu counts")
    given = ["ablation", "--out", "my results/ablation.json", "--only", "cpu", "counts"]
    assert __main__.with_variables(["ablation"]) == given
    assert __main__.with_variables(["ablation", "--only", "cuda"]) == ["ablation", "--only", "cuda"]
    monkeypatch.setenv("EX", "3/guard 3/launch")
    monkeypatch.setenv("JOBS", "")
    assert __main__.with_variables(["mutate"]) == ["mutate", "3/guard", "3/launch"]
    assert __main__.with_variables(["check"]) == ["check"]
    assert __main__.with_variables([]) == []
