"""`make new`: a folder of one's own works outside of the workbook, and its page leads to another cell, a GRU.

tests/new/gru/ has what the GRU changes. Both cells are built and tested in processes that know nothing of all this.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import new
from common.errors import UserError
from common.exercises.variants.diffs import apply_diff
from common.paths import ROOT

GRU = ROOT / "tests" / "new" / "gru"
builds = pytest.mark.needs("g++", "setuptools")
proof = pytest.mark.proof("generated operators", files=["tests/new/gru/**/*"], uses=["common.commands.emulate"])


def gru() -> dict[str, str]:
    """The files that `make new NAME=mycell` makes, with the GRU's changes."""
    files = new.files("mycell")
    for diff in GRU.rglob("*.diff"):
        path = str(diff.relative_to(GRU).with_suffix(""))
        files[path] = apply_diff(files[path], diff.read_text())
    return files


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs Python in a folder, without this repository on its path."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=kept | variables, capture_output=True, text=True
    )


def good(done: subprocess.CompletedProcess) -> str:
    """What a command that must succeed has printed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(folder: Path) -> Path:
    good(python(folder, "setup.py", "-q", "build_ext", "--inplace"))
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder, built."""
    place = tmp_path_factory.mktemp("fresh")
    assert new.new("mycell", str(place)) == 0
    return built(place / "mycell")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same made a GRU, built."""
    place = tmp_path_factory.mktemp("changed")
    assert new.new("mycell", str(place)) == 0
    for path, text in gru().items():
        (place / "mycell" / path).write_text(text)
    return built(place / "mycell")


# A folder that is green from the start ------------------------------------------------------------------------------


@proof
@builds
@pytest.mark.syllabus("5.6b")
def test_a_fresh_folder_passes_its_tests_on_its_own(fresh: Path) -> None:
    shown = good(python(fresh, "-m", "pytest"))
    assert re.search(r"\d\d passed", shown)
    assert "skipped" not in shown
    where = "import importlib.util as u, mycell; assert not u.find_spec('common'); print(mycell._C.__file__)"
    assert good(python(fresh, "-c", where)).startswith(str(fresh))


TWICE = "test_second_derivatives_are_refused"
MISTAKES = {  # in mycell/mycell.py: what is there, what is put instead, and the tests that must find it
    "fake": ("z.new_empty(B, 3, S)", "z.new_empty(B, S, 3)", ("test_opcheck", "test_compile")),
    "number": ("    z = torch.addmm(", "    z = input.sum() > 0 and torch.addmm(", ("test_export",)),
    "backward": ("(grad_h, grad_cell, *ctx", "(grad_cell, grad_h, *ctx", ("test_values_and_gradients",)),
    "one result": ("if grad_h is None and", "if grad_h is None or", ("test_gradients_of_one_result_alone",)),
    "unconnected": ("(gates, new_cell)\n    ctx", "(gates, new_cell.detach())\n    ctx", (TWICE,)),
    "tangent": ("    refuse_tangents(z, old_cell)", "    refuse_tangents(z)", ("test_forward_mode_is_refused",)),
    "vmap": ("(info.batch_size, -1)", "(-1, info.batch_size)", ("test_vmap",)),
    "check": ("if tensor.shape != shape:", "if False:", ("test_arguments_that_do_not_fit_are_refused",)),
}


@proof
@builds
@pytest.mark.parametrize("mistake", MISTAKES)
def test_its_tests_find_what_the_page_says_they_find(fresh: Path, tmp_path: Path, mistake: str) -> None:
    old, wrong, tests = MISTAKES[mistake]
    folder = shutil.copytree(fresh, tmp_path / "mycell")
    source = folder / "mycell" / "mycell.py"
    assert source.read_text().count(old) == 1
    source.write_text(source.read_text().replace(old, wrong))
    done = python(folder, "-m", "pytest", "-k", " or ".join(tests))
    assert done.returncode == 1, done.stdout
    page = (folder / "README.md").read_text()
    for test in tests:
        assert f"FAILED tests/test_mycell.py::{test}" in done.stdout
        assert f"`{test}`" in page


@proof
@builds
def test_a_wrong_cell_is_not_timed(fresh: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(fresh, tmp_path / "mycell")
    source = folder / "reference.py"
    source.write_text(source.read_text().replace("F.elu(z_g)", "F.elu(z_g) * 1.01"))
    done = python(folder, "bench.py", "--size", "2", "3", "4")
    assert done.returncode == 1
    assert "mycell is wrong (forward), so nothing is timed." in done.stderr
    assert "B2 I3 S4" not in done.stdout


@proof
@builds
def test_a_library_older_than_its_sources_is_not_tested(fresh: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(fresh, tmp_path / "mycell")
    library = next((folder / "mycell").glob("_C*.so"))
    os.utime(folder / "csrc" / "mycell_math.h", (library.stat().st_mtime + 1,) * 2)
    for command in (["-m", "pytest"], ["bench.py"]):
        done = python(folder, *command)
        assert done.returncode == 1
        says = (
            f"csrc/mycell_math.h is newer than mycell/{library.name}. Build it: python setup.py build_ext --inplace"
        )
        assert says in done.stdout + done.stderr
    library.unlink()
    assert "nothing is built yet. Build it: " in python(folder, "bench.py").stderr


# Its page, followed to another cell ---------------------------------------------------------------------------------


def named_lines(page: str) -> Iterator[tuple[str, range]]:
    """The lines that a page links to: a file, and the range of its line numbers."""
    for path, first, last in re.findall(r"\[[\d to]+\]\(([\w./]+)#L(\d+)(?:-L(\d+))?\)", page):
        yield path, range(int(first), int(last or first) + 1)


def lines_that_change(old: str, new: str) -> set[int]:
    """The numbers of the old lines that are replaced or removed, and of those after which something is added."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    blocks = [(a, max(b, a + 1)) for what, a, b, _, _ in matcher.get_opcodes() if what != "equal"]
    return {line + 1 for first, end in blocks for line in range(first, end)}


