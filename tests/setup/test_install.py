"""`make setup`: what it finds missing, what it asks of pip, and what it says when pip fails."""

from __future__ import annotations

import re
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from common import pip as common_pip
from common import versions
from common.errors import UserError
from common.paths import ROOT
from common.setup import install
from common.setup.install import DOWNLOAD_MB, Requirement, constraints, requirements
from common.versions import release

REFUSED = """WARNING: Retrying after connection broken by 'NewConnectionError: Connection refused'
ERROR: Could not find a version that satisfies the requirement torch (from versions: none)
ERROR: No matching distribution found for torch
"""
ALL = {each.name: each.version for each in requirements()}


class Pip:
    """Stands for the environment and for pip: what is installed, the calls, and how a call ends."""

    def __init__(self, installed: dict[str, str]) -> None:
        self.installed = dict(installed)
        self.calls: list[list[str]] = []
        self.constraints: list[list[str]] = []
        self.fails_with = ""

    def run(self, command: list[str]) -> tuple[int, str]:
        assert command[:4] == [sys.executable, "-m", "pip", "install"]
        self.calls.append(command[4:])
        if "-c" in command:
            self.constraints.append(Path(command[command.index("-c") + 1]).read_text().split())
        if self.fails_with:
            return 1, self.fails_with
        for each in command[4:]:
            if found := re.fullmatch(r"([\w-]+)(?:==|>=)([\d.]+)(?:,<=.*)?", each):
                self.installed[found[1]] = found[2]
        return 0, ""


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Pip:
    """A machine where nothing is installed, with room and with pip."""
    fake = Pip({})
    for name in ("requirements.txt", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(versions, "installed_version", lambda name: fake.installed.get(name))
    monkeypatch.setattr(install, "check_prerequisites", lambda wanted: None)
    monkeypatch.setattr(common_pip, "run_and_show", fake.run)
    return fake


def test_nothing_is_done_when_nothing_is_missing(pip: Pip, capsys: pytest.CaptureFixture) -> None:
    pip.installed = ALL | {"torch": "2.12.0"}
    assert install.install_missing() == 0
    assert pip.calls == []
    assert capsys.readouterr().out == "Packages: all there, torch 2.12.0.\n"


def test_everything_is_installed_at_the_tested_versions(pip: Pip, capsys: pytest.CaptureFixture) -> None:
    assert install.install_missing() == 0
    torch, others = pip.calls
    tested = constraints()
    assert torch[-1] == f"torch=={tested['torch']}"
    assert {each for each in others if "==" in each} == {f"{name}=={tested[name]}" for name in ALL if name != "torch"}
    assert f"nvidia-cublas=={tested['nvidia-cublas']}" in pip.constraints[0]
    shown = capsys.readouterr().out
    assert "about 3.2 GB" in shown
    assert all(f"  {name} " in shown for name in ALL)
    assert install.unmet_requirements() == []


def test_a_torch_that_will_do_is_never_replaced(pip: Pip) -> None:
    pip.installed = {"torch": "2.11.0a0+vendor", "numpy": "1.26.4", "nvidia-cudnn-cu13": "9.15.0"}
    assert install.install_missing() == 0
    [call], [pins] = pip.calls, pip.constraints
    assert not any(each.startswith(("torch", "numpy")) for each in call)
    assert "torch==2.11.0a0+vendor" in pins
    assert not any(pin.startswith(("numpy==", "nvidia-", "cuda-", "triton==")) for pin in pins)


def test_an_old_torch_is_named_and_left(pip: Pip) -> None:
    pip.installed = ALL | {"torch": "2.9.1"}
    with pytest.raises(UserError, match=r"torch 2\.9\.1 is too old.*pip install 'torch>=2\.11'"):
        install.install_missing()
    assert pip.calls == []


def test_an_index_is_asked_for_torch_alone(
    pip: Pip, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("TORCH_INDEX", "http://index.example/cpu")
    assert install.install_missing() == 0
    first, second, others = pip.calls
    tested = constraints()["torch"]
    assert first[-4:] == ["--no-deps", "--index-url", "http://index.example/cpu", f"torch>=2.11,<={tested}"]
    assert "--extra-index-url" in second
    assert not any(each.endswith("index-url") for each in others)
    assert not any(pin.startswith("nvidia-") for pin in pip.constraints[0])
    shown = capsys.readouterr().out
    assert "torch from http://index.example/cpu, and about 158 MB for the rest" in shown
    assert "GB" not in shown
    assert re.search(r"^  torch +\? MB ", shown, re.MULTILINE)


def test_without_a_network_a_machine_with_torch_goes_on(pip: Pip, capsys: pytest.CaptureFixture) -> None:
    pip.installed = {name: version for name, version in ALL.items() if name not in ("matplotlib", "jupyterlab")}
    pip.fails_with = REFUSED
    assert install.install_missing() == 0
    shown = capsys.readouterr().out
    assert "warning: not installed: no network, or the package index cannot be reached\n" in shown
    assert re.search(
        r"Commands that need these.*\n  matplotlib +the plots.*\n  jupyterlab +make lab\n$",
        shown,
    )


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        (REFUSED, "no network, or the package index cannot be reached"),
        (
            "ERROR: [Errno 28] No space left on device\n",
            "the disk is full; pip said: [Errno 28] No space left on device",
        ),
        ("ERROR: a\nERROR: No matching distribution found for torch\n\nnotice", "pip said: No matching distribution"),
        ("", "pip said: nothing"),
    ],
)
def test_without_torch_one_line_says_why(pip: Pip, stderr: str, reason: str) -> None:
    pip.fails_with = stderr or "\n"
    with pytest.raises(UserError) as raised:
        install.install_missing()
    assert str(raised.value).startswith(f"torch could not be installed: {reason}")
    assert "\n" not in str(raised.value)
    pip.fails_with = ""
    assert install.install_missing() == 0


