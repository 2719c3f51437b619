"""The options that decide what a training computes. A checkpoint records them, and a resumed run compares its own."""

import hashlib

import torch

from .errors import TrainingError

ROUNDING = ("--stage", "--device", "processes", "torch")  # other ones change the order of additions, not the training


def describe_settings(options, task, processes):
    """The options, by name, that must be equal for a resumed run to compute the same numbers."""
    settings = {
        "--task": options.task,
        "--cell": options.cell,
        "--state-size": options.state_size,
        "--batch-size": options.batch_size,
        "--learning-rate": options.learning_rate,
        "--seed": options.seed,
        "--stage": options.stage,
        "--device": options.device,
        "processes": processes.world_size,
        "torch": torch.__version__,
    }
    if options.task == "adding":
        return {**settings, "--length": options.length}
    return {**settings, "--data of checksum": checksum_of(task)}  # the same file may have another path


def checksum_of(task):
    """The first digits of the checksum of all samples of a task."""
    found = hashlib.sha256()
    for samples in (task.train, task.test):
        for tensor in samples:
            found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()[:12]


def compare_settings(recorded, settings, folder):
    """Raises `TrainingError` if a run with these settings cannot continue the one that wrote a checkpoint.

    Returns what a user should know, a line, if the run can continue, but its sums are rounded in another way.
    """
    if recorded is None:
        return f"the checkpoint in {folder} does not record its options, so they are not compared"
    both = [name for name in settings if name in recorded]  # --length, for one, belongs to one task only
    different = [name for name in both if recorded[name] != settings[name]]
    refused = [name for name in different if name not in ROUNDING]
    if refused:
        then, now = join(recorded, refused), join(settings, refused)
        raise TrainingError(f"--checkpoint {folder} was written with {then}, this run has {now}")
    if different:
        then, now = join(recorded, different), join(settings, different)
        return (
            f"the checkpoint in {folder} was written with {then}, this run has {now}: from here on, sums are rounded "
            "in another way"
        )
    return None


def join(settings, names):
    """Some of the settings, as on a command line."""
    return " ".join(f"{name} {settings[name]}" for name in names)
