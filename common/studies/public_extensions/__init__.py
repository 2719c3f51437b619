"""Public PyTorch extensions, unchanged, on the emulator: which of them build, and whether their kernels are right.

`make public-extensions` fetches the packages of packages.py from the index that pip uses, builds each of their
extensions for the emulator, calls it as trials.py says, and records the outcomes. Nothing of the packages is kept.
"""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "public_extensions",
    commands=(
        Command(
            "public-extensions",
            "build and call public extensions on the emulator",
            "studies.public_extensions.recorder:record_outcomes",
            (argument("--only", help="only packages whose name contains this; nothing is recorded then"),),
            builds=True,
            variables={"--only": "ONLY"},
        ),
    ),
    tables={"public-extensions": "studies.public_extensions.table:public_extensions_table"},
)
