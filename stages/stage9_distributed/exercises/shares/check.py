import random
from collections import Counter
from itertools import pairwise

import torch

from common.exercises.judge import Failure, require

EPOCHS = 5
# Runs in the learner's folder.
TWO_CALLS = """
import torch
from shares import rows_of
before = torch.get_rng_state()
rows = rows_of(40, 8, 3, 5, 0, 2)
is_own = torch.equal(before, torch.get_rng_state())
first = rows.tolist()
rows.zero_()
tell([is_own, rows_of(40, 8, 3, 5, 0, 2).tolist() == first])
"""


def check(work):
    rows_of = work.load("shares").rows_of
    chance = random.Random(work.seed)
    for world_size in (2, 3, 1, 4):
        samples, seed = chance.randrange(40, 60), chance.randrange(10**6)
        batch_size = 9 if world_size == 4 else chance.randrange(7, 12)  # 9 rows are 3, 2, 2 and 2, not 3, 3, 3 and 0
        samples -= samples % batch_size  # all batches are full
        samples += world_size > 1  # the last one is smaller
        seed *= world_size > 2
        epochs = [one_epoch(rows_of, samples, batch_size, seed, epoch, world_size) for epoch in range(EPOCHS)]
        orders = set(map(tuple, epochs))
        require(len(orders) == EPOCHS, "two epochs have the same order: does it depend on the epoch?")
        require(sorted(epochs[0]) != epochs[0], "the samples come in their own order, expected a random one")
        if world_size == 1:
            kept = [len(neighbours(epochs[0]) & neighbours(other)) for other in epochs[1:]]
            require(
                max(kept) < samples / 4,
                f"of {samples} samples, {max(kept)} have the same neighbour in another epoch: its order is the first "
                "one, moved, expected a new random one",
            )
        again = one_epoch(rows_of, samples, batch_size, seed, 1, world_size)
        require(
            again == epochs[1],
            "the same arguments give other rows in a second call, so a resumed run would train on other samples: "
            "use a generator of your own, with a seed",
        )
        other = one_epoch(rows_of, samples, batch_size, seed + 1000, 0, world_size)
        require(other != epochs[0], "another seed gives the same order")
    is_own, is_new = work.observe(TWO_CALLS).told or (False, False)
    require(
        is_own,
        "rows_of changes torch's global random numbers, which initial parameters and dropout use: use a generator of "
        "your own",
    )
    require(
        is_new,
        "when the caller changes the rows that rows_of returned, the next call with the same arguments returns the "
        "changed rows: rows_of keeps the tensor that it returns. Return a copy",
    )


def one_epoch(rows_of, samples, batch_size, seed, epoch, world_size):
    """The rows of an epoch in the order of their steps. Raises `Failure` unless each sample comes once."""
    where = f"{samples} samples, batches of {batch_size}, {world_size} processes, epoch {epoch}"
    batches = -(-samples // batch_size)
    found = []
    for k in range(batches):
        shares = [
            as_list(rows_of(samples, batch_size, seed, epoch * batches + k, rank, world_size))
            for rank in range(world_size)
        ]
        sizes = [len(share) for share in shares]
        require(max(sizes) - min(sizes) <= 1, f"the shares of batch {k} have {sizes} rows ({where})")
        found += [row for share in shares for row in share]
    counts = Counter(found)
    twice = sum(count > 1 for count in counts.values())
    missing = samples - len(counts)
    require(
        not twice and not missing,
        f"{twice} samples come more than once in an epoch and {missing} never ({where}): do the "
        "processes draw the same order, and is the last, smaller batch among theirs?",
    )
    require(set(counts) == set(range(samples)), f"there are rows that are not samples ({where})")
    return found


def neighbours(order):
    """Each sample with the one after it."""
    return set(pairwise(order))


def as_list(rows):
    if not isinstance(rows, torch.Tensor) or rows.dim() != 1:
        raise Failure(f"rows_of returns {rows!r:.60}, expected a tensor of one dimension")
    return rows.tolist()
