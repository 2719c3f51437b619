"""Starts processes that train together, as torchrun does, but forked from one that has imported torch already."""

from __future__ import annotations

import logging
import multiprocessing
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ...paths import ROOT

START_METHOD = "forkserver"
PRELOADED = "common.check.distributed.workers"
LOGGERS = ("torch.distributed.elastic", "torch.multiprocessing.spawn")


def launch(function: Callable, count: int, *arguments: object, logs: Path, restarts: int = 0) -> list[Any]:
    """Calls a function in `count` processes and returns their results, by rank.

    The processes are torchrun's, and so is the restart after one has died, at most `restarts` times. Their output
    goes to files in `logs` (`read_output`). torchrun would start a new Python for each process, which takes seconds.
    Raises `ChildFailedError` if a process fails.
    """
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))  # where the processes find this package
    multiprocessing.set_forkserver_preload([PRELOADED])
    logs.mkdir(parents=True, exist_ok=True)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id="check",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.05,
        start_method=START_METHOD,
        logs_specs=DefaultLogsSpecs(log_dir=str(logs), redirects=Std.ALL),
    )
    with quiet():
        results = elastic_launch(config, function)(*arguments)
    return [results[rank] for rank in range(count)]


@contextmanager
def quiet():
    """Without the messages of torchrun about processes that have died."""
    before = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def read_output(logs: Path, rank: int = 0) -> list[str]:
    """What a process printed, a text for each attempt."""
    attempts = sorted(logs.glob(f"*/attempt_*/{rank}/stdout.log"), key=lambda path: int(path.parts[-3].split("_")[1]))
    return [path.read_text() for path in attempts]