@pytest.mark.syllabus("5.6b")
def test_the_page_names_the_lines_that_another_cell_changes_and_no_others() -> None:
    fresh, other = new.files("mycell"), gru()
    page = list(named_lines(fresh["README.md"]))
    assert len(page) > 20
    change = {path: lines_that_change(text, other[path]) for path, text in fresh.items() if text != other[path]}
    for path, numbers in change.items():
        text = fresh[path].splitlines()
        named = {number for file, lines in page if file == path for number in lines}
        unnamed = {number: line for number in numbers - named if (line := text[number - 1]).strip(" {}")}
        assert all("LLTM" in line for line in unnamed.values()), (path, unnamed)  # the page's last step
    unchanged = [(path, lines) for path, lines in page if not change[path] & set(lines)]
    assert not unchanged
    assert not any("LLTM" in text for path, text in other.items() if path != "README.md")


@proof
@builds
@pytest.mark.syllabus("5.6b")
def test_a_gru_passes_the_same_tests(changed: Path) -> None:
    shown = good(python(changed, "-m", "pytest"))
    assert re.search(r"\d\d passed", shown)
    assert "skipped" not in shown


@proof
@builds
def test_the_gru_is_timed(changed: Path) -> None:
    shown = good(python(changed, "bench.py", "--size", "2", "3", "4", "--seconds", "0.01"))
    figure = r" +\d+\.\d \(\d+\.\d\d\)"
    for name in ("eager", "torch.compile", "mycell"):
        assert re.search(rf"^  {re.escape(name)} +forward{figure} +forward\+backward{figure}$", shown, re.MULTILINE)


AGAINST_TORCH = """
import torch
from mycell import mycell
theirs = torch.nn.GRUCell(5, 70, dtype=torch.float64)
parameters = [theirs.weight_ih, theirs.weight_hh, theirs.bias_ih, theirs.bias_hh]
x, h = (torch.randn(3, n, dtype=torch.float64, requires_grad=True) for n in (5, 70))
from_above = torch.randn(3, 70, dtype=torch.float64)
for result in (expected := theirs(x, h)), (got := mycell(x, *parameters, h)):
    assert result.abs().max() > 0.1
torch.testing.assert_close(got, expected)
torch.testing.assert_close(*(torch.autograd.grad(r, [x, h, *parameters], from_above) for r in (got, expected)))
print("equal")
"""


@proof
@builds
@pytest.mark.syllabus("5.6b")
def test_a_wheel_of_the_gru_equals_torchs_own(changed: Path, tmp_path: Path) -> None:
    good(python(changed, "setup.py", "-q", "bdist_wheel"))
    [wheel] = (changed / "dist").iterdir()
    assert re.fullmatch(r"mycell-1\.0-cp310-abi3-\w+\.whl", wheel.name)
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    with zipfile.ZipFile(wheel) as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"mycell", "mycell-1.0.dist-info"}
        archive.extractall(installed)
    empty.mkdir()
    assert good(python(empty, "-c", AGAINST_TORCH, PYTHONPATH=str(installed))) == "equal\n"


