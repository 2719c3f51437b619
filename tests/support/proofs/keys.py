"""The keys of proofs: hashes of everything that a test depends on."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

NOT_SOURCES = ("__pycache__", ".ipynb_checkpoints")
# Folders in a package that are no part of it for most proofs. A proof that needs one names its files.
NOT_DATA = (*NOT_SOURCES, "tests", "programs", "libraries")


class Keys:
    """The keys of the proofs of one run. Each file is read once, and each package is searched once.

    A contract, "PACKAGE PACKAGE ...: GLOB GLOB ...", names the tests that hold the behaviour of packages or modules
    fixed. Instead of the files of these packages, a proof depends on that behaviour. Only the tests themselves depend
    on the files. The behaviour is the same as the one on record while either these tests or the files are the same.
    """

    def __init__(
        self,
        root: Path,
        packages: Sequence[str],
        contracts: Sequence[str] = (),
        recorded: Mapping[str, str] = MappingProxyType({}),
    ):
        self.root, self.packages, self.recorded = root, packages, recorded
        self.contracts = [Contract.parse(text) for text in contracts]
        self.behaviour_of = cache(self.behaviour_of)
        self.matching, self.around = cache(self.matching), cache(self.around)
        self.hash_of, self.hash_all, self.imports = cache(self.hash_of), cache(self.hash_all), cache(self.imports)

    @cached_property
    def modules(self) -> Modules:
        return Modules(self.packages)

    def of(self, items: Sequence[pytest.Item]) -> str:
        """The key of a group of proofs, which are in one file."""
        markers = [marker.kwargs for item in items for marker in item.iter_markers("proof")]
        globs = frozenset(glob for marker in markers for glob in marker.get("files", ()))
        uses = frozenset(name for marker in markers for name in marker.get("uses", ()))
        parts = [self.hash_all(items[0].path, globs, uses), *sorted({marker.get("text", "") for marker in markers})]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]

    def hash_all(self, test: Path, globs: frozenset[str], uses: frozenset[str]) -> str:
        """A hash of all files that a test depends on."""
        files, contracts = self.dependencies(test, globs, uses)
        behaviours = [f"{contract.name} {self.behaviour_of(contract).identity}" for contract in contracts]
        return digest([*map(self.hash_of, files), *behaviours])

    def dependencies(
        self, test: Path, globs: frozenset[str], uses: frozenset[str]
    ) -> tuple[set[Path], list[Contract]]:
        """All files that a test depends on, and the contracts that stand for others."""
        files = {*self.around(test), *(path for glob in globs for path in self.matching(glob))}
        named = {module for name in uses for module in self.modules.in_package(name)}
        named.update(module for path in files if path.suffix == ".py" for module in self.imports(path))
        modules = self.modules.needed_by_all(named)
        contracts = []
        for contract in self.contracts:
            if test not in self.tests_of(contract) and any(map(contract.covers, modules)):
                modules = {module for module in modules if not contract.covers(module)}
                contracts.append(contract)
        return files | self.modules.files_of(modules), contracts

    def tests_of(self, contract: Contract) -> set[Path]:
        """The files of the tests of a contract."""
        return {path for glob in contract.tests for path in self.matching(glob)}

    def behaviour_of(self, contract: Contract) -> Behaviour:
        """What a contract's packages do now: the same as on record, or else something new, with a new identity."""
        tests = self.tests_of(contract)
        files = {path for package in contract.packages for path in whole(package)} - tests
        now = [digest(map(self.hash_of, paths))[:12] for paths in (tests, files)]
        before = self.recorded_of(contract)
        is_same = before.tests == now[0] or before.files == now[1]
        return Behaviour(before.identity if is_same else now[0], *now)

    def recorded_of(self, contract: Contract) -> Behaviour:
        """What the record says of a contract's packages, or empty texts."""
        words = self.recorded.get(contract.name, "").split()
        return Behaviour(*words) if len(words) == 3 else Behaviour("", "", "")

    def imports(self, path: Path) -> frozenset[str]:
        """The modules that a Python file imports, anywhere in it."""
        return self.modules.imported_by(path)

    def hash_of(self, path: Path) -> str:
        """The name of a file, and a hash of its content."""
        name = path.relative_to(self.root) if path.is_relative_to(self.root) else path.name
        return f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}"

    def matching(self, glob: str) -> list[Path]:
        """The files that a glob matches, at least one."""
        found = [path for path in self.root.glob(glob) if path.is_file() and not set(path.parts) & set(NOT_SOURCES)]
        if not found:
            raise pytest.UsageError(f"a proof names {glob}, and there is no such file")
        return found

    def around(self, test: Path) -> list[Path]:
        """The file of a test and the conftest.py of its folders. The conftest.py of all tests does not count."""
        folders = [folder for folder in test.parents if folder.is_relative_to(self.root)][:-2]
        return [test, *(folder / "conftest.py" for folder in folders if (folder / "conftest.py").exists())]


