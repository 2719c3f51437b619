"""The plugin for proofs on a small project: which proofs are due, what is recorded, and what is reported."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from support.proofs import plugin
from support.suite.needs import PROGRAMS, lacking

pytestmark = pytest.mark.needs("grimp")

VERSIONS = "Python 3, torch 2"
PLUGIN = ("-p", "support.proofs.plugin")
STORE = "tests/proofs.json"
FILES = {
    "pyproject.toml": """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
proof_packages = ["lib"]
cache_dir = "build/pytest"
""",
    "lib/__init__.py": "",
    "lib/used.py": "def used():\n    from . import deep\n    return deep.VALUE\n",
    "lib/deep/__init__.py": "VALUE = 1\n",
    "lib/deep/runtime/run.cpp": "int run();\n",
    "lib/other.py": "VALUE = 2\n",
    "lib/command.py": "VALUE = 3\n",
    "content/one.txt": "1\n",
    "content/two.txt": "2\n",
    "content/check.py": "import lib.command\n",
    "tests/conftest.py": "",
    "tests/test_it.py": """
import pathlib, pytest
from lib.used import used

FOLDER = pathlib.Path(__file__).parents[1] / "content"

def here(name):
    return pytest.param(name, id=name, marks=pytest.mark.proof(part=name, files=[f"content/{name}.txt"]))

@pytest.mark.proof("numbers")
@pytest.mark.parametrize("name", [here("one"), here("two")])
def test_number(name):
    assert used() and int((FOLDER / f"{name}.txt").read_text())

@pytest.mark.proof("checks", files=["content/*.py"])
def test_check():
    pass

def test_ordinary():
    pass