def test_an_index_that_cannot_be_reached_is_named(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_INDEX", "http://index.example/cpu")
    pip.fails_with = REFUSED
    with pytest.raises(UserError, match=r"TORCH_INDEX is http://index\.example/cpu; without it, "):
        install.install_missing()


def test_torch_stays_when_the_rest_fails(pip: Pip, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def only_torch(command: list[str]) -> None:
        if pip.calls:
            raise UserError("the disk is full")
        pip.run(command)

    monkeypatch.setattr(common_pip, "run_pip", only_torch)
    assert install.install_missing() == 0
    assert "warning: not installed: the disk is full" in capsys.readouterr().out
    assert "torch" in pip.installed


def test_what_torch_brings_is_not_asked_for_again(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old setuptools, as Debian's venv has it, is replaced when torch is installed."""
    pip.installed["setuptools"] = "66.1.1"
    run = pip.run

    def bring_setuptools(command: list[str]) -> tuple[int, str]:
        done = run(command)
        if any(each.startswith("torch==") for each in command):
            pip.installed["setuptools"] = install.constraints()["setuptools"]
        return done

    monkeypatch.setattr(common_pip, "run_and_show", bring_setuptools)
    assert install.install_missing() == 0
    assert not any(each.startswith("setuptools") for each in pip.calls[-1])
    assert install.unmet_requirements() == []


def test_a_full_disk_is_noticed_before_the_download(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(install.shutil, "disk_usage", lambda place: usage(10**12, 0, 2 * 10**9))
    assert re.search(r"too full: .* GB are needed in .*, 2\.0 GB are free", install.disk_problem(3.1))
    assert install.disk_problem(0.1) is None


def test_a_python_of_the_system_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(install.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(install.sys, "prefix", install.sys.base_prefix)
    monkeypatch.delenv("PIP_BREAK_SYSTEM_PACKAGES", raising=False)
    with pytest.raises(UserError, match="belongs to the system"):
        install.check_prerequisites([])


def test_of_a_long_output_only_large_downloads_are_shown(capsys: pytest.CaptureFixture) -> None:
    lines = (
        "Collecting torch==2.15.0",
        "  Downloading torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl (539.1 MB)",
        "  Downloading filelock-3.20.0-py3-none-any.whl.metadata (2.1 kB)",
        "Installing collected packages: filelock, torch",
    )
    script = f"import sys; print({chr(10).join(lines)!r}); sys.exit('ERROR: in the end')"
    assert common_pip.run_and_show([sys.executable, "-c", script]) == (1, "ERROR: in the end\n")
    assert capsys.readouterr().out == "  downloading torch 2.15.0, 539 MB\n  installing\n"


def test_the_real_pip_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port of this machine on which nobody listens is refused at once, as every index is on a machine offline."""
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    command = [sys.executable, "-m", "pip", "install", "--retries", "1", "--target", str(tmp_path), "no-such-package"]
    with pytest.raises(UserError, match="no network, or the package index cannot be reached"):
        common_pip.run_pip(command)


@pytest.mark.parametrize(
    ("wanted", "installed", "met"),
    [
        (">=2.11", "2.11.0+cpu", True),
        (">=2.11", "2.9.1", False),
        (">=2.11", "2.11.0a0+git", True),
        (">=8.0", "8", True),
        (">=8.0", None, False),
        ("==0.17.5", "0.17.5", True),
        ("==0.17.5", "0.17.6", False),
    ],
)
def test_versions_are_compared_as_numbers(wanted: str, installed: str | None, met: bool) -> None:
    assert Requirement("name", wanted[:2], wanted[2:], "").met_by(installed) is met


def test_every_line_of_requirements_is_read_and_measured() -> None:
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(requirements()) == len(lines)
    assert all(each.purpose for each in requirements())
    assert [each.name for each in requirements()] == list(DOWNLOAD_MB)


@pytest.mark.parametrize("python", [(3, 10, 13), (3, 11, 2), (3, 11, 7), (3, 12, 1), (3, 13, 0)])
def test_constraints_meet_requirements_on_every_python(python: tuple[int, ...]) -> None:
    pins = constraints(python=python)
    for each in requirements():
        assert each.met_by(pins.get(each.name)), f"{each}: {pins.get(each.name)}"
        assert each.relation != "==" or pins[each.name] == each.version


def test_constraints_are_read_whole_and_sorted() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(names)
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)
    assert set(names) == set(constraints(python=(3, 10, 0))) | set(constraints(python=(3, 13, 0)))
    assert release(constraints(python=(3, 10, 0))["torch"]) < release(constraints(python=(3, 11, 0))["torch"])


def test_conda_uses_the_same_files() -> None:
    lines = [line.split("#")[0].strip() for line in (ROOT / "environment.yml").read_text().splitlines()]
    pip_part = lines[lines.index("- pip:") + 1 :]
    assert pip_part == ["- -r requirements.txt", "- -c constraints.txt"]
    conda_part = {re.match(r"- ([\w-]+)", line)[1] for line in lines if re.match(r"- [\w-]+(=|$)", line)}
    assert {"python", "pip", "make", "cxx-compiler"} <= conda_part
    assert not conda_part & (set(ALL) - {"pip"})
