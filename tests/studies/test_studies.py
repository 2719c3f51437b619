"""Each study is complete, and is one folder: with the folder come and go its command, its record and its table."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import study
from common.command import find_function
from common.commands.table import COMMANDS
from common.pages import generate
from common.paths import ROOT

FOLDERS = sorted(path.parent for path in study.STUDIES.glob("*/__init__.py"))
STUDIES = study.find_studies()
each_study = pytest.mark.parametrize("one", STUDIES, ids=lambda one: one.name)
TOY = {
    "__init__.py": """
from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "toy_squares",
    commands=(
        Command(
            "toy-squares",
            "count squares",
            "studies.toy_squares.recorder:record_squares",
            (argument("--to", type=int, default=3, help="the last one"),),
            variables={"--to": "LAST"},
        ),
    ),
    tables={"toy": "studies.toy_squares.table:squares_table"},
)
""",
    "recorder.py": """
from ...results import records
from . import STUDY


def record_squares(to):
    records.save({"squares": [number**2 for number in range(1, to + 1)]}, STUDY.record())
    return 0
""",
    "table.py": """
from ...pages.markdown import markdown_table
from . import STUDY


def squares_table():
    record = STUDY.read_record()
    return markdown_table(["square"], [[str(one)] for one in record["squares"]]) if record else "Not recorded yet."
""",
}
PAGE = "# Squares\n\n<!-- generated: toy -->\n<!-- end: toy -->\n"


def test_every_folder_is_a_study():
    assert [one.name for one in STUDIES] == [folder.name for folder in FOLDERS]
    files = [path for path in study.STUDIES.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    there = {path.relative_to(study.STUDIES).parts[0] for path in files}
    assert there == {"__init__.py", *(folder.name for folder in FOLDERS)}


@each_study
def test_its_commands_have_its_name_and_run_functions_of_its_own(one):
    assert one.commands
    name = one.name.replace("_", "-")
    for command in one.commands:
        assert command.name == name or command.name.startswith(f"{name}-")
        assert COMMANDS[command.name] is command
        assert command.function.startswith(f"studies.{one.name}.")
        assert callable(find_function(command.function))
        assert set(command.variables) <= {names[0] for names, _ in command.arguments}


@each_study
def test_its_records_are_there_and_its_tables_are_on_a_page(one):
    assert [part for part in one.parts if not one.record(part).exists()] == []
    pages = "".join(page.read_text() for page in generate.list_pages())
    for block, function in one.tables.items():
        assert function.startswith(f"studies.{one.name}.")
        assert f"<!-- generated: {block} -->" in pages
        assert block in generate.GENERATORS
        assert callable(find_function(function))


@each_study
def test_its_programs_are_used_and_it_has_tests(one):
    folder = study.STUDIES / one.name
    assert list((ROOT / "tests" / "studies" / one.name).glob("test_*.py"))
    texts = "".join(path.read_text() for path in [*folder.glob("*.py"), *ROOT.glob("notebooks/*.py")])
    texts += "".join(path.read_text() for path in ROOT.glob("tests/support/*.py"))
    for program in folder.glob("*.cu"):
        stem = re.escape(program.stem.rstrip("0123456789"))  # stage3.cu is the program of a stage with a number
        assert re.search(rf"\b{stem}\S*\.cu\b", texts), program


def test_every_record_and_every_folder_of_tests_belongs_to_a_study():
    assert set(study.RECORDS.iterdir()) == {one.record(part) for one in STUDIES for part in one.parts}
    tests = [path.name for path in Path(__file__).parent.iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert sorted(tests) == [one.name for one in STUDIES]


def test_listing_the_commands_imports_no_module_of_a_study():
    code = "import sys; import common.commands.table; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "torch" not in imported
    packages = {"common.studies", *(f"common.studies.{one.name}" for one in STUDIES)}
    assert {name for name in imported if name.startswith("common.studies")} == packages


@pytest.fixture
def copy(tmp_path) -> Path:
    """The workbook's code without its pages."""
    shutil.copytree(ROOT / "common", tmp_path / "common", ignore=shutil.ignore_patterns("__pycache__", "tests"))
    shutil.copytree(ROOT / "stages", tmp_path / "stages", ignore=shutil.ignore_patterns("__pycache__", "*.md"))
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path


@pytest.mark.needs("make")
def test_a_study_is_one_folder(copy):
    """In a copy of the workbook, with no other file changed but the page that shows the table."""

    def run(*command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, cwd=copy, capture_output=True, text=True)

    def python(*arguments: str) -> str:
        done = run(sys.executable, "-m", "common", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    without = python("help")
    folder, page = copy / "common" / "studies" / "toy_squares", copy / "docs" / "squares.md"
    folder.mkdir()
    for name, text in TOY.items():
        (folder / name).write_text(text)
    page.write_text(PAGE)
    added = set(python("help").splitlines()) - set(without.splitlines())
    assert [line.split(maxsplit=2) for line in added] == [["make", "toy-squares", "count squares"]]
    python("tables")
    assert "\nNot recorded yet.\n" in page.read_text()
    done = run("make", "toy-squares", f"PYTHON={sys.executable}", "LAST=4")
    assert (done.returncode, done.stderr) == (0, "")
    assert (copy / "docs" / "results" / "studies" / "toy_squares.json").exists()
    python("tables")
    assert "\n| 16 |\n" in page.read_text()

    shutil.rmtree(folder)
    assert python("help") == without
    done = run(sys.executable, "-m", "common", "tables")
    assert "docs/squares.md: nothing generates 'toy'" in done.stderr
