"""A pytest plugin for proofs: slow tests of content that seldom changes.

    @pytest.mark.proof("exercises", files=["stages/stage3_*/csrc/**/*"])
    def test_...

The first argument is the kind, a plural noun under which the summary counts the proof. The proofs of a test file form
a group, or several groups if their marks have a `part`. When all proofs of a group have passed, the group is recorded
with its key, a hash of everything that the group depends on: the test file, the modules that this file imports, the
`files` that the marks name (globs from the root, with the imports of any Python files among them), a `text`, and the
modules or packages in `uses` that a proof starts as processes. While the key of a group is on record for this
machine's versions, its proofs are skipped, and the summary says so. For some packages, a contract takes the place of
their files (keys.py): the record has a line for each contract, too.

    --proofs=due     runs the proofs that are not on record (default)
    --proofs=sample  of the proofs that are not on record, runs some of each kind, chosen by the commit: none begins
                     later than --proof-budget seconds after the first
    --proofs=record  the same as due, and records the groups that passed in tests/proofs.json
    --proofs=all     runs every proof, and records the groups that passed

In addition, each of them but the last repeats a share of the proofs on record, chosen by the commit: with
--proof-share=20, one in twenty. Tests that one worker runs in sequence are chosen together, as they share builds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import pytest

from support.proofs.keys import Behaviour, Keys
from support.proofs.store import DamagedStore, Store
from support.suite.needs import NEEDS, lacking, needs_of
from support.suite.scheduling import group_of

MODES = ("due", "sample", "record", "all")
SHARE = 100  # one in this many proofs on record runs anyway
SAMPLE = 12  # proofs of each kind in a sample
BUDGET = 90  # seconds
TAKEN = "taken from the proofs on record: "  # the beginnings of skip reasons
LEFT_OUT = "a proof that is due, left out of the sample: "
PASSED = dict.fromkeys(("setup", "call", "teardown"), "passed")
STATE = pytest.StashKey[str]()  # of a proof: "taken" from the record, "repeated" although on record, or "due"
CHOSEN = pytest.StashKey[bool]()  # whether a run executes a proof that is due


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proofs", choices=MODES, default="due", help="which proofs to run")
    parser.addoption("--proof-share", type=int, help=f"run one in this many proofs on record ({SHARE})")
    parser.addoption("--proof-budget", type=float, help=f"seconds for a sample of the proofs ({BUDGET})")
    parser.addini("proof_packages", "packages whose modules a proof may depend on", type="args", default=[])
    parser.addini("proof_contracts", "'PACKAGE: GLOB GLOB ...', see Keys", type="linelist", default=[])
    parser.addini("proof_store", "the proofs on record", default="tests/proofs.json")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof(kind, part='', files=(), text='', uses=()): skipped while on record")
    config.pluginmanager.register(Proofs(config), "the proofs")


def environment() -> str:
    """The versions that a proof holds for."""
    from support.proofs.versions import versions

    return versions()


@dataclass
class Group:
    """The proofs of one group that have reported."""

    key: str
    size: int  # of the group
    outcomes: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))  # by proof, by phase
    lacking: set[str] = field(default_factory=set)  # what proofs need that this machine does not have
    left_out: bool = False

    def note(self, report: pytest.TestReport, reason: str) -> None:
        """Notes the outcome of one of its tests, and why it was skipped."""
        self.outcomes[report.nodeid][report.when] = report.outcome
        self.left_out |= reason.startswith(LEFT_OUT)

    @property
    def failed(self) -> bool:
        return any("failed" in phases.values() for phases in self.outcomes.values())

    @property
    def passed(self) -> bool:
        """Whether each proof has passed, is on record, or cannot run on a machine with these versions."""
        done = [phases == PASSED or "skipped" in phases.values() for phases in self.outcomes.values()]
        return len(done) == self.size and all(done) and not self.left_out and not self.failed

    @property
    def entry(self) -> str:
        """What the record says of this group."""
        return f"{self.key} without {', '.join(sorted(self.lacking))}" if self.lacking else self.key


class Proofs:
    """The state of the proofs during one test run."""

    def __init__(self, config: pytest.Config):
        self.config, self.root = config, config.rootpath
        self.mode, self.share = config.getoption("proofs"), config.getoption("proof_share") or SHARE
        self.budget, self.began = config.getoption("proof_budget") or BUDGET, None
        self.is_worker = hasattr(config, "workerinput")
        self.damage = [] if importlib.util.find_spec("grimp") else ["grimp is not installed (make setup)"]
        if self.is_worker:  # all workers must choose the same proofs, even if the record changes in the meantime
            self.recorded, self.head = config.workerinput["proofs"]
            return
        self.versions, self.head = environment(), self.commit()
        self.store = Store(self.root / config.getini("proof_store"))
        self.recorded: dict[str, str] = {}
        try:
            self.recorded = self.store.read().get(self.versions, {})
        except DamagedStore as error:
            self.damage.append(str(error))
        self.groups: dict[str, Group] = {}
        self.contracts: dict[str, Group] = {}  # the tests of each contract
        self.counts: dict[str, Counter[str]] = {"taken": Counter(), "left out": Counter(), "ran": Counter()}
        self.seconds: Counter[str] = Counter()  # by kind, of the proofs that ran
        self.left_out: dict[str, set[str]] = defaultdict(set)  # by kind, with one name for all that share a build

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Passes the record to a worker."""
        node.workerinput["proofs"] = (self.recorded, self.head)

    def commit(self) -> str:
        """The hash of the commit that is checked out; empty outside a repository."""
        command = ["git", "-C", str(self.root), "rev-parse", "HEAD"]
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:
            return ""

    # Which proofs run -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]):
        """Decides which proofs run. Those that are due come first, because they take longest."""
        every = list(items)
        yield  # others add marks, and deselect
        groups: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in every:
            if item.get_closest_marker("proof"):
                groups[group_name(item)].append(item)
        keys = self.keys
        for name, members in groups.items():
            key = keys.of(members) if keys else ""
            size = 0 if self.is_part(members[0]) else len(members)
            for item in members:
                item.stash[STATE] = self.state_of(item, name, key)
                item.user_properties.append(("proof", (name, key, size, kind_of(item))))
        if keys:
            self.mark_contracts(keys, every)
        ranks = self.choose([item for item in items if item.stash.get(STATE, "") == "due"])
        ranks |= dict.fromkeys((item for item in items if item.stash.get(STATE, "") == "repeated"), SAMPLE)
        for item in items:
            item.stash[CHOSEN] = item in ranks
        items.sort(key=lambda item: ranks.get(item, SAMPLE + 1))

    def pytest_sessionstart(self) -> None:
        """Hashes what contracts cover before anything runs: a file may change while the tests run."""
        if not self.is_worker and self.mode in ("record", "all") and self.keys:
            for contract in self.keys.contracts:
                self.keys.behaviour_of(contract)

    @cached_property
    def keys(self) -> Keys | None:
        """The keys of this run, if they can be computed."""
        if not importlib.util.find_spec("grimp"):
            return None
        ini = self.config.getini
        return Keys(self.root, ini("proof_packages"), ini("proof_contracts"), self.recorded)

    def mark_contracts(self, keys: Keys, every: list[pytest.Item]) -> None:
        """Notes in the tests of each contract how many they are, or 0 if the run was not asked for all of them."""
        for contract in keys.contracts:
            files = {path for path in keys.tests_of(contract) if path.match("test_*.py")}
            members = [item for item in every if item.path in files]
            is_whole = files == {item.path for item in members} and not any(map(self.is_part, members))
            for item in members:
                item.user_properties.append(("contract", (contract.name, len(members) if is_whole else 0)))

    def is_part(self, item: pytest.Item) -> bool:
        """Whether the run was asked for single tests of an item's file, so that its groups may be incomplete."""
        chosen = (text.partition("::") for text in self.config.args)
        folder = self.config.invocation_params.dir
        return any(test and (folder / file).resolve() == item.path for file, _, test in chosen)

    def state_of(self, item: pytest.Item, group: str, key: str) -> str:
        """The state of a proof. The commit chooses which of those on record are repeated."""
        recorded, _, without = self.recorded.get(group, "").partition(" without ")
        if self.mode == "all" or not key or recorded != key or set(without.split(", ")) & needs_of(item):
            return "due"
        is_drawn = self.draw(group_of(f"{item.parent.nodeid}::{item.name}")) % self.share == 0
        return "repeated" if is_drawn else "taken"

    def choose(self, due: Iterable[pytest.Item]) -> dict[pytest.Item, int]:
        """The proofs to execute, with their places in the order: all that are due, or of each kind a few."""
        if self.mode != "sample":
            return dict.fromkeys(due, 0)
        kinds: dict[str, list[pytest.Item]] = defaultdict(list)
        for item in due:
            if not any(map(lacking, needs_of(item))):
                kinds[kind_of(item)].append(item)
        drawn = (sorted(members, key=lambda item: self.draw(item.nodeid))[:SAMPLE] for members in kinds.values())
        return {item: rank for members in drawn for rank, item in enumerate(members)}

    def draw(self, name: str) -> int:
        """A number that the commit chooses for a name."""
        return int(hashlib.sha256(f"{self.head} {name}".encode()).hexdigest(), 16)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skips proofs that are on record, and those for which a sample has no time."""
        state = item.stash.get(STATE, "")
        if state == "taken":
            pytest.skip(TAKEN + kind_of(item))
        if state != "due" or self.mode != "sample" or any(map(lacking, needs_of(item))):
            return
        self.began = self.began or time.monotonic()
        if not item.stash[CHOSEN] or time.monotonic() - self.began > self.budget:
            pytest.skip(LEFT_OUT + kind_of(item))

    # Outcomes -------------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the outcome. With several workers, this happens in the process that they report to."""
        if self.is_worker:
            return
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        for title, (name, *more) in report.user_properties:
            if title == "contract":
                self.contracts.setdefault(name, Group("", *more)).note(report, reason)
            elif title == "proof":
                self.note_proof(report, reason, name, *more)

    def note_proof(self, report: pytest.TestReport, reason: str, name: str, key: str, size: int, kind: str) -> None:
        """Notes the outcome of a proof, and records its group with the last of them."""
        group = self.groups.setdefault(name, Group(key, size))
        group.note(report, reason)
        if reason.startswith((TAKEN, LEFT_OUT)):
            self.counts["taken" if reason.startswith(TAKEN) else "left out"][kind] += 1
            if reason.startswith(LEFT_OUT):
                self.left_out[kind].add(build_of(report.nodeid))
        elif reason.startswith(NEEDS):
            group.lacking.add(reason.removeprefix(NEEDS))
        else:
            self.counts["ran"][kind] += report.when == "call"
            self.seconds[kind] += report.duration
        if report.when == "teardown" and group.passed:
            self.record()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Removes what failed from the record. A complete run also removes what is no longer there."""
        if self.is_worker or not (self.groups or self.contracts):
            return
        self.record()
        keys = self.keys if self.mode in ("record", "all") else None
        if not keys:
            return
        behaviours = self.behaviours(keys)
        self.store.update(self.versions, {name: " ".join(now) for name, now in behaviours.items()}, ())
        if self.is_whole(exitstatus):
            known = {name: group.key for name, group in self.groups.items()}
            contracts = {contract.name: keys.recorded_of(contract).identity for contract in keys.contracts}
            self.store.prune(known | contracts | {name: now.identity for name, now in behaviours.items()})

    def record(self) -> None:
        """Records the groups that have passed so far, and removes those that failed."""
        failed = {name for name, group in self.groups.items() if group.failed}
        passed = {name: group.entry for name, group in self.groups.items() if group.key and group.passed}
        self.store.update(self.versions, passed if self.mode in ("record", "all") else {}, failed)

    def behaviours(self, keys: Keys) -> dict[str, Behaviour]:
        """What to record of each contract: its tests and files as they are now.

        If the files have changed, only a run in which all of these tests pass shows what they do. Until then, the
        record stays as it is.
        """
        found = {}
        for contract in keys.contracts:
            now, before = keys.behaviour_of(contract), keys.recorded_of(contract)
            passed = contract.name in self.contracts and self.contracts[contract.name].passed
            if passed or now.files == before.files:
                found[contract.name] = now
        return found

    def is_whole(self, exitstatus: int) -> bool:
        """Whether the run included every proof."""
        chosen = self.config.option.keyword or self.config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        return not chosen and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)

    # Reports --------------------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """Says why no proof can be taken from the record, if so."""
        if self.is_worker or self.mode == "all":
            return []
        if not self.damage and not self.recorded:
            return [f"proofs: none are on record for {self.versions}"]
        return [f"proofs: {damage}, so none is taken from the record" for damage in self.damage]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Shows by kind how many proofs were taken from the record and left out, and what runs the latter."""
        if self.is_worker or not (self.counts["taken"] or self.counts["left out"]):
            return
        terminalreporter.section("proofs")
        if taken := self.counts["taken"]:
            path = self.store.path.relative_to(self.root)
            terminalreporter.write_line(f"{taken.total()} proofs taken from {path}: {listed(taken)}")
        if left_out := self.counts["left out"]:
            ran = self.counts["ran"]
            terminalreporter.write_line(f"{ran.total()} proofs ran, as a sample of those that are due: {listed(ran)}")
            terminalreporter.write_line(f"{left_out.total()} proofs left out: {listed(left_out)}")
            terminalreporter.write_line(f"make prove runs these: {self.estimate()} at the speed of the sample")

    def estimate(self) -> str:
        """How long the proofs that were left out would take, from the time of the sample of each kind.

        Where proofs share a build, most of the time of a single one is the build's.
        """
        ran = self.counts["ran"]
        mean = sum(self.seconds.values()) / max(1, ran.total())
        each = {kind: self.seconds[kind] / ran[kind] if ran[kind] else mean for kind in self.left_out}
        seconds = sum(each[kind] * len(names) for kind, names in self.left_out.items())
        minutes = seconds / 60 / (self.config.getoption("numprocesses", None) or 1)
        return f"about {minutes / 60:.1f} hours" if minutes > 90 else f"about {max(1, round(minutes))} min"


def build_of(test: str) -> str:
    """A name that the proofs of one program with mistakes have in common; of any other proof, its own."""
    group = group_of(test)
    return group if "::" in group else test


def group_name(item: pytest.Item) -> str:
    """The group of a proof: its test file, and the part in the nearest mark that has one."""
    part = next((mark.kwargs["part"] for mark in item.iter_markers("proof") if mark.kwargs.get("part")), "")
    file = item.nodeid.partition("::")[0]
    return f"{file} {part}" if part else file


def kind_of(item: pytest.Item) -> str:
    """The kind in the nearest mark that has one."""
    return next(mark.args[0] for mark in item.iter_markers("proof") if mark.args)


def listed(counts: Counter[str]) -> str:
    """Counts by kind, in one line."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count)
