"""Stage 9: what each stage learns and how long it takes, trainings whose processes are killed, and scaling."""

from __future__ import annotations

from ...command import Command, argument
from ...study import Study

OUTPUT = argument("--output", help="the record to write, instead of the one in docs/results/studies/")

STUDY = Study(
    "distributed",
    commands=(
        Command(
            "distributed-training",
            "train stage 9's network with every cell and stage",
            "studies.distributed.training:record_training",
            (
                argument("--task", choices=("rows", "digits", "adding"), default="rows", help="what to learn"),
                argument("--steps", type=int, default=1500, help="of each training"),
                OUTPUT,
            ),
            builds=True,
        ),
        Command(
            "distributed-kills",
            "kill a training's processes 50 times",
            "studies.distributed.kills:record_kills",
            (
                argument("--kills", type=int, default=50, help="how often"),
                argument("--seed", type=int, help="of the moments of the kills"),
                OUTPUT,
            ),
            builds=True,
        ),
        Command(
            "distributed-scaling",
            "time stage 9's step on 1, 2, 4, ... GPUs",
            "studies.distributed.scaling:record_scaling",
            (OUTPUT,),
            builds=True,
        ),
    ),
    parts=("training", "kills", "scaling"),
    tables={"training": "studies.distributed.table:training_summary"},
)
