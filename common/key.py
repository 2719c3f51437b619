"""The one form of keys: a hash of everything that a result, a build or a record depends on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path


class Key:
    """Collects values, variables and files; `text` is their hash, 20 hexadecimal digits."""

    def __init__(self, *values: str | bytes) -> None:
        self._digest = hashlib.sha256()
        self.add(*values)

    def add(self, *values: str | bytes) -> Key:
        """Adds versions, names or texts."""
        for value in values:
            data = value.encode() if isinstance(value, str) else value
            self._digest.update(b"%d:" % len(data) + data)  # with its length, so that no two lists look alike
        return self

    def add_variables(self, names: Iterable[str], variables: Mapping[str, str] | None = None) -> Key:
        """Adds environment variables, by default as they are now. One that is not set differs from an empty one."""
        variables = os.environ if variables is None else variables
        return self.add(*(f"{name}={variables[name]}" for name in names if name in variables))

    def add_files(
        self, paths: Iterable[Path], folder: Path, read: Callable[[Path], str | bytes] = Path.read_bytes
    ) -> Key:
        """Adds files, in the order of their paths in `folder`: these paths, and what `read` returns of each."""
        for path in sorted(paths):
            self.add(path.relative_to(folder).as_posix(), read(path))
        return self

    @property
    def text(self) -> str:
        """The key."""
        return self._digest.hexdigest()[:20]
