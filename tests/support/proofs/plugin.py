"""A pytest plugin for proofs: slow tests of content that seldom changes, which run only when something changed.

    @pytest.mark.proof("exercises", files=["stages/stage3_*/csrc/**/*"])
    def test_...

The first argument is the kind, a plural, under which the summary counts it. A proof that passed is recorded with its
key, a hash of all it depends on: its own file, the modules that this imports, the `files` it names (globs from the
root; what Python files among them import counts, too), a `text`, and the modules or packages in `uses` that it starts
as processes. While its key is on record, for this machine's versions, it is skipped, and the summary says so.

    --proofs=due   those without a matching key, and of the rest a share that the commit's hash chooses (the default)
    --proofs=keep  the same; those that pass are also recorded in build/proofs.json, for this machine
    --proofs=all   every proof; those that pass are recorded in tests/proofs.json
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from collections import Counter

import pytest

from support.proofs.keys import Keys
from support.proofs.store import DamagedStore, Store

SHARE = 10  # one in so many of the proofs on record is run anyway
RECORD_EVERY = 50  # proofs: a long run that is killed has recorded nearly all that passed
TAKEN = "taken from the proofs on record: "  # how the reason of such a skip begins
PASSED = dict.fromkeys(("setup", "call", "teardown"), "passed")
DUE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proofs", choices=("due", "keep", "all"), default="due", help="which proofs run")
    parser.addini("proof_packages", "packages whose modules a proof may depend on", type="args", default=[])
    parser.addini("proof_store", "the proofs on record", default="tests/proofs.json")
    parser.addini("proof_cache", "what this machine adds to them", default="build/proofs.json")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof(kind, files=(), text='', uses=()): skipped while nothing changes")
    config.pluginmanager.register(Proofs(config), "the proofs")


def environment() -> str:
    """The versions that a proof holds for."""
    from support.proofs.versions import versions

    return versions()


class Proofs:
    """What one run knows of its proofs."""

    def __init__(self, config: pytest.Config):
        self.config, self.root = config, config.rootpath
        self.mode = config.getoption("proofs")
        self.is_worker = hasattr(config, "workerinput")
        self.damage = (
            [] if importlib.util.find_spec("grimp") else ["grimp is not installed (make setup); every proof runs"]
        )
        if self.is_worker:  # all workers must choose the same, whatever becomes of the record meanwhile
            self.recorded, self.head = config.workerinput["proofs"]
            return
        self.versions, self.head = environment(), self.commit()
        self.stores = [Store(self.root / config.getini(name)) for name in ("proof_store", "proof_cache")]
        self.recorded: dict[str, str] = {}
        for store in self.stores:
            try:
                self.recorded |= store.read().get(self.versions, {})
            except DamagedStore as error:
                self.damage.append(str(error))
        self.keys: dict[str, str] = {}  # of the proofs that have reported
        self.outcomes: dict[str, dict[str, str]] = {}  # and what each phase came to

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Hands what is on record to a worker."""
        node.workerinput["proofs"] = (self.recorded, self.head)

    # Which proofs run -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)  # others may add marks
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Gives each proof its key; those that are due come first, since they take longest."""
        proofs = [item for item in items if item.get_closest_marker("proof")]
        if not proofs or not importlib.util.find_spec("grimp"):
            return
        keys = Keys(self.root, self.config.getini("proof_packages"))
        for item in proofs:
            name, key = f"{item.parent.nodeid}::{item.name}", keys.of(item)  # the name without a group of xdist
            item.stash[DUE] = self.is_due(name, key)
            item.user_properties.append(("proof", (name, key)))
        items.sort(key=lambda item: not item.stash.get(DUE, False))

    def is_due(self, name: str, key: str) -> bool:
        """Whether a proof is run."""
        if self.mode == "all" or self.recorded.get(name) != key:
            return True
        return int(hashlib.sha256(f"{self.head} {name}".encode()).hexdigest(), 16) % SHARE == 0

    def commit(self) -> str:
        """The hash of the commit that is checked out; empty outside of a repository."""
        command = ["git", "-C", str(self.root), "rev-parse", "HEAD"]
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:
            return ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skips what is on record."""
        if not item.stash.get(DUE, True):
            pytest.skip(TAKEN + kind_of(item))

    # What became of them --------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the outcome; with several workers, where they report to."""
        proof = dict(report.user_properties).get("proof")
        if proof and not self.is_worker:
            name, key = proof
            self.keys[name] = key
            self.outcomes.setdefault(name, {})[report.when] = report.outcome
            if report.when == "teardown" and len(self.outcomes) % RECORD_EVERY == 0:
                self.record()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Records the rest; a whole run leaves nothing else on record."""
        if self.is_worker or not self.keys:
            return
        self.record()
        if self.mode == "all" and self.is_whole(exitstatus):
            self.stores[0].prune(self.keys)

    def record(self) -> None:
        """Records what has passed until now, and strikes out what failed."""
        failed = {proof for proof, phases in self.outcomes.items() if "failed" in phases.values()}
        passed = {proof: key for proof, key in self.keys.items() if self.outcomes[proof] == PASSED}
        committed, local = self.stores
        committed.update(self.versions, passed if self.mode == "all" else {}, failed)
        local.update(self.versions, passed if self.mode == "keep" else {}, failed)

    def is_whole(self, exitstatus: int) -> bool:
        """Whether the run was of every proof that there is."""
        chosen = self.config.option.keyword or self.config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        return not chosen and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)

    # What is said of them -------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """Why every proof runs, where that is so."""
        if self.damage:
            return [f"proofs: {damage}" for damage in self.damage]
        if self.mode != "all" and not self.recorded:
            return [f"proofs: none are on record for {self.versions}; every proof runs"]
        return []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """How many were taken from the record, by kind."""
        begin = f"Skipped: {TAKEN}"
        reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
        kinds = Counter(reason.removeprefix(begin) for reason in reasons if reason.startswith(begin))
        if kinds:
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            path = self.stores[0].path.relative_to(self.root)
            terminalreporter.section("proofs")
            terminalreporter.write_line(f"{kinds.total()} proofs taken from {path}: {counted}")


def kind_of(item: pytest.Item) -> str:
    """The kind that the nearest mark with one gives."""
    return next(marker.args[0] for marker in item.iter_markers("proof") if marker.args)
