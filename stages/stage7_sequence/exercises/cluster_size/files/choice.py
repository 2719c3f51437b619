"""Where a sequence runs: in one cluster, in the whole grid, or with one launch per step."""


def choose(gates, state_size, batch, memory, multiprocessors):
    """The rung ("cluster", "grid" or "loop") and its number of blocks."""
    # BEGIN SOLUTION: the smallest cluster whose blocks fit, else the grid if its blocks fit, else the loop.

    def fits(blocks):
        units = -(-state_size // blocks)
        return 4 * (units * gates * state_size + 2 * batch * state_size) <= memory

    for blocks in (1, 2, 4, 8, 16):
        if blocks <= multiprocessors and fits(blocks):
            return "cluster", blocks
    return ("grid", multiprocessors) if fits(multiprocessors) else ("loop", 0)
    # BEGIN STARTER
    # return "loop", 0
    # END STARTER
    # END SOLUTION
