"""`make new NAME=mycell`: creates a project of your own with stage 5's operators under another name, and their tests.

It copies stage 5's package and csrc/, and `folder/` beside this file, which has the rest of a project. In all files,
`lltm` is replaced by the name. The project does not depend on the workbook.
"""

from __future__ import annotations

import builtins
import importlib.metadata
import importlib.util
import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from .. import stages
from ..errors import UserError
from ..exercises.workspace import root
from ..paths import display_path

FOLDER = Path(__file__).parent / "folder"
STAGE = stages.get_stage(5).folder


def new(name: str, parent: str | None = None) -> int:
    """Makes the folder `parent`/`name`, by default in work/, and says how to continue.

    Raises `UserError` if the name cannot be a package and a namespace of operators, or if the folder exists.
    """
    demand_usable(name)
    place = (Path(parent).expanduser().resolve() if parent else root()) / name
    if place.exists():
        raise UserError(
            f"{display_path(place)} already exists and is not overwritten; choose another NAME, or DIR=..."
        )
    unfinished = place.with_name(f".{name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # left by an interrupted run
        for path, text in files(name).items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / path).write_text(text, encoding="utf-8")
        unfinished.rename(place)
    except OSError as error:
        raise UserError(f"cannot write in {display_path(place.parent)}: {error.strerror or error}") from None
    on_path = shutil.which("python")
    python = "python" if on_path and Path(on_path).samefile(sys.executable) else shlex.quote(sys.executable)
    print(f"Made {display_path(place)}: stage 5 as a package of your own. Build it and run its tests:\n")
    print(f"    cd {shlex.quote(display_path(place))}")
    print(f"    {python} setup.py build_ext --inplace && {python} -m pytest\n")
    print("Without a GPU, that builds the C++ code only. This also runs the CUDA kernels, on the emulator:\n")
    print(f"    make emulate FILE={shlex.quote(display_path(place))}\n")
    print("Its README.md says which lines to change for a cell of your own.")
    return 0


def demand_usable(name: str) -> None:
    """Raises `UserError`, with the reason, if the name is invalid for a package and a namespace of operators."""
    if not name:
        raise UserError("a name is missing: make new NAME=mycell")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        why = (
            "is not a valid package name: use lower-case letters and digits, begin with a letter, "
            "and separate words by single underscores"
        )
    elif keyword.iskeyword(name) or hasattr(builtins, name):
        why = "already has a meaning in Python"
    elif found := installed(name):
        why = f"is taken: {found}"
    elif is_namespace(name):
        why = f"is taken: torch.ops.{name} is torch's own"
    elif found := word_in_sources(name):
        why = f"occurs as a word in the copied files ({found})"
    else:
        return
    raise UserError(f"NAME={name} {why}; choose another one, such as NAME=mycell")


def installed(name: str) -> str | None:
    """The module that `import name` finds, or the package that pip would replace; None if there is neither."""
    if spec := importlib.util.find_spec(name):
        return f"import finds {spec.origin or next(iter(spec.submodule_search_locations))}"
    try:
        return f"pip has installed version {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def is_namespace(name: str) -> bool:
    """Whether the installed torch has operators in this namespace, or torch.ops has a method of this name."""
    import torch

    registered = {operator.partition("::")[0] for operator in torch._C._dispatch_get_all_op_names()}
    return name in registered or hasattr(type(torch.ops), name)


def word_in_sources(name: str) -> str | None:
    """The place where the copied files use the name as a word, which would be ambiguous; None if there is none."""
    for path, text in source_files():
        if name in re.findall(r"\w+", str(path)):
            return str(path)
        for number, line in enumerate(text.splitlines(), start=1):
            if path.suffix != ".md" and name in re.findall(r"\w+", line):
                return f"{path}, line {number}"
    return None


def source_files() -> Iterator[tuple[Path, str]]:
    """The files to copy, each with its path in the new folder."""
    for name in ("__init__.py", "lltm.py"):
        yield Path("lltm", name), (STAGE / name).read_text(encoding="utf-8")
    for path in sorted((STAGE / "csrc").iterdir()):
        if path.is_file():
            yield Path("csrc", path.name), path.read_text(encoding="utf-8")
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(FOLDER), path.read_text(encoding="utf-8")


def files(name: str) -> dict[str, str]:
    """The files under the new name, by path. Prose still says LLTM: the cell is one until the user changes it."""
    made = {str(path).replace("lltm", name): renamed(text, name) for path, text in source_files()}
    made["README.md"] = with_lines(made["README.md"], made)
    return made


def renamed(text: str, name: str) -> str:
    """The text with `lltm` replaced by the name, also in macros that begin with LLTM_."""
    return text.replace("lltm", name).replace("LLTM_", f"{name.upper()}_")


def with_lines(page: str, made: dict[str, str]) -> str:
    """The page with each `{{file: first ... last}}` replaced by a link to the lines from `first` to `last`.

    Raises `ValueError` unless the file has exactly one line with `first` and, from there on, a line with `last`.
    """

    def link(found: re.Match[str]) -> str:
        path, first, last = found.groups()
        lines = made[path].splitlines()
        starts = [number for number, line in enumerate(lines, start=1) if first in line]
        if len(starts) != 1:
            raise ValueError(f"{path}: {len(starts)} lines with {first!r}")
        [start] = starts
        ends = [n for n, line in enumerate(lines, start=1) if n >= start and last in line] if last else [start]
        if not ends:
            raise ValueError(f"{path}: no line with {last!r} from line {start} on")
        end = ends[0]
        return f"[{start}]({path}#L{start})" if end == start else f"[{start} to {end}]({path}#L{start}-L{end})"

    return re.sub(r"\{\{(\S+): (.+?)(?: \.\.\. (.+?))?\}\}", link, page)
