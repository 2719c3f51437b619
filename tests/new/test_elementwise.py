"""`make new KIND=elementwise`: its page leads to another function in three lines, and its tests find mistakes.

The page's example is a GELU. It is built and tested in processes that know nothing of the workbook.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common import new
from common.errors import UserError
from common.paths import ROOT

builds = pytest.mark.needs("g++", "setuptools")
proof = pytest.mark.proof("generated operators", uses=["common.commands.emulate"])


def lines_of_the_page(page: str) -> list[tuple[str, int, str]]:
    """The lines that the page's table names: file, number, and the line that stands there for a GELU."""
    rows = re.findall(r"^\| (\S+): \[(\d+)\]\(\S+\) \| .* \| `(.+)` \|$", page, re.MULTILINE)
    return [(path, int(number), line) for path, number, line in rows]


def gelu() -> dict[str, str]:
    """The files of a new folder, with the lines that its page names replaced by those of a GELU."""
    return operator(
        "gelu", *(line for _, _, line in lines_of_the_page(new.files("gelu", "elementwise")["README.md"]))
    )


def operator(name: str, *replacements: str) -> dict[str, str]:
    """The files of a new folder, with the three lines that its page names replaced."""
    made = new.files(name, "elementwise")
    for (path, number, _), line in zip(lines_of_the_page(made["README.md"]), replacements, strict=True):
        lines = made[path].splitlines(keepends=True)
        indent = lines[number - 1].partition("return")[0]
        lines[number - 1] = f"{indent}{line}\n"
        made[path] = "".join(lines)
    return made


def write(folder: Path, made: dict[str, str]) -> Path:
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Runs Python in a folder, without this repository on its path."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=kept, capture_output=True, text=True)


