"""Trains a small network with the cell of any stage, in one process or in many.

In one process:   python stages/stage9_distributed/train.py --task rows --cell lltm --stage 1
In two:           torchrun --standalone --nproc-per-node 2 stages/stage9_distributed/train.py --task rows
"""

import argparse
import importlib.util
import math
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

if not __package__:  # started as a script: the folder of the stage becomes a package
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = Path(__file__).resolve().parent.name

import torch

from .checkpoint import Checkpoints
from .curves import write_history
from .errors import LostContact, TrainingError
from .model import CELLS, STAGES, make_network
from .processes import Processes, stop_torchrun
from .settings import describe_settings
from .tasks import make_task
from .training import Training

LARGEST = 10**7  # of any number; a size beyond it does not fit into memory


def parse(arguments):
    """The options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="train.py"
    )
    add = parser.add_argument
    add(
        "--task",
        choices=("digits", "rows", "adding"),
        default="rows",
        help="handwritten digits, one pixel a step (64 steps) or one row a step (8); or the adding problem",
    )
    add("--cell", choices=CELLS, default="lltm")
    add("--stage", choices=STAGES, default="1", help="whose cell; nn is torch.nn.LSTM or torch.nn.GRU")
    add("--state-size", type=positive, default=64)
    add("--length", type=positive, default=50, help="steps of the adding problem")
    add("--data", metavar="FILE", help="another file of digits in the format of scikit-learn's digits.csv.gz")
    add("--steps", type=positive, default=1000, help="updates of the parameters")
    add("--batch-size", type=positive, default=64, help="samples of an update, in all processes together")
    add("--learning-rate", type=positive_number, default=3e-3)
    add("--seed", type=seed, default=0, help="of parameters, order of samples, and the adding problem's numbers")
    add("--every", type=positive, default=100, help="steps from one evaluation and checkpoint to the next")
    add("--checkpoint", metavar="DIR", help="keeps checkpoints there, and continues with the newest one")
    add("--output", metavar="DIR", help="writes history.json and the picture loss.svg there at the end")
    add("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    add("--timeout", type=seconds, default=300.0, help="seconds that a process waits for the others")
    return parser.parse_args(arguments)


def positive(text):
    """An integer above 0, for argparse."""
    if not 0 < (number := int(text)) <= LARGEST:
        raise ValueError
    return number


def positive_number(text):
    """A finite number above 0, for argparse."""
    if not 0 < (number := float(text)) < math.inf:
        raise ValueError
    return number


def seconds(text):
    """A time that a process can wait, for argparse."""
    if not 0 < (number := float(text)) <= LARGEST:
        raise ValueError
    return number


def seed(text):
    """An integer that a generator of torch accepts, also with the number of an epoch added, for argparse."""
    if not -(2**62) <= (number := int(text)) <= 2**62:
        raise ValueError
    return number


def prepare(options, processes):
    """What a process needs before it meets the others: its device, the samples, and the network."""
    device = processes.device(options.device)
    if options.output and processes.rank == 0:
        prepare_output(options.output)
    with memory_for(f"--task adding --length {options.length}"):
        task = make_task(options.task, length=options.length, seed=options.seed, data=options.data)
    torch.manual_seed(options.seed)
    with memory_for(f"--state-size {options.state_size}"):
        network = make_network(task, options.cell, options.stage, options.state_size)
    return device, task, network


@contextmanager
def memory_for(what):
    """Raises `TrainingError` if there is not enough memory; torch has no class for this error on a CPU."""
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        raise TrainingError(f"{what}: this machine has not enough memory") from None


def prepare_output(folder):
    """Raises `TrainingError` now, and not at the end of the training, if its results cannot be written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise TrainingError("--output draws a picture: pip install matplotlib")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TrainingError(f"--output {folder}: {error.strerror}") from None


def facts_of(options):
    """What must be the same in all processes, because the same numbers must result."""
    return {
        "torch": torch.__version__,
        **{f"--{name.replace('_', '-')}": value for name, value in vars(options).items()},
    }


def train(options, processes):
    """Trains. Returns the exit status."""
    prepared, settings, problem = None, {}, None
    try:
        prepared = prepare(options, processes)
        settings = describe_settings(options, prepared[1], processes)
    except TrainingError as error:
        problem = str(error)
    with processes.connected({**facts_of(options), **settings}, problem):
        device, task, network = prepared
        training = Training(
            task, network, processes, device,
            batch_size=options.batch_size, learning_rate=options.learning_rate, seed=options.seed,
        )  # fmt: skip
        with open_checkpoints(options, processes) as checkpoints:
            if checkpoints:
                resume(training, checkpoints, settings, options.steps)
            saved = training.run(options.steps, options.every, checkpoints, settings)
        if options.output and processes.rank == 0:
            write_output(options, training.history)
        return 0 if saved else 1


@contextmanager
def open_checkpoints(options, processes):
    """The checkpoints of a run, or None without `--checkpoint`."""
    if not options.checkpoint:
        yield None
        return
    checkpoints = Checkpoints(options.checkpoint, processes.limit)
    try:
        yield checkpoints
    finally:
        checkpoints.close()


def resume(training, checkpoints, settings, steps):
    """Continues with the newest checkpoint, if there is one, and says so."""
    if training.resume(checkpoints, settings) and training.processes.rank == 0:
        print(f"continues after step {training.step}", flush=True)
        if training.step > steps:
            print(f"--steps {steps}: the checkpoint has more steps already, so nothing is trained", flush=True)


def write_output(options, history):
    """Writes the results. The training is over, and its checkpoints are written."""
    try:
        write_history(options.output, history, f"{options.task}, {options.cell}, stage {options.stage}")
    except OSError as error:
        raise TrainingError(f"--output {options.output}: {error.strerror}") from None


def main(arguments=None):
    """Runs the program. An error that the user can correct becomes a line, which the first process prints.

    Such an error would come again, so torchrun does not get the chance to start the processes again.
    """
    try:
        options = parse(arguments)
    except SystemExit as ended:
        if ended.code:
            stop_torchrun()
        raise
    rank = 0
    try:
        processes = Processes.from_environment(options.timeout)
        rank = processes.rank
        return train(options, processes)
    except TrainingError as error:
        may_go_away = isinstance(error, LostContact)
        if rank == 0 or may_go_away:
            print(f"error: {error}", file=sys.stderr, flush=True)
        if not may_go_away:
            stop_torchrun()
        return 1


if __name__ == "__main__":
    sys.exit(main())
