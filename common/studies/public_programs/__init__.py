"""Public CUDA programs on the emulator: which of them build, and whether they end with success.

`make public-programs DIR=...` names a folder that contains clones of the repositories of programs.py, or of some of
them. Most programs compare their own results with those of a loop on the CPU or of a library, and their exit status
says whether they agree. Programs that would compute for hours on a CPU get smaller sizes or fewer repetitions;
programs.py and book.py have every text that is replaced. Nothing of the repositories is kept.
"""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

STUDY = Study(
    "public_programs",
    commands=(
        Command(
            "public-programs",
            "run public programs on the emulator: DIR=folder with clones of their repositories",
            "studies.public_programs.recorder:record_programs",
            (
                argument("folder", help="the folder with the clones, or with some of them"),
                argument("--repository", help="only the programs of this one"),
                argument("--only", help="only programs whose name contains this; nothing is recorded then"),
            ),
            builds=True,
            variables={"folder": "DIR", "--only": "ONLY"},
        ),
    ),
    tables={"public-programs": "studies.public_programs.table:public_programs_table"},
)
