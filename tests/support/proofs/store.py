"""The proofs on record: for each set of versions, each group of proofs with the key that it passed with."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Record = dict[str, dict[str, str]]  # by the versions, by the group: its key, and what the machine lacked


class DamagedStore(Exception):
    """The file does not contain a record of proofs."""


class Store:
    """A JSON file of a `Record`."""

    def __init__(self, path: Path):
        self.path = path

    def read(self) -> Record:
        """The whole record, or an empty one if there is no file. Raises `DamagedStore`."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DamagedStore(f"{self.path.name} is damaged ({error})") from None
        if not isinstance(found, dict) or not all(map(is_keys, found.values())):
            raise DamagedStore(f"{self.path.name} is damaged (not a record of proofs)")
        return found

    def update(self, versions: str, passed: Mapping[str, str], failed: Collection[str]) -> None:
        """Adds the keys of groups that passed with these versions, and removes those that failed."""

        def change(record: Record) -> Record:
            keys = record.get(versions, {}) | passed
            return record | {versions: {group: key for group, key in keys.items() if group not in failed}}

        self.change(change)

    def prune(self, keys: Mapping[str, str]) -> None:
        """Removes every entry whose key is not the current one. `keys` are the keys of all groups."""

        def change(record: Record) -> Record:
            return {
                versions: {group: entry for group, entry in groups.items() if keys.get(group) == entry.split()[0]}
                for versions, groups in record.items()
            }

        self.change(change)

    def change(self, change: Callable[[Record], Record]) -> None:
        """Replaces the file with the result of `change` if that differs. A damaged file counts as empty."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with lock(self.path.parent):
            try:
                before = self.read()
            except DamagedStore:
                before = {}
            after = {versions: groups for versions, groups in change(before).items() if groups}
            if after != before:
                made = self.path.with_suffix(".new")
                made.write_text(json.dumps(after, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                made.replace(self.path)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Allows one writer at a time. The system releases the lock when its holder ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_keys(groups: object) -> bool:
    """Whether this is a dictionary of keys by the names of groups."""
    return isinstance(groups, dict) and all(isinstance(key, str) and key for key in groups.values())
