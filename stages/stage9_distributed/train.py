"""Trains a small network with the cell of any stage, in one process or in many.

In one process:   python stages/stage9_distributed/train.py --task rows --cell lltm --stage 1
In two:           torchrun --standalone --nproc-per-node 2 stages/stage9_distributed/train.py --task rows
"""

import argparse
import sys
from pathlib import Path

if not __package__:  # started as a script: the folder of the stage becomes a package
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = Path(__file__).resolve().parent.name

import torch

from .checkpoint import Checkpoints
from .curves import write_history
from .errors import LostContact, TrainingError
from .model import CELLS, STAGES, make_network
from .processes import Processes
from .tasks import make_task
from .training import Training


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
    add("--learning-rate", type=float, default=3e-3)
    add("--seed", type=int, default=0, help="of parameters, order of samples, and the adding problem's numbers")
    add("--every", type=positive, default=100, help="steps from one evaluation and checkpoint to the next")
    add("--checkpoint", metavar="DIR", help="keeps checkpoints there, and continues with the newest one")
    add("--output", metavar="DIR", help="writes history.json and the picture loss.svg there at the end")
    add("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    add("--timeout", type=float, default=300.0, help="seconds that a process waits for the others")
    return parser.parse_args(arguments)


def positive(text):
    """An integer above 0, for argparse."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


def prepare(options, processes):
    """What a process needs before it meets the others: its device, the samples, and the network."""
    device = processes.device(options.device)
    task = make_task(options.task, length=options.length, seed=options.seed, data=options.data)
    torch.manual_seed(options.seed)
    network = make_network(task, options.cell, options.stage, options.state_size)
    return device, task, network


def facts_of(options):
    """What must be the same in all processes, because the same numbers must result."""
    return {
        "torch": torch.__version__,
        **{f"--{name.replace('_', '-')}": value for name, value in vars(options).items()},
    }


def train(options, processes):
    """Trains. Returns the exit status."""
    prepared, problem = None, None
    try:
        prepared = prepare(options, processes)
    except TrainingError as error:
        problem = str(error)
    with processes.connected(facts_of(options), problem):
        device, task, network = prepared
        training = Training(
            task, network, processes, device,
            batch_size=options.batch_size, learning_rate=options.learning_rate, seed=options.seed,
        )  # fmt: skip
        checkpoints = Checkpoints(options.checkpoint, processes.limit) if options.checkpoint else None
        if checkpoints and training.resume(checkpoints) and processes.rank == 0:
            print(f"continues after step {training.step}", flush=True)
        saved = training.run(options.steps, options.every, checkpoints)
        if options.output and processes.rank == 0:
            write_history(options.output, training.history, f"{options.task}, {options.cell}, stage {options.stage}")
        return 0 if saved else 1


def main(arguments=None):
    """Runs the program. An error that the user can correct becomes a line, which the first process prints."""
    options = parse(arguments)
    processes = Processes.from_environment(options.timeout)
    try:
        return train(options, processes)
    except TrainingError as error:
        if processes.rank == 0 or isinstance(error, LostContact):
            print(f"error: {error}", file=sys.stderr, flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
