"""`make new NAME=mycell`: a folder of one's own, in which stage 5's operators go by another name and all is tested.

What is copied: stage 5's package and csrc/, and `folder/` beside this file, with the rest of a project. In all of it
`lltm` becomes the name. It needs nothing of the workbook any more.
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
    """Makes the folder `parent`/`name`, in work/ if no parent is given, and says how to go on.

    Raises `UserError` for a name that cannot be a package and a namespace of operators, and for a folder that exists.
    """
    demand_usable(name)
    place = (Path(parent).expanduser().resolve() if parent else root()) / name
    if place.exists():
        raise UserError(
            f"{display_path(place)} exists already, and nothing is overwritten; take another NAME, or DIR=..."
        )
    unfinished = place.with_name(f".{name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was interrupted
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
    print("Its README.md says which lines to change for a cell of your own.")
    return 0


def demand_usable(name: str) -> None:
    """Raises `UserError`, with the reason, unless a package and a namespace of operators can have this name."""
    if not name:
        raise UserError("a name is missing: make new NAME=mycell")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        why = (
            "is not a valid package name: use lower-case letters and digits, a letter first, underscores between them"
        )
    elif keyword.iskeyword(name) or hasattr(builtins, name):
        why = "means something in Python already"
    elif found := installed(name):
        why = f"is taken: {found}"
    elif is_namespace(name):
        why = f"is taken: torch.ops.{name} is torch's own"
    elif found := word_in_sources(name):
        why = f"is a word of the files that are copied ({found})"
    else:
        return
    raise UserError(f"NAME={name} {why}; take another one, such as NAME=mycell")


def installed(name: str) -> str | None:
    """Where `import name` would find something, or which package pip would replace; None if there is neither."""
    if spec := importlib.util.find_spec(name):
        return f"import finds {spec.origin or next(iter(spec.submodule_search_locations))}"
    try:
        return f"pip has installed version {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return None


def is_namespace(name: str) -> bool:
    """Whether torch, as it is installed, has operators of this namespace, or torch.ops a method of this name."""
    import torch

    registered = {operator.partition("::")[0] for operator in torch._C._dispatch_get_all_op_names()}
    return name in registered or hasattr(type(torch.ops), name)


def word_in_sources(name: str) -> str | None:
    """Where the copied files have the name as a word, with which it would be confused; None if nowhere."""
    for path, text in source_files():
        if name in re.findall(r"\w+", str(path)):
            return str(path)
        for number, line in enumerate(text.splitlines(), start=1):
            if path.suffix != ".md" and name in re.findall(r"\w+", line):
                return f"{path}, line {number}"
    return None


def source_files() -> Iterator[tuple[Path, str]]:
    """The files as they are here, each with the path that it will have."""
    for name in ("__init__.py", "lltm.py"):
        yield Path("lltm", name), (STAGE / name).read_text(encoding="utf-8")
    for path in sorted((STAGE / "csrc").iterdir()):
        if path.is_file():
            yield Path("csrc", path.name), path.read_text(encoding="utf-8")
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(FOLDER), path.read_text(encoding="utf-8")


def files(name: str) -> dict[str, str]:
    """The files under the new name, by path. LLTM stays in prose: the cell is one until the reader changes it."""
    made = {str(path).replace("lltm", name): renamed(text, name) for path, text in source_files()}
    made["README.md"] = with_lines(made["README.md"], made)
    return made


def renamed(text: str, name: str) -> str:
    """The text with `lltm` as the name, and macros that begin with it in capitals."""
    return text.replace("lltm", name).replace("LLTM_", f"{name.upper()}_")


def with_lines(page: str, made: dict[str, str]) -> str:
    """The page with each `{{file: first ... last}}` as a link to the lines from one with `first` to one with `last`.

    Raises `ValueError` where the file has not exactly one line with `first`, or none with `last` from there on.
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
