"""Imports a built stage as a package, with its library as `_C`."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from .. import stages
from ..emulator import demangle
from ..errors import UserError
from ..stages import Stage
from . import targets
from .library import build_stage


def load_stage(number: int, target: str | None = None) -> ModuleType:
    """The module of a stage (`module_name`); builds and imports its `_C` first. See `common.load`."""
    stage = stages.get_stage(number)
    target = targets.choose_target(stage, target)
    name = module_name(stage, target)
    if name not in sys.modules:
        _import_stage(stage, target)
    return sys.modules[name]


def module_name(stage: Stage, target: str) -> str:
    """The module that `load` returns: `lltm` of a cell's package, the package itself of other stages."""
    package = package_name(stage, target)
    return f"{package}.lltm" if stage.kind == "cell" else package


def package_name(stage: Stage, target: str) -> str:
    """The name of a stage's package: its own name for the best target here, with the target appended for others."""
    return stage.package if target == targets.choose_target(stage, None) else f"{stage.package}_{target}"


def _import_stage(stage: Stage, target: str) -> None:
    """Imports the stage's folder as a package, so that `from . import _C` finds the built library."""
    built = build_stage(stage, target).path if targets.has_cpp(stage) else None
    package = package_name(stage, target)
    import_folder(package, stage.folder, built, f"stage {stage.number}")
    sys.modules[module_name(stage, target)].TARGET = target


def import_folder(package: str, folder: Path, library: Path | None, what: str) -> ModuleType:
    """Imports a folder as a package, with a library as `_C`; returns its module `lltm` or, without one, the package.

    Messages call it `what`. Raises `UserError` if the library does not load.
    """
    if library:
        import torch  # noqa: F401  (first: the extension is linked against its libraries)

        name = f"{package}._C"
        loader = importlib.machinery.ExtensionFileLoader(name, str(library))
        spec = importlib.util.spec_from_file_location(name, str(library), loader=loader)
        try:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            loader.exec_module(sys.modules[name])
        except ImportError as error:  # an undefined symbol is only detected now
            sys.modules.pop(name, None)
            raise UserError(f"{what} builds, but does not load: {demangle(str(error))}") from None
    spec = importlib.util.spec_from_file_location(
        package, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    made = sys.modules[package] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(made)
    except BaseException:
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
        raise
    return sys.modules.get(f"{package}.lltm", made)
