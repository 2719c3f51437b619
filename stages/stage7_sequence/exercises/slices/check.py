import itertools
import random

from common.exercises.judge import require, returned_numbers

SIZES = [(1, 1), (4, 64), (16, 70), (7, 69), (132, 100), (132, 1024), (16, 1)]


def check(work):
    units_of = work.load("slices").units_of
    chance = random.Random(work.seed)
    for blocks, units in [*SIZES, *((chance.randint(2, 40), chance.randint(1, 200)) for _ in range(4))]:
        order = chance.sample(range(blocks), blocks)  # blocks run in any order
        found = {
            block: returned_numbers(units_of(block, blocks, units), 2, f"units_of({block}, {blocks}, {units})", int)
            for block in order
        }
        compare([found[block] for block in range(blocks)], blocks, units)


def compare(owned, blocks, units):
    """Raises `Failure` unless the slices cover the units once, in order, and as evenly as possible."""
    case = f"{units} units, {blocks} blocks"
    owners = [0] * units
    for block, (first, count) in enumerate(owned):
        require(count >= 0, f"{case}: block {block} owns {count} units")
        past = f"{case}: block {block} owns units {first} to {first + count - 1}, past the end of the state"
        require(count == 0 or (first >= 0 and first + count <= units), past)
        for unit in range(first, first + count):
            owners[unit] += 1
    for unit, count in enumerate(owners):
        require(count > 0, f"{case}: no block owns unit {unit}, so its state is never written")
        require(count == 1, f"{case}: {count} blocks own unit {unit}. Each unit has one owner")
    counts = [count for _, count in owned]
    require(
        max(counts) - min(counts) <= 1,
        f"{case}: one block owns {max(counts)} units and another {min(counts)}. All blocks wait for the slowest "
        "at each step",
    )
    require(counts == sorted(counts, reverse=True), f"{case}: blocks with lower numbers should own one unit more")
    for block, ((first, count), (after, _)) in enumerate(itertools.pairwise(owned)):
        require(
            after == first + count,
            f"{case}: block {block} owns {count} units from {first} on, so block {block + 1} begins at "
            f"{first + count}, not at {after}: the slices follow each other, empty ones too",
        )
