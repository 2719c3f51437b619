"""The notebooks: `notebooks/*.py` is the source, the `.ipynb` beside it is made from it and has no outputs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from ..console import say
from ..errors import UserError
from ..paths import ROOT

NOTEBOOKS = ROOT / "notebooks"


def notebook_sources() -> list[Path]:
    """Every notebook's source, in order."""
    return sorted(NOTEBOOKS.glob("*.py"))


def render_ipynb(source: Path) -> str:
    """The text of the paired `.ipynb`: the same for the same source on any machine, and without outputs."""
    import jupytext
    import nbformat

    notebook = jupytext.read(source)
    for k, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{k}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def write_notebooks(check: bool = False) -> int:
    """Writes each `.ipynb`; with `check`, changes nothing and fails if one is not what its source makes."""
    require_packages("jupytext", "nbformat")
    stale = []
    for source in notebook_sources():
        target, text = source.with_suffix(".ipynb"), render_ipynb(source)
        if target.exists() and target.read_text() == text:
            continue
        stale.append(target)
        if not check:
            target.write_text(text)
    for target in stale:
        name = target.relative_to(ROOT)
        say(f"{name} is not what {name.with_suffix('.py')} makes: run `make notebooks`" if check else f"wrote {name}")
    return 1 if check and stale else 0


def require_packages(*packages: str) -> None:
    """Raises `UserError` when a package is missing."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"{', '.join(missing)} is not installed; `make setup` installs it")
