"""The proofs on record: for each set of versions, each proof with the key that it passed with."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Record = dict[str, dict[str, str]]  # by the versions, by the proof: its key


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
            raise DamagedStore(f"{self.path.name} is damaged ({error}); every proof runs") from None
        if not isinstance(found, dict) or not all(map(is_keys, found.values())):
            raise DamagedStore(f"{self.path.name} is damaged (not a record of proofs); every proof runs")
        return found

    def update(self, versions: str, passed: Mapping[str, str], failed: Collection[str]) -> None:
        """Adds the keys of proofs that passed with these versions, and removes those that failed."""

        def change(record: Record) -> Record:
            keys = record.get(versions, {}) | passed
            return record | {versions: {proof: key for proof, key in keys.items() if proof not in failed}}

        self.change(change)

    def prune(self, keys: Mapping[str, str]) -> None:
        """Removes every entry whose key is not the current one. `keys` are the keys of all proofs."""

        def change(record: Record) -> Record:
            return {
                versions: {proof: key for proof, key in proofs.items() if keys.get(proof) == key}
                for versions, proofs in record.items()
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
            after = {versions: proofs for versions, proofs in change(before).items() if proofs}
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


def is_keys(proofs: object) -> bool:
    """Whether this is a dictionary of keys by the names of proofs."""
    return isinstance(proofs, dict) and all(isinstance(key, str) for key in proofs.values())
