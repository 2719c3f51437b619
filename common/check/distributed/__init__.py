"""Training in two processes. `make stage-9`: every check of stage 9, one line each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ...cell.case import fresh_seed
from ..lines import Check, run_check
from ..subject import Result
from .faults import differences, final_state, list_steps, train_and_kill
from .launching import launch, read_output
from .workers import evaluation, gradients, train

ROUNDING = 1e-12  # of sums in float64, relative to the largest gradient
SHORT = ["--steps", "200", "--every", "20", "--state-size", "16", "--timeout", "60"]
LONGEST_LIFE = 0.5  # seconds; a training of this many steps takes longer


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="lltm-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def equal_gradients() -> str:
    """Gradients of a batch that two processes share."""
    furthest = 0.0
    for cell, stage, size in (("lltm", "1", 64), ("lstm", "nn", 64), ("lltm", "1", 5), ("gru", "nn", 1)):
        with scratch() as folder:
            for equal, off in launch(gradients, 2, cell, stage, size, logs=folder):
                batch = f"{cell} of stage {stage}, {size} samples"
                assert equal, f"the gradients are not the sum of those of the two shares ({batch})"
                assert off <= ROUNDING, f"the gradients are off by {off:.1e} from those of the whole batch ({batch})"
                furthest = max(furthest, off)
    return f"the sum of both shares', bit for bit; within {furthest:.0e} of the whole batch's"


def equal_evaluation() -> str:
    """Each test sample counts once."""
    with scratch() as folder:
        for (loss, accuracy), (whole_loss, whole_accuracy) in launch(evaluation, 2, logs=folder):
            assert accuracy == whole_accuracy, f"two processes count {accuracy:.4%} correct, one {whole_accuracy:.4%}"
            assert abs(loss - whole_loss) <= ROUNDING, f"the loss of two processes is {loss}, of one {whole_loss}"
    return "loss and accuracy of two processes are those of one"


def resumes_after_kills() -> str:
    """Weights, optimizer and losses after two kills."""
    seed = int(torch.randint(10**6, ()))
    with scratch() as folder:
        launch(train, 2, str(folder / "undisturbed"), SHORT, logs=folder / "logs")
        moments = train_and_kill(folder / "killed", 2, seed, SHORT, LONGEST_LIFE)
        assert moments, "the training ended before a process was killed"
        different = differences(folder / "killed", folder / "undisturbed")
        assert not different, f"after {len(moments)} kills, these differ: {', '.join(different)}"
    return f"{len(moments)} killed; weights, optimizer and losses are equal, bit for bit"


def damaged_checkpoint() -> str:
    """The newest checkpoint is torn."""
    with scratch() as folder:
        launch(train, 2, str(folder), SHORT, logs=folder / "logs")
        _, wanted = final_state(folder)
        newest = max((folder / "checkpoints").glob("step-*"))
        largest = max(newest.iterdir(), key=lambda path: path.stat().st_size)
        with largest.open("r+b") as file:
            file.truncate(largest.stat().st_size // 2)
        before = min(list_steps(folder / "checkpoints"))
        launch(train, 2, str(folder), SHORT, logs=folder / "again")
        said = read_output(folder / "again")[0]
        assert "is damaged and is not used" in said, f"the damaged checkpoint was used: {said}"
        assert f"continues after step {before}" in said, f"the checkpoint before it was not used: {said}"
        assert final_state(folder)[1] == wanted, "the losses differ from those of the first time"
    return f"the one before it is used, of step {before}"


CHECKS = (
    Check("gradients of a shared batch", equal_gradients),
    Check("evaluation with shared samples", equal_evaluation),
    Check("processes killed at random", resumes_after_kills),
    Check("a torn checkpoint", damaged_checkpoint),
)


def check_distributed(seed: int | None = None) -> list[Result]:
    """Runs every check and prints its result; without a seed, processes are killed at other moments each time."""
    seed = fresh_seed() if seed is None else seed
    return [run_check(9, one, seed) for one in CHECKS]