""",
}
MORE = "import pytest\n\n@pytest.mark.proof('others')\ndef test_more():\n    pass\n"
ONE, TWO, CHECK = "test_it.py::test_number[one]", "test_it.py::test_number[two]", "test_it.py::test_check"
GROUPS = {ONE: "tests/test_it.py one", TWO: "tests/test_it.py two", CHECK: "tests/test_it.py"}


class Project:
    """A small project with three proofs, each a group, and runs of its tests."""

    def __init__(self, pytester: pytest.Pytester):
        self.pytester, self.root = pytester, pytester.path
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *options: str) -> pytest.RunResult:
        before = set(sys.modules)
        try:
            return self.pytester.runpytest_inprocess(*PLUGIN, "-rs", *options, no_reraise_ctrlc=True)
        finally:
            for name in set(sys.modules) - before:
                if name.partition(".")[0] in ("lib", "test_it"):
                    del sys.modules[name]

    def ran(self, *options: str) -> set[str]:
        """The proofs that a run executed instead of taking them from the record."""
        report = self.run("-v", *options)
        done = (line.split() for line in report.outlines if "::" in line)
        return {words[0].removeprefix("tests/") for words in done if words[1:2] == ["PASSED"]} - {
            "test_it.py::test_ordinary"
        }

    def record(self) -> dict:
        path = self.root / STORE
        return json.loads(path.read_text()) if path.exists() else {}


@pytest.fixture
def project(pytester, monkeypatch):
    monkeypatch.setattr(plugin, "environment", lambda: VERSIONS)
    monkeypatch.setattr(plugin.Proofs, "commit", lambda self: "")
    monkeypatch.setattr(plugin, "SHARE", 10**30)
    return Project(pytester)


@pytest.fixture
def recorded(project):
    """All three are on record."""
    project.run("--proofs=all").assert_outcomes(passed=4)
    return project


def test_what_is_on_record_is_not_run_and_listed(recorded):
    report = recorded.run()
    report.assert_outcomes(passed=1, skipped=3)
    report.stdout.fnmatch_lines(["3 proofs taken from tests/proofs.json: 1 checks, 2 numbers"])
    report.stdout.fnmatch_lines(["SKIPPED [[]2[]] *taken from the proofs on record: numbers"])


def test_what_was_never_proven_runs(project):
    assert project.ran() == {ONE, TWO, CHECK}
    assert project.record() == {}


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ("content/one.txt", {ONE}),
        ("content/two.txt", {TWO}),
        ("content/check.py", {CHECK}),
        ("tests/test_it.py", {ONE, TWO, CHECK}),
        ("lib/used.py", {ONE, TWO, CHECK}),
        ("lib/__init__.py", {ONE, TWO, CHECK}),
        ("lib/deep/__init__.py", {ONE, TWO, CHECK}),  # imported inside a function
        ("lib/deep/runtime/run.cpp", {ONE, TWO, CHECK}),
        ("lib/command.py", {CHECK}),  # imported by a file that it names
        ("lib/other.py", set()),
    ],
)
def test_what_changed_is_due(recorded, changed, due):
    path = recorded.root / changed
    path.write_text(path.read_text() + "\n")
    assert recorded.ran() == due


@pytest.mark.parametrize(("folder", "due"), [("tests/deep", {"deep/test_deep.py::test_deep"}), ("tests", set())])
def test_the_fixtures_of_a_folder_count_and_those_of_all_tests_do_not(project, folder, due):
    project.write("tests/deep/conftest.py", "")
    project.write("tests/deep/test_deep.py", "import pytest\n@pytest.mark.proof('numbers')\ndef test_deep(): pass\n")
    project.run("--proofs=all").assert_outcomes(passed=5)
    project.write(f"{folder}/conftest.py", "value = 1\n")
    assert project.ran() == due


def test_a_process_that_a_proof_starts_counts_where_it_is_named(project):
    project.write(
        "tests/test_it.py",
        "import pytest\n@pytest.mark.proof('numbers', uses=['lib.deep'], text='a')\ndef test_check(): pass\n",
    )
    project.run("--proofs=all").assert_outcomes(passed=1)
    assert project.ran() == set()
    project.write("lib/deep/more.py", "")
    assert project.ran() == {CHECK}


def test_a_text_counts(project):
    test = "import pytest\n@pytest.mark.proof('numbers', text=TEXT)\ndef test_check(): pass\n"
    project.write("tests/test_it.py", f"TEXT = open('text').read()\n{test}")
    project.write("text", "a")
    project.run("--proofs=all").assert_outcomes(passed=1)
    project.write("text", "b")
    assert project.ran() == {CHECK}


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("files=['content/*.md']", "a proof names content/[*].md, and there is no such file"),
        ("uses=['lib.none']", "a proof uses lib.none, and there is no such module"),
    ],
)
def test_what_is_not_there_is_named(project, marker, says):
    project.write("tests/test_it.py", f"import pytest\n@pytest.mark.proof('n', {marker})\ndef test_it(): pass\n")
    report = project.run()
    assert report.ret == pytest.ExitCode.USAGE_ERROR
    report.stderr.fnmatch_lines([f"*{says}*"])


def test_a_failing_proof_is_struck_out_and_never_recorded(recorded):
    assert set(recorded.record()[VERSIONS]) == set(GROUPS.values())
    recorded.write("content/one.txt", "no number\n")
    for option, passed in (("--proofs=all", 3), ("--proofs=record", 1), ("--proofs=due", 1), ("--proofs=sample", 1)):
        recorded.run(option).assert_outcomes(failed=1, passed=passed, skipped=3 - passed)
        assert set(recorded.record()[VERSIONS]) == {GROUPS[TWO], GROUPS[CHECK]}
    recorded.write("content/one.txt", "1\n")
    assert recorded.ran() == {ONE}


def test_only_a_run_that_is_to_record_changes_the_store(project):
    for option in ("--proofs=due", "--proofs=sample"):
        project.run(option).assert_outcomes(passed=4)
        assert project.record() == {}
    project.run("--proofs=record").assert_outcomes(passed=4)
    assert set(project.record()[VERSIONS]) == set(GROUPS.values())
    assert project.ran() == set()


# Groups -----------------------------------------------------------------------------------------------------------

PAIR = """
import pytest

pytestmark = pytest.mark.proof("pairs", files=["content/*.txt"])

@pytest.mark.parametrize("name", ["a", "b"])
def test_pair(name):
    assert open(f"content/{name}.txt").read()
