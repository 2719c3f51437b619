"""Reads the troubleshooting page as data, and provides a sandbox to try its commands."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths

from common.build import host
from common.paths import ROOT

SOURCES = ROOT / "tests" / "docs" / "troubleshooting" / "sources"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
TORCH = Path(torch.__path__[0])
INCLUDE = " ".join(f"-isystem {shlex.quote(path)}" for path in [*include_paths(), sysconfig.get_path("include")])
# Variables of the caller's environment without which torch and the compilers are not found.
INHERITED = ("HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "LIBRARY_PATH", "CPATH")

# Scripts that several problems need: build and import the small module; ask torch what it would build for.
LOAD = """
from torch.utils.cpp_extension import load
print("optimised:", load("_C", ["module.cpp"], build_directory="build").optimised)
"""
ARCHITECTURES = "from torch.utils.cpp_extension import _get_cuda_arch_flags\nprint(_get_cuda_arch_flags())"


@dataclass(frozen=True)
class Problem:
    """One section of the page: the texts it shows as symptoms, and the commands or code it gives as the fix."""

    symptoms: list[str]
    fixes: list[str]


def sections() -> dict[str, str]:
    """The text of each section by its title."""
    parts = re.split(r"^### (.+)$", PAGE, flags=re.MULTILINE)
    return {title: parts[k + 1] for k, title in enumerate(parts) if k % 2 == 1}


def problem(title: str) -> Problem:
    """The section of that title."""
    before, _, after = sections()[title].partition("**Fix.**")

    def blocks(languages: str, text: str) -> list[str]:
        return re.findall(rf"^```(?:{languages})\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    return Problem(blocks("text", before + after), blocks("sh|python|cpp", after))


def assert_printed(symptom: str, output: str) -> None:
    """Each line of `symptom` is a whole line of `output`, in that order; `...` stands for any text."""
    lines = iter(output.splitlines())
    for wanted in symptom.strip().splitlines():
        pattern = re.compile(".*".join(map(re.escape, wanted.strip().split("..."))))
        assert any(pattern.fullmatch(line.strip()) for line in lines), f"not printed: {wanted}\nbut:\n{output}"


def compile(flags: str = "") -> str:
    """The command that compiles `module.cpp` with the C++ of torch's own build and throws the result away."""
    return f"g++ -fsyntax-only -Wall {host.cpp_standard()} {INCLUDE} {flags} module.cpp"


class Sandbox:
    """A folder with its own environment, in which `python` is the Python that runs the tests."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = folder / "bin"
        self.installed = folder / "installed"
        self.tool("python", f'exec "{sys.executable}" "$@"')
        path = [str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | {
            "PATH": os.pathsep.join(path),
            "LC_ALL": "C",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def tool(self, name: str, script: str, folder: str = "bin") -> Path:
        """A shell script; in `bin`, it goes before any program of that name."""
        path = self.write(f"{folder}/{name}", f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def only(self, *names: str) -> str:
        """A PATH with only Python and these programs of the machine."""
        for name in names:
            self.tool(name, f'exec "{shutil.which(name)}" "$@"', folder="only")
        shutil.copy(self.bin / "python", self.folder / "only")
        return str(self.folder / "only")

    def run(self, command: str, **environment: str) -> tuple[int, str]:
        """The exit status of a shell command in the folder, and everything that it prints."""
        done = subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    def fails(self, command: str, **environment: str) -> str:
        """Runs a command, which must fail, and returns what it prints."""
        status, output = self.run(command, **environment)
        assert status != 0, f"did not fail: {command}\n{output}"
        return output

    def works(self, command: str, **environment: str) -> str:
        """Runs a command, which must succeed, and returns what it prints."""
        status, output = self.run(command, **environment)
        assert status == 0, f"failed: {command}\n{output}"
        return output

    def script(self, code: str) -> str:
        """The command that runs `code` as a Python script."""
        self.write("script.py", code)
        return "python script.py"

    def compile(self, output: str, *arguments: str, source: str = "module.cpp") -> Path:
        """Builds a shared library from one of the small sources of the page's tests."""
        path = self.folder / output
        path.parent.mkdir(parents=True, exist_ok=True)
        include = sysconfig.get_paths()["include"]
        command = ["g++", "-shared", "-fPIC", f"-I{include}", str(SOURCES / source), "-o", str(path), *arguments]
        subprocess.run(command, check=True)
        return path

    def compile_with_torch(self, output: str, *arguments: str, source: str = "module.cpp") -> Path:
        """Does the same for a source that calls torch."""
        libraries = (f"-L{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10")
        return self.compile(output, host.cpp_standard(), *shlex.split(INCLUDE), *arguments, *libraries, source=source)

    def package(self, setup: str = "setup_plain.py", folder: str = "stage2_aten") -> None:
        """Writes a package with an extension into a folder of the name that the page uses."""
        sources = self.folder / "stages" / folder
        sources.mkdir(parents=True)
        shutil.copy(SOURCES / "module.cpp", sources)
        shutil.copy(SOURCES / setup, sources / "setup.py")
        (sources / "__init__.py").write_text("from . import _C\n")
        pyproject = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        (sources / "pyproject.toml").write_text(pyproject)

    def install(self, command: str, **environment: str) -> None:
        """Runs a `pip install` of the page. It installs into the folder, where `import` finds the packages."""
        path = os.pathsep.join([str(self.installed), self.environment.get("PYTHONPATH", "")])
        self.works(command, PIP_TARGET=str(self.installed), PIP_UPGRADE="1", **environment)
        self.environment["PYTHONPATH"] = path.rstrip(os.pathsep)


def setuptools_wheel(folder: Path) -> None:
    """Packs the installed setuptools into a wheel, so that pip can build in isolation without a network."""
    setuptools = importlib.metadata.distribution("setuptools")
    folder.mkdir()
    with zipfile.ZipFile(folder / f"setuptools-{setuptools.version}-py3-none-any.whl", "w") as wheel:
        for file in setuptools.files:
            if ".." not in file.parts and file.suffix != ".pyc":
                wheel.write(file.locate(), str(file))
