from common.exercises.judge import require

KB = 1024
# gates, state_size, batch, memory of a block, multiprocessors; the choice; what to notice if it differs
TABLE = [
    ((4, 64, 1, 227 * KB, 132), ("cluster", 1), "the smallest number of blocks that fits is enough"),
    ((3, 64, 1, 227 * KB, 132), ("cluster", 1), "the smallest number of blocks that fits is enough"),
    ((4, 128, 1, 227 * KB, 132), ("cluster", 2), "the smallest number of blocks that fits is enough"),
    ((4, 256, 8, 227 * KB, 132), ("cluster", 8), "the state does not shrink with the number of blocks"),
    ((4, 70, 1, 4 * (5 * 4 * 70 + 140), 132), ("cluster", 16), "a block that needs all of its memory still fits"),
    ((4, 70, 1, 4 * (5 * 4 * 70 + 140) - 1, 132), ("grid", 132), "the block with the most units owns 5 units, not 4"),
    ((4, 64, 32, 4 * (16 * 256 + 2 * 32 * 64), 132), ("cluster", 4), "both states count, for all rows of the batch"),
    ((4, 512, 1, 227 * KB, 132), ("grid", 132), "a cluster has 16 blocks at most"),
    ((4, 512, 32, 227 * KB, 132), ("grid", 132), "a cluster has 16 blocks at most"),
    ((4, 1024, 1, 227 * KB, 132), ("grid", 132), "a cluster has 16 blocks at most"),
    ((4, 1024, 32, 227 * KB, 132), ("loop", 0), "the grid does not fit either"),
    ((4, 512, 1, 99 * KB, 84), ("grid", 84), "a GPU with less shared memory"),
    ((4, 1024, 1, 99 * KB, 84), ("loop", 0), "the grid does not fit either"),
    ((4, 256, 1, 99 * KB, 6), ("loop", 0), "there are fewer multiprocessors than blocks of a cluster"),
    ((4, 3, 1, 100, 132), ("cluster", 4), "a cluster may have more blocks than there are units"),
    ((4, 256, 8, 227 * KB, 8), ("cluster", 8), "a cluster may have as many blocks as there are multiprocessors"),
    (
        (4, 256, 1, 99 * KB, 12),
        ("grid", 12),
        "12 blocks fit, although a cluster of 8 is too small and 16 do not exist",
    ),
    ((3, 128, 1, 200 * KB, 132), ("cluster", 1), "three gates have fewer weights than four"),
    ((1, 256, 1, 99 * KB, 132), ("cluster", 4), "one gate has fewer weights than four"),
]


def check(work):
    choose = work.load("choice").choose
    for given, want, notice in TABLE:
        got = choose(*given)
        got = tuple(got) if isinstance(got, list) else got
        gates, units, batch, memory, count = given
        require(
            got == want,
            f"{gates} gates, {units} units, batch {batch}, {memory} bytes per block, {count} multiprocessors: "
            f"got {got!r:.60}, expected {want}. Remember: {notice}",
        )
