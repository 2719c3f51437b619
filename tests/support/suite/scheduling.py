"""Decides how many workers run tests, and which tests one of them runs in sequence.

Mostly these are the tests of one file, which share builds. The tests of the files in `APART` share nothing, or only
with the tests of one program or of one function, so any worker may run them. Then no long file is left over at the
end. (Of xdist's own modes, loadfile has no exceptions, and loadgroup ignores its groups with pytest 9.2.)
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from common.emulator.toolchain import jobs

MEMORY_OF_A_WORKER = 2560 << 20  # bytes, with the programs that it starts; compilers are jobs of a pool of their own


def of_program(test: str) -> str:
    """The group of the tests of one program with mistakes. Its name is the beginning of the parameter."""
    file, _, name = test.partition("::")
    program = re.search(r"\[(\w+)", name)
    return f"{file}::{program[1]}" if program else test


def of_function(test: str) -> str:
    """The group of the tests of one function, which may share a fixture."""
    return test.partition("[")[0]


APART: dict[str, Callable[[str], str]] = {
    "common/emulator/tests/test_extension.py": of_function,
    "common/emulator/tests/test_libraries.py": str,
    "common/emulator/tests/test_mistakes.py": of_program,
    "common/emulator/tests/test_program.py": of_function,
    "tests/docs/test_build_reference.py": str,
    "tests/docs/troubleshooting/": str,
    "tests/exercises/runner/test_runner.py": of_function,
    "tests/exercises/test_exercises.py": str,
    "tests/measure/test_bench.py": str,
    "tests/notebooks/test_executed.py": str,
    "tests/stages/test_custom_op.py": str,
    "tests/stages/test_fused.py": str,
    "tests/stages/test_sequence.py": str,
    "tests/stages/test_stages.py": str,
    "tests/support/proofs/test_proofs.py": of_function,
}


def group_of(test: str) -> str:
    """The group that one worker runs."""
    split = next((split for start, split in APART.items() if test.startswith(start)), None)
    return split(test) if split else test.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One for each core that has its memory: of `-n auto`."""
    return max(1, min(jobs.count_cores(), jobs.find_memory() // MEMORY_OF_A_WORKER))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Hands out groups in the order of their first tests."""
    from xdist.scheduler import LoadScopeScheduling

    class LoadOwnGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

        def remove_node(self, node: object) -> str | None:
            """Returns the test in which a worker crashed. Others run the rest. (xdist would rerun the test.)"""
            groups = self.assigned_work.pop(node)
            left = [(group, test) for group in groups.values() for test, done in group.items() if not done]
            if not left:
                return None
            group, crashed = left[0]
            group[crashed] = True
            self.workqueue.update((name, group) for name, group in groups.items() if not all(group.values()))
            for other in self.assigned_work:
                self._reschedule(other)
            return crashed

    return LoadOwnGroups(config, log)
