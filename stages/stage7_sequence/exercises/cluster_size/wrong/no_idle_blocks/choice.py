"""Where a sequence runs: in one cluster, in the whole grid, or with one launch per step."""


def choose(gates, state_size, batch, memory, multiprocessors):
    """The rung ("cluster", "grid" or "loop") and its number of blocks."""

    def fits(n):
        units = -(-state_size // n)
        return 4 * (gates * state_size * units + 2 * batch * state_size) <= memory

    for n in (1, 2, 4, 8, 16):
        if n <= min(multiprocessors, state_size) and fits(n):
            return "cluster", n
    return ("grid", multiprocessors) if fits(multiprocessors) else ("loop", 0)
