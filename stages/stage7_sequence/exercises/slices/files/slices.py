"""The units of the state that a block of a persistent kernel owns."""


def units_of(block, blocks, state_size):
    """The first unit of a block, and how many units it owns."""
    # BEGIN SOLUTION: return (first, count). Counts differ by one at most, lower blocks own more.
    least, rest = divmod(state_size, blocks)
    return block * least + min(block, rest), least + (block < rest)
    # BEGIN STARTER
    # return 0, state_size
    # END STARTER
    # END SOLUTION