def emulate(folder: Path, *options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "common", "emulate", str(folder), "-q", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GELU, built for the CPU."""
    folder = write(tmp_path_factory.mktemp("built") / "gelu", gelu())
    done = python(folder, "setup.py", "-q", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_page_names_three_lines_and_each_is_a_return() -> None:
    made = new.files("gelu", "elementwise")
    named = lines_of_the_page(made["README.md"])
    assert [path for path, _, _ in named] == ["reference.py", "csrc/gelu.h", "csrc/gelu.h"]
    assert all(made[path].splitlines()[number - 1].strip().startswith("return ") for path, number, _ in named)
    assert all(f"`{path}`" in made["README.md"] for path in made if path.startswith(("csrc/", "gelu/")))


@proof
@builds
def test_three_lines_make_a_gelu_that_passes_its_tests_and_equals_torchs(built: Path) -> None:
    done = python(built, "-m", "pytest")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d passed", done.stdout)
    assert "skipped" not in done.stdout
    compare = (
        "import torch; from gelu import gelu; x = torch.linspace(-9, 9, 99, dtype=torch.float64);"
        "torch.testing.assert_close(gelu(x), torch.nn.functional.gelu(x)); print(gelu.__module__)"
    )
    assert python(built, "-c", compare).stdout == "gelu\n"


PACKAGE = "gelu/__init__.py"
FAKE = "def _(x):\n    return x.new_empty("
RAISE, TWICE = 'raise RuntimeError("gelu: there are no ', "test_second_derivatives_are_refused"
MISTAKES = {  # the file, what is there, what is put instead, and the test that must find it
    "reference": ("reference.py", "1 + (x", "1.01 + (x", "test_values_and_gradients"),
    "fake": (PACKAGE, f"{FAKE}x.shape)", f"{FAKE}0)", "test_opcheck"),
    "gradient": (PACKAGE, "backward(grad_y, x)\n\n", "backward(x, grad_y)\n\n", "test_gradcheck"),
    "second": (PACKAGE, f"{RAISE}second", f"return gradient, gradient  # {RAISE}", TWICE),
    "unconnected": (PACKAGE, "backward(grad_y, x)\n\n", "backward(grad_y, x.detach())\n\n", TWICE),
    "tangent": (PACKAGE, f"{RAISE}forward", f"return  # {RAISE}", "test_forward_mode_is_refused"),
}


@proof
@builds
@pytest.mark.parametrize("mistake", MISTAKES)
def test_its_tests_find_mistakes(built: Path, tmp_path: Path, mistake: str) -> None:
    path, old, wrong, test = MISTAKES[mistake]
    folder = shutil.copytree(built, tmp_path / "gelu")
    text = (folder / path).read_text()
    assert text.count(old) == 1
    (folder / path).write_text(text.replace(old, wrong))
    done = python(folder, "-m", "pytest", "-k", test)
    assert done.returncode == 1, done.stdout
    assert f"FAILED tests/test_gelu.py::{test}" in done.stdout


@proof
@builds
def test_its_tests_find_a_formula_that_overflows(tmp_path: Path) -> None:
    softplus = "return (1 + x.exp()).log()", "return std::log(1 + std::exp(x));", "return 1 / (1 + std::exp(-x));"
    folder = write(tmp_path / "softplus", operator("softplus", *softplus))
    done = python(folder, "setup.py", "-q", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout + done.stderr
    done = python(folder, "-m", "pytest")
    failed = re.findall(r"^FAILED tests/test_softplus.py::(\S+)", done.stdout, re.MULTILINE)
    # In float64, the reference overflows, too, and its gradient is NaN.
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    assert failed == [f"test_large_values[{d}-dtype{n}]" for d in devices for n in range(4)], done.stdout


@proof
@builds
def test_it_is_timed_unless_it_is_wrong(built: Path, tmp_path: Path) -> None:
    done = python(built, "bench.py", "64")
    assert done.returncode == 0, done.stderr
    for name in ("eager", "torch.compile", "gelu"):
        assert re.search(rf"^  {re.escape(name)} +\d+\.\d +\d+\.\d$", done.stdout, re.MULTILINE)
    folder = shutil.copytree(built, tmp_path / "gelu")
    source = folder / "reference.py"
    source.write_text(source.read_text().replace("1 + (x", "1.01 + (x"))
    done = python(folder, "bench.py", "64")
    assert done.returncode == 1
    assert "Tensor-likes are not close" in done.stderr
    assert not re.search(r"^  gelu ", done.stdout, re.MULTILINE)


@proof
@pytest.mark.needs("g++")
def test_its_kernels_pass_on_the_emulator(tmp_path: Path) -> None:
    done = emulate(write(tmp_path / "gelu", gelu()), "-k", "not compile and not opcheck")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d\d passed", done.stdout)


@proof
@pytest.mark.needs("g++")
def test_a_mistake_in_a_kernel_is_reported_once_at_its_line(tmp_path: Path) -> None:
    made = gelu()
    kernels = made["csrc/gelu_kernel.cu"]
    made["csrc/gelu_kernel.cu"] = kernels.replace("if (i < n) y[i]", "if (i <= n) y[i]")
    [line] = [n for n, text in enumerate(kernels.splitlines(), start=1) if "if (i < n) y[i]" in text]
    # pytest repeats the whole message in its summary where the variable CI is set.
    done = emulate(write(tmp_path / "gelu", made), "-k", "values or gradcheck", "-rN")
    assert done.returncode == 1
    assert done.stdout.count(f"past the end of x, in csrc/gelu_kernel.cu:{line} (memory)") == 1
    assert "1 failed" in done.stdout


def test_nothing_goes_by_the_old_name() -> None:
    for path, text in new.files("my_gelu", "elementwise").items():
        assert "softsign" not in path + text, path
        assert "{{" not in text, path


def test_names_and_kinds_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^KIND=matrix is not a kind of operator; choose cell or elementwise$"):
        new.new("gelu", str(tmp_path), "matrix")
    with pytest.raises(UserError, match=r"^NAME=derivative occurs as a word .* \(csrc/softsign\.h, line 1\)"):
        new.demand_usable("derivative", "elementwise")
    new.demand_usable("softsign", "elementwise")  # the name that the copied files have already
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("make")
def test_make_new_prints_commands_that_need_no_gpu(tmp_path: Path) -> None:
    command = ["make", "new", f"PYTHON={sys.executable}", "NAME=gelu", "KIND=elementwise"]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "WORK": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"^    (.*)$", done.stdout, re.MULTILINE)
    assert commands[:2] == [f"make emulate FILE={tmp_path}/gelu", f"cd {tmp_path}/gelu"]
    assert {
        str(path.relative_to(tmp_path / "gelu")) for path in (tmp_path / "gelu").rglob("*") if path.is_file()
    } == {*new.files("gelu", "elementwise")}
