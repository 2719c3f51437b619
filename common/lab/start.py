"""`make start`: notebooks/start_here, in JupyterLab or, where no browser can open, as text in the terminal."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import re
import sys
import textwrap
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..console import say, wrapped
from ..exercises import workspace
from ..pages.notebooks import NOTEBOOKS
from ..paths import ROOT, display_path
from .copies import open_lab

SOURCE = NOTEBOOKS / "start_here.py"
PICTURES = ROOT / "out" / "start"
YOUR_TURN = """\
**Your turn:** all code of this text is in {copy}. Open that file in an editor, change `i <= n` to `i < n` in the line
that begins with `BROKEN`, and run this in the folder {root}:

    {python} {copy}

There is no report any more, and the result is right.
"""


class Cell(NamedTuple):
    """A cell of a notebook's source. `options` is what follows `# %%`."""

    options: str
    text: str

    @property
    def is_markdown(self) -> bool:
        return self.options.startswith("[markdown]")

    @property
    def is_for_notebooks(self) -> bool:
        return '"notebook-only"' in self.options

    @property
    def is_task(self) -> bool:
        return '"your-turn"' in self.options


def start(as_text: bool = False) -> int:
    """Opens the notebook in JupyterLab, or plays it in this terminal."""
    if not as_text and can_open_browser() and importlib.util.find_spec("jupyterlab"):
        return open_lab(SOURCE.with_suffix(".ipynb").name)
    say(f"This is {SOURCE.stem} as text. As a notebook: `make lab` on a machine with a browser.\n")
    play(SOURCE)
    return 0


def can_open_browser() -> bool:
    """Whether a browser can open: there is one, and a display that is not at the other end of ssh."""
    if os.environ.get("SSH_CONNECTION") or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def play(source: Path) -> None:
    """Prints each cell and runs its code; in a terminal, each after Enter. The reader edits a copy of the code."""
    namespace: dict = {"__name__": "__main__"}
    for cell in read_cells(source.read_text(encoding="utf-8")):
        if cell.is_task:
            say(describe_task(source))
            wait_for_enter("to go on")
        if cell.is_for_notebooks:
            continue
        if cell.is_markdown:
            say(wrapped(re.sub("^# ?", "", cell.text, flags=re.MULTILINE)) + "\n")
        else:
            say(textwrap.indent(re.sub("^# %matplotlib.*\n", "", cell.text, flags=re.MULTILINE), "    ") + "\n")
            wait_for_enter("to run this")
            run_cell(cell.text, namespace)
            say()


def describe_task(source: Path) -> str:
    """What the reader can change, and how to run it. Copies the source, unless the reader has a copy already."""
    copy = workspace.root() / source.name
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    python = display_path(Path(sys.executable))
    return wrapped(YOUR_TURN.format(copy=display_path(copy), python=python, root=ROOT))


def wait_for_enter(why: str) -> None:
    """Waits in a terminal until the reader presses Enter, or ends the input with Ctrl+D."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        with contextlib.suppress(EOFError):
            input(f"Press Enter {why}. ")


def read_cells(text: str) -> Iterator[Cell]:
    """The cells of a notebook in jupytext's percent format."""
    _, *parts = re.split(r"^# %%(.*)\n", text, flags=re.MULTILINE)
    for options, body in zip(parts[::2], parts[1::2], strict=True):
        yield Cell(options.strip(), body.strip("\n"))


def run_cell(code: str, namespace: dict) -> None:
    """Runs a cell; what its last line evaluates to is shown, as in a notebook."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, SOURCE.name, "exec"), namespace)
    if last:
        show(eval(compile(ast.Expression(last.value), SOURCE.name, "eval"), namespace))


def show(value: object) -> None:
    """Prints a value, or says where its picture is."""
    if hasattr(value, "savefig"):
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / "threads.png"
        value.savefig(path, dpi=100)
        say(f"(The picture is in {path.relative_to(ROOT)}.)")
    elif value is not None:
        say(str(value))
