"""A test file whose folder mirrors no folder of common/ is reported, with the folder where it belongs."""

from __future__ import annotations

import pytest

from support.suite.places import misplaced

IMPORTS = "from common import stages\nfrom common.build import library, targets\nfrom common.cell.case import Case\n"


@pytest.fixture
def root(tmp_path):
    """A workbook with three packages."""
    for package in ("build", "cell", "exercises/grading"):
        (tmp_path / "common" / package).mkdir(parents=True)
        (tmp_path / "common" / package / "__init__.py").touch()
    (tmp_path / "common" / "exercises" / "__init__.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    "place", ["build", "exercises/grading", "stages", "notebooks", "docs/troubleshooting", "support"]
)
def test_what_mirrors_a_package_or_is_about_content_is_in_place(root, place):
    (root / "tests" / place).mkdir(parents=True)
    (root / "tests" / place / "test_it.py").write_text(IMPORTS)
    assert misplaced(root) == []


@pytest.mark.parametrize("place", ["", "library", "build/deep"])
def test_what_is_elsewhere_is_named_with_its_place(root, place):
    (root / "tests" / place).mkdir(parents=True)
    (root / "tests" / place / "test_it.py").write_text(IMPORTS)
    name = f"{place}/test_it.py".lstrip("/")
    assert misplaced(root) == [
        f"tests/{name} mirrors no folder of common/; "
        "it belongs in tests/build or tests/docs or tests/notebooks or tests/stages"
    ]


def test_without_imports_it_is_about_content(root):
    (root / "tests").mkdir()
    (root / "tests" / "test_it.py").write_text("import re\n")
    assert misplaced(root)[0].endswith("it belongs in tests/docs or tests/notebooks or tests/stages")


def test_all_of_ours_are_in_place():
    assert misplaced() == []