class Contract(NamedTuple):
    """Packages or modules, and globs for the tests that hold their behaviour fixed."""

    packages: tuple[str, ...]
    tests: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Contract:
        packages, _, globs = text.partition(":")
        return cls(tuple(packages.split()), tuple(globs.split()))

    @property
    def name(self) -> str:
        """What the record calls it."""
        return f"the contract of {self.packages[0]}"

    def covers(self, module: str) -> bool:
        return any(f"{module}.".startswith(f"{package}.") for package in self.packages)


class Behaviour(NamedTuple):
    """What the packages of a contract do: a name for it, and hashes of the tests and files that show and have it."""

    identity: str
    tests: str
    files: str


class Modules:
    """The modules of some packages, and what they import."""

    def __init__(self, packages: Sequence[str]):
        import grimp

        self.graph = grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)
        self.file_of, self.data_of = cache(file_of), cache(data_of)
        self.needed_by = cache(self.needed_by)
        self.upstream = cache(self.graph.find_upstream_modules)

    def imported_by(self, path: Path) -> frozenset[str]:
        """The modules that a Python file imports, anywhere in it."""
        found = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.update((node.module, *(f"{node.module}.{name.name}" for name in node.names)))
        return frozenset(found & self.graph.modules)

    def in_package(self, name: str) -> set[str]:
        """A module, or all modules of a package."""
        if name not in self.graph.modules:
            raise pytest.UsageError(f"a proof uses {name}, and there is no such module")
        return {name, *self.graph.find_descendants(name)}

    def files_of(self, modules: Iterable[str]) -> set[Path]:
        """The files of modules, and the data of packages among them."""
        files = {self.file_of(module) for module in modules}
        return files.union(*(self.data_of(file.parent) for file in files if file.name == "__init__.py"))

    def needed_by_all(self, modules: Iterable[str]) -> set[str]:
        """Modules, all that they import, and the packages that these are in."""
        return {name for module in modules for name in self.needed_by(module)}

    def needed_by(self, module: str) -> set[str]:
        """A module, all that it imports, and the packages that these are in."""
        found, more = set(), {module}
        while more := more - found:
            found |= more
            more = {name for module in more for name in (*self.upstream(module), *packages_of(module))}
        return found


def digest(parts: Iterable[str]) -> str:
    """A hash of texts in any order."""
    return hashlib.sha256("\0".join(sorted(parts)).encode()).hexdigest()


def whole(package: str) -> set[Path]:
    """The file of a module, or all files in the folder of a package."""
    file = file_of(package)
    found = file.parent.rglob("*") if file.name == "__init__.py" else [file]
    return {path for path in found if path.is_file() and not set(path.parts) & set(NOT_SOURCES)}


def packages_of(module: str) -> list[str]:
    """The packages that a module is in, which are imported before it."""
    parts = module.split(".")
    return [".".join(parts[:k]) for k in range(1, len(parts))]


def file_of(module: str) -> Path:
    """The file of a module, without importing it."""
    relative = Path(*module.split("."))
    for folder in map(Path, sys.path):
        for path in (folder / relative / "__init__.py", folder / relative.with_suffix(".py")):
            if path.exists():
                return path.resolve()
    raise pytest.UsageError(f"there is no file of the module {module}")


def data_of(package: Path) -> list[Path]:
    """The files of a package that are not modules, such as C++ and templates, without NOT_DATA and subpackages."""
    found = [path for path in package.iterdir() if path.is_file() and path.suffix not in (".py", ".md")]
    for folder in package.iterdir():
        if folder.is_dir() and folder.name not in NOT_DATA and not (folder / "__init__.py").exists():
            found += [path for path in folder.rglob("*") if path.is_file() and not set(path.parts) & set(NOT_SOURCES)]
    return found
