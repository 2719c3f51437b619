"""`make new NAME=mycell`: creates a project of your own, with operators under another name, and their tests.

There are two kinds. A `cell` is a copy of stage 5's package and csrc/, with the rest of a project from `cell/` beside
this file. An `elementwise` function is a copy of `elementwise/`, a small operator with a kernel for each device and a
gradient. Both get the files of `project/`. In all files, the name of the copied operator is replaced. The project
does not depend on the workbook.
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

HERE = Path(__file__).parent
STAGE = stages.get_stage(5).folder
KINDS = {"cell": "lltm", "elementwise": "softsign"}  # the name that the copied files use


def new(name: str, parent: str | None = None, kind: str = "cell") -> int:
    """Makes the folder `parent`/`name`, by default in work/, and says how to continue.

    Raises `UserError` if there is no such kind, if the name cannot be a package and a namespace of operators, or if
    the folder exists.
    """
    if kind not in KINDS:
        raise UserError(f"KIND={kind} is not a kind of operator; choose {' or '.join(KINDS)}")
    demand_usable(name, kind)
    place = (Path(parent).expanduser().resolve() if parent else root()) / name
    if place.exists():
        raise UserError(
            f"{display_path(place)} already exists and is not overwritten; choose another NAME, or DIR=..."
        )
    unfinished = place.with_name(f".{name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # left by an interrupted run
        for path, text in files(name, kind).items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / path).write_text(text, encoding="utf-8")
        unfinished.rename(place)
    except OSError as error:
        raise UserError(f"cannot write in {display_path(place.parent)}: {error.strerror or error}") from None
    on_path = shutil.which("python")
    python = "python" if on_path and Path(on_path).samefile(sys.executable) else shlex.quote(sys.executable)
    shown = shlex.quote(display_path(place))
    print(f"Made {display_path(place)}. Its README.md says which lines to change for an operator of your own.\n")
    print("Run its tests, with the CUDA kernels on the emulator, which needs no GPU:\n")
    print(f"    make emulate FILE={shown}\n")
    print("Build it for this machine and run its tests; without a GPU, this leaves out the CUDA kernels:\n")
    print(f"    cd {shown}")
    print(f"    {python} setup.py build_ext --inplace && {python} -m pytest")
    return 0


def demand_usable(name: str, kind: str) -> None:
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
    elif found := word_in_sources(name, kind):
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


def word_in_sources(name: str, kind: str) -> str | None:
    """The place where the copied files use the name as a word, which would be ambiguous; None if there is none."""
    for path, text in source_files(kind):
        if name in words(str(path), kind):
            return str(path)
        for number, line in enumerate(text.splitlines(), start=1):
            if path.suffix != ".md" and name in words(line, kind):
                return f"{path}, line {number}"
    return None


def words(text: str, kind: str) -> list[str]:
    """The words of a text, without the name that is replaced."""
    return re.findall(r"\w+", text.replace(KINDS[kind], ""))


def source_files(kind: str) -> Iterator[tuple[Path, str]]:
    """The files to copy, each with its path in the new folder."""
    if kind == "cell":
        for name in ("__init__.py", "lltm.py"):
            yield Path("lltm", name), (STAGE / name).read_text(encoding="utf-8")
        for path in sorted((STAGE / "csrc").iterdir()):
            if path.is_file():
                yield Path("csrc", path.name), path.read_text(encoding="utf-8")
    for folder in (HERE / kind, HERE / "project"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(folder), path.read_text(encoding="utf-8")


def files(name: str, kind: str = "cell") -> dict[str, str]:
    """The files under the new name, by path. A cell's prose still says LLTM, until the user changes the cell."""
    made = {renamed(str(path), name, kind): renamed(text, name, kind) for path, text in source_files(kind)}
    made["README.md"] = with_lines(made["README.md"], made)
    return made


def renamed(text: str, name: str, kind: str) -> str:
    """The text with the copied operator's name replaced, also in macros, which begin with it in capitals."""
    return text.replace(KINDS[kind], name).replace(f"{KINDS[kind].upper()}_", f"{name.upper()}_")


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