"""


@pytest.fixture
def pair(project):
    """Two proofs that form one group, and depend on two files."""
    project.write("tests/test_it.py", PAIR)
    for name in "ab":
        project.write(f"content/{name}.txt", name)
    return project


def test_a_group_is_one_line_and_runs_as_one(pair):
    pair.run("--proofs=record").assert_outcomes(passed=2)
    assert list(pair.record()[VERSIONS]) == ["tests/test_it.py"]
    pair.write("content/a.txt", "aa")
    assert len(pair.ran()) == 2


def test_a_group_of_which_one_fails_is_not_recorded(pair):
    pair.write("content/b.txt", "")
    pair.run("--proofs=record").assert_outcomes(passed=1, failed=1)
    assert pair.record() == {}


@pytest.mark.parametrize("chosen", [["-k", "a]"], ["tests/test_it.py::test_pair[a]"], ["--maxfail=1"]])
def test_a_group_of_which_one_did_not_run_is_not_recorded(pair, chosen):
    if chosen == ["--maxfail=1"]:
        pair.write("content/a.txt", "")
    pair.run("--proofs=record", *chosen)
    assert pair.record() == {}


def test_a_file_that_was_chosen_is_recorded(pair):
    pair.run("--proofs=record", "tests/test_it.py").assert_outcomes(passed=2)
    assert list(pair.record()[VERSIONS]) == ["tests/test_it.py"]


def test_what_a_machine_lacks_is_in_the_record_and_due_where_it_is_there(pair, monkeypatch):
    test = PAIR.replace('["a", "b"]', '["a", pytest.param("b", marks=pytest.mark.needs("zebra"))]')
    pair.write("tests/test_it.py", test)
    needs = ("-p", "support.suite.needs")
    monkeypatch.setitem(PROGRAMS, "zebra", "a zebra: the zoo")
    lacking.cache_clear()
    pair.run("--proofs=record", *needs).assert_outcomes(passed=1, skipped=1)
    assert pair.record()[VERSIONS]["tests/test_it.py"].endswith(" without zebra")
    pair.run("--proofs=sample", *needs).assert_outcomes(skipped=2)
    monkeypatch.setitem(PROGRAMS, "zebra", "")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    lacking.cache_clear()
    assert pair.ran(*needs) == {"test_it.py::test_pair[b]"}
    pair.run("--proofs=record", *needs).assert_outcomes(passed=1, skipped=1)
    assert pair.ran(*needs) == set()
    assert "without" not in pair.record()[VERSIONS]["tests/test_it.py"]
    lacking.cache_clear()


# Contracts --------------------------------------------------------------------------------------------------------


DEEP = "deep/test_deep.py::test_deep"
SOURCES, TESTS = "lib/deep/runtime/run.cpp", "tests/deep/test_deep.py"


@pytest.fixture
def contract(project):
    """Four proofs on record. The behaviour of lib.deep, on which three depend, is fixed by the fourth, DEEP."""
    line = '\nproof_contracts = ["lib.deep: tests/deep/*"]\n'
    project.write("pyproject.toml", FILES["pyproject.toml"].rstrip() + line)
    project.write("content/check.py", "import lib.used\n")
    test = "import pytest\nimport lib.deep\n@pytest.mark.proof('numbers')\ndef test_deep(): assert True\n"
    project.write(TESTS, test + "\ndef test_quick(): pass\n")
    project.run("--proofs=all").assert_outcomes(passed=6)
    return project


def due(project: Project, *changed: str) -> set[str]:
    """The proofs that are due once some files have changed."""
    for name in changed:
        project.write(name, (project.root / name).read_text() + "\n")
    return project.ran() - {"deep/test_deep.py::test_quick"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["lib/deep/__init__.py"], {DEEP}),
        ([SOURCES], {DEEP}),
        ([TESTS], {DEEP}),
        ([TESTS, SOURCES], {ONE, TWO, CHECK, DEEP}),
        (["lib/used.py"], {ONE, TWO, CHECK}),
    ],
)
def test_a_contract_stands_for_its_package(contract, changed, expected):
    """If only the package or only its tests change, its behaviour is the same; if both do, it may be another one."""
    assert due(contract, *changed) == expected


def test_a_package_and_then_its_tests_may_change_if_the_tests_pass_in_between(contract):
    due(contract, SOURCES)
    contract.run("--proofs=record").assert_outcomes(passed=3, skipped=3)
    assert due(contract, TESTS) == {DEEP}
    contract.run("--proofs=record", "-m", "proof")
    assert due(contract, SOURCES) == {DEEP}


@pytest.mark.parametrize(
    "chosen", [["-m", "proof"], ["-k", "not quick"], ["tests/test_it.py"], [f"{TESTS}::test_deep"], ["--proofs=due"]]
)
def test_tests_of_a_contract_that_did_not_all_run_show_nothing(contract, chosen):
    due(contract, SOURCES)
    contract.run("--proofs=record", *chosen)
    assert due(contract, TESTS) == {ONE, TWO, CHECK, DEEP}


def test_tests_of_a_contract_of_which_one_fails_show_nothing(contract):
    fails = (contract.root / TESTS).read_text().replace("assert True", "assert lib.deep.VALUE == 1")
    contract.write(TESTS, fails)
    contract.run("--proofs=all").assert_outcomes(passed=6)
    contract.write("lib/deep/__init__.py", "VALUE = 2  # of another length: bytecode is found by time and size\n")
    contract.run("--proofs=record").assert_outcomes(passed=2, failed=1, skipped=3)
    contract.write(TESTS, fails.replace("== 1", "in (1, 2)"))
    assert due(contract) == {ONE, TWO, CHECK, DEEP}


def test_what_changes_during_a_run_is_not_taken_for_what_was_tested(contract):
    name = "the contract of lib.deep"
    tested = contract.record()[VERSIONS][name].split()[-1]
    edits = f"__import__('pathlib').Path({SOURCES!r}).write_text('int edited();')"
    contract.write(TESTS, (contract.root / TESTS).read_text().replace("assert True", edits))
    contract.run("--proofs=record").assert_outcomes(passed=3, skipped=3)
    assert "edited" in (contract.root / SOURCES).read_text()
    assert contract.record()[VERSIONS][name].split()[-1] == tested


def test_a_contract_may_cover_modules_and_packages(contract):
    line = '\nproof_contracts = ["lib.used lib.deep: tests/deep/*"]\n'
    contract.write("pyproject.toml", FILES["pyproject.toml"].rstrip() + line)
    contract.run("--proofs=all").assert_outcomes(passed=6)
    assert due(contract, "lib/used.py", SOURCES) == {DEEP}
    assert due(contract, "lib/__init__.py") == {ONE, TWO, CHECK, DEEP}


@pytest.mark.parametrize("line", ["", "one", "one two three four"])
def test_a_damaged_line_of_a_contract_makes_its_proofs_due(contract, line):
    record = contract.record()
    record[VERSIONS]["the contract of lib.deep"] = line or "-"
    contract.write(STORE, json.dumps(record))
    (contract.root / TESTS).write_text((contract.root / TESTS).read_text() + "\n")
    assert due(contract) == {ONE, TWO, CHECK, DEEP}
    contract.run("--proofs=record").assert_outcomes(passed=6)
    assert due(contract) == set()


# Samples ----------------------------------------------------------------------------------------------------------

MANY = """
import pytest, time