@proof
@pytest.mark.needs("g++")
def test_the_gru_s_kernels_pass_on_the_emulator(tmp_path: Path) -> None:
    folder = tmp_path / "mycell"
    for path, text in gru().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    command = [sys.executable, "-m", "common", "emulate", str(folder), "-q", "-k", "not compile and not export"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert re.search(r"\d\d passed", good(done))
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == set(gru())  # no more


# Names and places ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "a name is missing: make new NAME=mycell"),
        ("my-cell", "NAME=my-cell is not a valid package name: use lower-case letters"),
        ("2cells", "NAME=2cells is not a valid package name"),
        ("MyCell", "NAME=MyCell is not a valid package name"),
        ("../up", r"NAME=../up is not a valid package name"),
        ("lambda", "NAME=lambda already has a meaning in Python"),
        ("input", "NAME=input already has a meaning in Python"),
        ("torch", "NAME=torch is taken: import finds /"),
        ("json", "NAME=json is taken: import finds /"),
        ("aten", "NAME=aten is taken: torch.ops.aten is torch's own"),
        ("load_library", "NAME=load_library is taken: torch.ops.load_library is torch's own"),
        ("weights", "NAME=weights occurs as a word in the copied files (lltm/__init__.py, line 1)"),
        ("pyproject", "NAME=pyproject occurs as a word in the copied files (pyproject.toml)"),
    ],
)
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(says)):
        new.new(name, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_package_that_pip_would_replace_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other_name-2.0.dist-info").mkdir()
    (tmp_path / "other_name-2.0.dist-info" / "METADATA").write_text("Name: other_name\nVersion: 2.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"NAME=other_name is taken: pip has installed version 2\.0"):
        new.demand_usable("other_name", "cell")


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "mycell").mkdir()
    with pytest.raises(UserError, match="mycell already exists and is not overwritten"):
        new.new("mycell", str(tmp_path))
    assert not list((tmp_path / "mycell").iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot write in .*file: "):
        new.new("mycell", str(tmp_path / "file"))
    assert capsys.readouterr().out == ""


@pytest.mark.needs("make")
def test_make_new(tmp_path: Path) -> None:
    """In the learner's folder if no other is said; a NAME that WSL2 put into the environment is not meant."""
    command = ["make", "new", f"PYTHON={sys.executable}"]
    variables = {**os.environ, "WORK": str(tmp_path), "NAME": "laptop"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.startswith("error: a name is missing: make new NAME=mycell\n")
    done = subprocess.run([*command, "NAME=my_cell"], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert f"cd {tmp_path}/my_cell\n" in good(done)
    assert [path.name for path in tmp_path.iterdir()] == ["my_cell"]


@pytest.mark.syllabus("5.6b")
def test_what_is_copied_differs_from_the_stage_in_its_name_alone() -> None:
    made, stage = new.files("mycell"), ROOT / "stages" / "stage5_custom_op"
    for path in (stage / "lltm.py", *(stage / "csrc").iterdir()):
        [text] = [text for name, text in made.items() if Path(name).name == path.name.replace("lltm", "mycell")]
        assert text.replace("mycell", "lltm").replace("MYCELL_", "LLTM_") == path.read_text(), path


def test_nothing_goes_by_the_old_name() -> None:
    for path, text in new.files("my_cell").items():
        assert "lltm" not in path + text, path
        assert "{{" not in text or path.endswith((".py", ".cpp")), path
    assert 'macros = [("MY_CELL_NAMESPACE", PACKAGE)' in new.files("my_cell")["setup.py"]


def test_lines_of_the_page_are_found_when_it_is_made() -> None:
    made = {"a.py": "one\ntwo\nthree\ntwo\n"}
    assert new.with_lines("{{a.py: one ... three}}, {{a.py: three}}", made) == "[1 to 3](a.py#L1-L3), [3](a.py#L3)"
    for wrong in ("{{a.py: two}}", "{{a.py: four}}", "{{a.py: three ... one}}"):
        with pytest.raises(ValueError, match=r"^a\.py: "):
            new.with_lines(wrong, made)


def test_a_folder_of_another_kind_is_not_emulated(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    command = [sys.executable, "-m", "common", "emulate", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {tmp_path} was not made by make new; for a CUDA program: make emulate FILE=x.cu\n"
    )
