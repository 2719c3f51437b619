"""Where a test belongs: tests/ mirrors the folders of common/, beside what tests the content of the workbook.

    python tests/support/suite/places.py

prints each misplaced test file, and the folder where it belongs according to its imports.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CONTENT = {"stages", "notebooks", "docs"}  # tested for what they say; and the helpers, for what they do
HELPERS = "support"


def misplaced(root: Path = ROOT) -> list[str]:
    """One line for each test file whose folder mirrors no folder of common/."""
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        folder = path.parent.relative_to(root / "tests")
        if not is_mirror(root, folder):
            place = " or ".join(f"tests/{name}" for name in [belongs(root, path), *sorted(CONTENT)] if name)
            found.append(f"{path.relative_to(root)} mirrors no folder of common/; it belongs in {place}")
    return found


def is_mirror(root: Path, folder: Path) -> bool:
    """Whether tests may be in this folder of tests/."""
    return folder.parts[:1] in ((HELPERS,), *((name,) for name in CONTENT)) or (
        folder.parts != () and (root / "common" / folder).is_dir()
    )


def belongs(root: Path, path: Path) -> str | None:
    """The package of common/ that a file imports most from."""
    imported = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported += [f"{node.module}.{name.name}" for name in node.names]
    parts = (name.split(".") for name in imported)
    packages = Counter(name[1] for name in parts if name[0] == "common" and len(name) > 1)
    known = [name for name, _ in packages.most_common() if (root / "common" / name / "__init__.py").exists()]
    return known[0] if known else None


if __name__ == "__main__":
    lines = misplaced()
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
