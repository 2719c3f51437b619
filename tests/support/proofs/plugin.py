"""A pytest plugin for proofs: slow tests of content that seldom changes, which run only after a change.

    @pytest.mark.proof("exercises", files=["stages/stage3_*/csrc/**/*"])
    def test_...

The first argument is the kind, a plural noun under which the summary counts the proof. A proof that passed is
recorded with its key, a hash of everything it depends on: its own file, the modules that this file imports, the
`files` that it names (globs from the root, with the imports of any Python files among them), a `text`, and the
modules or packages in `uses` that it starts as processes. While its key is on record for this machine's versions,
the proof is skipped, and the summary says so.

    --proofs=due   runs proofs without a matching key, and a share of the others, chosen by the commit (default):
                   with --proof-share=20, one in twenty. Tests that one worker runs in sequence are chosen
                   together, because they share builds
    --proofs=keep  the same, and records the proofs that pass in build/proofs.json, for this machine
    --proofs=all   runs every proof, and records those that pass in tests/proofs.json
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
from collections import Counter

import pytest

from support.proofs.keys import Keys
from support.proofs.store import DamagedStore, Store
from support.suite.scheduling import group_of

SHARE = 100  # one in this many groups of proofs on record runs anyway
RECORD_EVERY = 50  # proofs: a long run that is killed has recorded nearly all that passed
TAKEN = "taken from the proofs on record: "  # the beginning of the skip reason
PASSED = dict.fromkeys(("setup", "call", "teardown"), "passed")
DUE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proofs", choices=("due", "keep", "all"), default="due", help="which proofs to run")
    parser.addoption("--proof-share", type=int, help=f"run one in this many proofs on record ({SHARE})")
    parser.addini("proof_packages", "packages whose modules a proof may depend on", type="args", default=[])
    parser.addini("proof_store", "the proofs on record", default="tests/proofs.json")
    parser.addini("proof_cache", "the proofs that this machine adds to them", default="build/proofs.json")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proof(kind, files=(), text='', uses=()): skipped while nothing changes")
    config.pluginmanager.register(Proofs(config), "the proofs")


def environment() -> str:
    """The versions that a proof holds for."""
    from support.proofs.versions import versions

    return versions()


class Proofs:
    """The state of the proofs during one test run."""

    def __init__(self, config: pytest.Config):
        self.config, self.root = config, config.rootpath
        self.mode, self.share = config.getoption("proofs"), config.getoption("proof_share") or SHARE
        self.is_worker = hasattr(config, "workerinput")
        self.damage = (
            [] if importlib.util.find_spec("grimp") else ["grimp is not installed (make setup); every proof runs"]
        )
        if self.is_worker:  # all workers must choose the same proofs, even if the record changes in the meantime
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
        self.outcomes: dict[str, dict[str, str]] = {}  # and the outcome of each phase

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        """Passes the record to a worker."""
        node.workerinput["proofs"] = (self.recorded, self.head)

    # Which proofs run -----------------------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)  # others may add marks
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Gives each proof its key. Proofs that are due run first, because they take longest."""
        proofs = [item for item in items if item.get_closest_marker("proof")]
        if not proofs or not importlib.util.find_spec("grimp"):
            return
        keys = Keys(self.root, self.config.getini("proof_packages"))
        for item in proofs:
            name, key = f"{item.parent.nodeid}::{item.name}", keys.of(item)  # the name without xdist's group
            item.stash[DUE] = self.is_due(name, key)
            item.user_properties.append(("proof", (name, key)))
        items.sort(key=lambda item: not item.stash.get(DUE, False))

    def is_due(self, name: str, key: str) -> bool:
        """Whether a proof must run."""
        if self.mode == "all" or self.recorded.get(name) != key:
            return True
        return int(hashlib.sha256(f"{self.head} {group_of(name)}".encode()).hexdigest(), 16) % self.share == 0

    def commit(self) -> str:
        """The hash of the commit that is checked out; empty outside a repository."""
        command = ["git", "-C", str(self.root), "rev-parse", "HEAD"]
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.strip()
        except FileNotFoundError:
            return ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skips proofs that are on record."""
        if not item.stash.get(DUE, True):
            pytest.skip(TAKEN + kind_of(item))

    # Outcomes -------------------------------------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes the outcome. With several workers, this happens in the process that they report to."""
        proof = dict(report.user_properties).get("proof")
        if proof and not self.is_worker:
            name, key = proof
            self.keys[name] = key
            self.outcomes.setdefault(name, {})[report.when] = report.outcome
            if report.when == "teardown" and len(self.outcomes) % RECORD_EVERY == 0:
                self.record()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Records the remaining proofs. A complete run removes everything else from the record."""
        if self.is_worker or not self.keys:
            return
        self.record()
        if self.mode == "all" and self.is_whole(exitstatus):
            self.stores[0].prune(self.keys)

    def record(self) -> None:
        """Records the proofs that have passed so far, and removes those that failed."""
        failed = {proof for proof, phases in self.outcomes.items() if "failed" in phases.values()}
        passed = {proof: key for proof, key in self.keys.items() if self.outcomes[proof] == PASSED}
        committed, local = self.stores
        committed.update(self.versions, passed if self.mode == "all" else {}, failed)
        local.update(self.versions, passed if self.mode == "keep" else {}, failed)

    def is_whole(self, exitstatus: int) -> bool:
        """Whether the run included every proof."""
        chosen = self.config.option.keyword or self.config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        return not chosen and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)

    # Reports --------------------------------------------------------------------------------------------------------

    def pytest_report_header(self) -> list[str]:
        """Says why every proof runs, if so."""
        if self.is_worker:
            return []
        if self.damage:
            return [f"proofs: {damage}" for damage in self.damage]
        if self.mode != "all" and not self.recorded:
            return [
                f"proofs: none are on record for {self.versions}; every proof runs",
                "proofs: this takes hours. Without them: make test ARGS='-m \"not proof\"'",
            ]
        return []

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Shows how many proofs were taken from the record, by kind."""
        begin = f"Skipped: {TAKEN}"
        reasons = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
        kinds = Counter(reason.removeprefix(begin) for reason in reasons if reason.startswith(begin))
        if kinds:
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            path = self.stores[0].path.relative_to(self.root)
            terminalreporter.section("proofs")
            terminalreporter.write_line(f"{kinds.total()} proofs taken from {path}: {counted}")


def kind_of(item: pytest.Item) -> str:
    """The kind in the nearest mark that has one."""
    return next(marker.args[0] for marker in item.iter_markers("proof") if marker.args)