@pytest.mark.proof("hares")
@pytest.mark.parametrize("k", range(40))
def test_hare(k): pass

@pytest.mark.proof("snails", part="snails")
@pytest.mark.parametrize("k", range(30))
def test_snail(k): time.sleep(0.3)

def test_ordinary(): pass
"""


def test_a_sample_has_some_of_each_kind_as_the_commit_chooses(project, monkeypatch):
    project.write("tests/test_it.py", MANY.replace("0.3", "0"))
    chosen = []
    for commit in "ab":
        monkeypatch.setattr(plugin.Proofs, "commit", lambda self, commit=commit: commit)
        chosen.append(project.ran("--proofs=sample"))
        assert project.ran("--proofs=sample") == chosen[-1]
        assert Counter(name.partition("[")[0] for name in chosen[-1]) == {
            "test_it.py::test_hare": plugin.SAMPLE,
            "test_it.py::test_snail": plugin.SAMPLE,
        }
    assert chosen[0] != chosen[1]


def test_a_sample_repeats_a_share_of_the_record_whatever_its_budget(project):
    project.write("tests/test_it.py", MANY.replace("0.3", "0"))
    project.run("--proofs=record").assert_outcomes(passed=71)
    project.run("--proofs=sample").assert_outcomes(passed=1, skipped=70)
    report = project.run("--proofs=sample", "--proof-share=1", "--proof-budget=0.001")
    report.assert_outcomes(passed=71)


def test_what_cannot_run_here_takes_no_place_in_a_sample(project):
    many = MANY.replace("0.3", "0").replace("def test_hare", '@pytest.mark.needs("zebra")\ndef test_hare')
    project.write("tests/test_it.py", many)
    lines = project.run("--proofs=sample", "-p", "support.suite.needs").stdout.str()
    assert "12 proofs ran, as a sample of those that are due: 12 snails" in lines
    assert "18 proofs left out: 18 snails" in lines


def test_a_sample_keeps_to_its_budget_and_says_what_it_left_out(project):
    project.write("tests/test_it.py", MANY)
    report = project.run("--proofs=sample", "--proof-budget=1")
    outcomes = report.parseoutcomes()
    assert 4 <= outcomes["passed"] <= 12
    assert outcomes["passed"] + outcomes["skipped"] == 71
    lines = report.stdout.str()
    assert re.search(r"\d+ proofs ran, as a sample of those that are due: \d+ hares, \d+ snails", lines)
    assert re.search(r"\d+ proofs left out: \d+ hares, \d+ snails", lines)
    assert "make prove runs these: about 1 min at the speed of the sample" in lines
    assert project.record() == {}


def test_all_of_them_run_when_asked_for(recorded):
    assert recorded.ran("--proofs=all") == {ONE, TWO, CHECK}


def test_another_torch_is_not_believed(recorded, monkeypatch):
    monkeypatch.setattr(plugin, "environment", lambda: "Python 3, torch 3")
    report = recorded.run()
    report.assert_outcomes(passed=4)
    report.stdout.fnmatch_lines(["proofs: none are on record for Python 3, torch 3"])


def test_workers_run_every_proof_without_a_record(project):
    project.run("-n", "1").assert_outcomes(passed=4)


def test_the_record_of_other_versions_stays_while_it_is_true(recorded, monkeypatch):
    monkeypatch.setattr(plugin, "environment", lambda: "Python 3, torch 3")
    recorded.write("content/one.txt", "11\n")
    recorded.run("--proofs=all").assert_outcomes(passed=4)
    record = {versions: set(proofs) for versions, proofs in recorded.record().items()}
    everything = set(GROUPS.values())
    assert record == {VERSIONS: everything - {GROUPS[ONE]}, "Python 3, torch 3": everything}


def test_what_there_is_no_more_is_dropped_by_a_whole_run(recorded):
    recorded.write("tests/test_it.py", FILES["tests/test_it.py"].replace(', here("two")', ""))
    recorded.run("--proofs=all", "-k", "one").assert_outcomes(passed=1, deselected=2)
    assert GROUPS[TWO] in recorded.record()[VERSIONS]
    recorded.run("--proofs=all", "-m", "proof").assert_outcomes(passed=2, deselected=1)
    assert GROUPS[TWO] not in recorded.record()[VERSIONS]


@pytest.mark.parametrize("text", ["{", "[]", '{"versions": ["proof"]}', '{"versions": {"proof": 1}}', ""])
def test_a_damaged_store_is_one_line_and_everything_runs(recorded, text):
    recorded.write(STORE, text)
    report = recorded.run()
    report.assert_outcomes(passed=4)
    report.stdout.fnmatch_lines(["proofs: proofs.json is damaged (*), so none is taken from the record"])
    assert report.stdout.str().count("is damaged (") == 1
    recorded.run("--proofs=all").assert_outcomes(passed=4)
    assert len(recorded.record()[VERSIONS]) == 3


def test_a_share_of_the_record_runs_as_the_commit_chooses(recorded, monkeypatch):
    """A file's proofs share builds, so all of them run or none."""
    more = "test_more.py::test_more"
    recorded.write(f"tests/{more.partition(':')[0]}", MORE)
    recorded.run("--proofs=all").assert_outcomes(passed=5)
    monkeypatch.setattr(plugin, "SHARE", 3)
    chosen = []
    for commit in "abcdefghijkl":
        monkeypatch.setattr(plugin.Proofs, "commit", lambda self, commit=commit: commit)
        chosen.append(recorded.ran())
        assert recorded.ran() == chosen[-1]
    first = {ONE, TWO, CHECK}
    assert {frozenset(one) for one in chosen} >= {frozenset(), frozenset(first), frozenset([more])}
    assert all(one & first in (set(), first) for one in chosen)
    assert recorded.ran("--proof-share=1") == {ONE, TWO, CHECK, more}


