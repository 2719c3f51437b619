"""`make emulate FILE=...`: runs a CUDA program, or the tests of a folder made by `make new`, on the emulator."""

from __future__ import annotations

import os
from pathlib import Path

from .. import emulator, paths
from ..build import targets
from ..errors import UserError
from ..new import emulated


def emulate(file: str, arguments: list[str]) -> int:
    """The exit status of the program or of the tests; COUNTS=1 adds a table of counts.

    Raises `UserError` if the program cannot be built.
    """
    if file and (Path(file) / "setup.py").exists():
        return emulated.test_on_emulator(Path(file), arguments)
    path = Path(file)
    if not file:
        raise UserError("FILE is missing: make emulate FILE=x.cu")
    if path.is_dir():
        raise UserError(f"{file} is a folder; name one CUDA program: make emulate FILE=x.cu")
    if " " in file and not path.exists():
        raise UserError(f"there is no file {file}; emulate takes a single file")
    emulator.check_sources([file])
    if reason := targets.why_unavailable("emulator"):
        raise UserError(reason)
    counts = os.environ.get("COUNTS", "0") not in ("", "0")
    try:
        return emulator.emulate([file], arguments, counts=counts, cache=paths.build_cache())
    except UserError as error:
        if "it has no main()" not in str(error):
            raise
        raise UserError(
            f"{error}. To call a kernel from Python instead, see `make start`, which shows it, and `make new`, which "
            "makes a project of your own"
        ) from None
