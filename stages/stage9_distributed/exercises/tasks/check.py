import random

import torch

from common.exercises.judge import Failure, require, returned_numbers, same

COUNT = 3000
# Runs in the learner's folder.
KEEPS_RANDOM_NUMBERS = """
import torch
from tasks import adding
before = torch.get_rng_state()
adding(4, 5, 0)
tell(torch.equal(before, torch.get_rng_state()))
"""


def check(work):
    tasks = work.load("tasks")
    numbers, chance = work.numbers(), random.Random(work.seed)
    for steps, width in ((64, 1), (8, 8), (4, 16), (3, 5), (1, 6)):
        pixels = torch.rand(7, steps * width, generator=numbers, dtype=torch.float64)
        want = torch.stack([pixels[:, k : k + width] for k in range(0, steps * width, width)], dim=1)
        same("the sequences", tasks.read_pixels(pixels, width), want, f"{steps} steps of {width} pixels")
    for length in (2, 5, 8):
        compare_samples(tasks.adding, length, chance.randrange(10**6))
    require(
        work.observe(KEEPS_RANDOM_NUMBERS).told,
        "adding changes torch's global random numbers, which initial parameters use: use a generator of your own",
    )
    for count in (1, 3, 5, 100):
        targets = 1 + torch.rand(count, generator=numbers, dtype=torch.float64).pow(3)
        compare_loss(tasks.constant_loss(targets), targets)


def compare_samples(adding, length, seed):
    """Raises `Failure` unless these are samples of the adding problem."""
    where = f"{COUNT} sequences of {length} steps"
    inputs, targets = tensors(adding(COUNT, length, seed), length, where)
    values, marks = inputs.double().unbind(dim=2)
    require(((marks == 0) | (marks == 1)).all(), f"there are marks other than 0 and 1 ({where})")
    wrong = (marks.sum(dim=1) != 2).sum().item()
    require(not wrong, f"{wrong} of {where} do not have two marks")
    same("the targets", targets.double(), (values * marks).sum(dim=1), where, tolerance_=1e-6)
    require(values.min() >= 0 and values.max() <= 1, f"there are numbers below 0 or above 1 ({where})")
    spread = values.var().item()
    require(abs(values.mean() - 0.5) < 0.03 and abs(spread - 1 / 12) < 0.01, f"the numbers are not uniform ({where})")
    require(
        abs(targets.double().mean() - 1) < 0.06,
        f"the mean of the targets is {targets.double().mean():.2f}, expected about 1: "
        "do the marks depend on the numbers?",
    )
    first, second = marks.topk(2, dim=1).indices.sort(dim=1).values.unbind(dim=1)
    found = torch.bincount(first * length + second, minlength=length**2).view(length, length)
    pairs = length * (length - 1) // 2
    rare = found[torch.ones(length, length).triu(1).bool()].min().item()
    require(
        rare > 0.5 * COUNT / pairs,
        f"one pair of steps is marked {rare} times, expected about {COUNT // pairs} ({where})",
    )
    again, other = adding(COUNT, length, seed), adding(COUNT, length, seed + 1)
    require(torch.equal(again[0], inputs), "the same seed gives other samples in a second call")
    require(not torch.equal(other[0], inputs), "another seed gives the same samples")


def tensors(found, length, where):
    """The inputs and targets that `adding` returns. Raises `Failure` unless they are tensors of the right shapes."""
    if not isinstance(found, tuple | list) or len(found) != 2 or not all(torch.is_tensor(one) for one in found):
        raise Failure(f"adding returns {found!r:.60}, expected two tensors")
    inputs, targets = found
    want = (COUNT, length, 2), (COUNT,)
    shapes = tuple(inputs.shape), tuple(targets.shape)
    require(
        shapes == want,
        f"adding returns the shapes {shapes[0]} and {shapes[1]}, expected {want[0]} and {want[1]} ({where})",
    )
    return inputs, targets


def compare_loss(found, targets):
    (got,) = returned_numbers([found], 1, "constant_loss")
    want = (targets - targets.mean()).square().mean().item()
    notes = {
        "the loss of the answer 0": targets.square().mean(),
        "the loss of the median": (targets - targets.median()).square().mean(),
        "a sum divided by N - 1": targets.var() if len(targets) > 1 else torch.tensor(float("nan")),
    }
    if abs(got - want) <= 1e-9:
        return
    note = next((f": this is {what}" for what, value in notes.items() if abs(got - value.item()) < 1e-9), "")
    raise Failure(f"the loss of the best constant is {got:.6f}, expected {want:.6f} ({len(targets)} targets){note}")
