"""Which wheels run with which Python and torch, and the same for stage 8's operators in torch's stable ABI."""

from __future__ import annotations

import sys

from ...command import Command, argument
from ...study import Study

TORCHES = argument(
    "--torch",
    dest="torches",
    nargs="+",
    help="versions of torch; by default the oldest supported one and the installed one",
)

STUDY = Study(
    "wheels",
    commands=(
        Command(
            "wheels",
            'test which wheel runs with PYTHONS="..." and TORCHES="2.11 ..."',
            "studies.wheels.recorder:record_wheels",
            (
                argument("--python", dest="pythons", nargs="+", default=[sys.executable], help="Pythons to try"),
                TORCHES,
            ),
            builds=True,
            variables={"--python": "PYTHONS", "--torch": "TORCHES"},
        ),
        Command(
            "wheels-operators",
            "the same for stage 8's operators in the stable ABI",
            "studies.wheels.operators:try_operators",
            (TORCHES,),
            builds=True,
            variables={"--torch": "TORCHES"},
        ),
    ),
    parts=("", "operators"),
    tables={"wheels": "studies.wheels.table:wheels_table"},
)