def test_what_is_due_comes_first(recorded):
    recorded.write("content/check.py", "import lib.other\n")
    done = [line.split()[0] for line in recorded.run("-v").outlines if "::" in line and "SKIPPED [" not in line]
    assert done == [f"tests/{name}" for name in (CHECK, ONE, TWO, "test_it.py::test_ordinary")]


def test_the_commit_is_the_one_that_is_checked_out(pytester):
    run = plugin.Proofs.commit
    project = SimpleNamespace(root=pytester.path)
    assert run(project) == ""
    git = ["git", "-C", str(pytester.path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    assert len(run(project)) == 40


def test_nothing_is_recorded_of_what_was_interrupted(project):
    test = FILES["tests/test_it.py"].replace('files=["content/*.py"])\ndef test_check():\n    pass', "STOP")
    stops = 'files=["content/*.py"])\ndef test_check():\n    raise KeyboardInterrupt'
    project.write("tests/test_it.py", test.replace("STOP", stops))
    assert project.run("--proofs=all").ret == pytest.ExitCode.INTERRUPTED
    assert set(project.record()[VERSIONS]) == {GROUPS[ONE], GROUPS[TWO]}


def test_a_run_that_is_killed_has_recorded_what_passed_before(pytester, monkeypatch):
    project = Project(pytester)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    dies = FILES["tests/test_it.py"].replace(
        "def test_check():\n    pass", "def test_check():\n    import os; os._exit(9)"
    )
    project.write("tests/test_it.py", dies)
    assert pytester.runpytest_subprocess(*PLUGIN, "--proofs=all").ret == 9
    ((_, recorded),) = project.record().items()
    assert set(recorded) == {GROUPS[ONE], GROUPS[TWO]}


@pytest.mark.needs("xdist")
def test_several_workers_lose_nothing(pytester, monkeypatch):
    project = Project(pytester)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    options = (*PLUGIN, "-n", "2")
    pytester.runpytest_subprocess(*options, "--proofs=all").assert_outcomes(passed=4)
    ((_, recorded),) = project.record().items()
    assert set(recorded) == set(GROUPS.values())
    outcomes = pytester.runpytest_subprocess(*options).parseoutcomes()
    assert outcomes["skipped"] > 0  # the names decide which proofs run anyway
    assert outcomes["passed"] + outcomes["skipped"] == 4


def test_this_machine_s_versions_are_one_line():
    line = plugin.environment()
    assert "\n" not in line
    assert line.startswith("Python 3.")
    assert ", torch 2." in line


def test_proofs_that_share_a_build_have_one_name():
    mistakes = "common/emulator/tests/test_mistakes.py::test_it"
    assert plugin.build_of(f"{mistakes}[leaks-wrong_a]") == plugin.build_of(f"{mistakes}[leaks-wrong_b]")
    assert plugin.build_of(f"{mistakes}[leaks-wrong_a]") != plugin.build_of(f"{mistakes}[races-wrong_a]")
    assert plugin.build_of("tests/pages/test_start.py::test_it") == "tests/pages/test_start.py::test_it"
