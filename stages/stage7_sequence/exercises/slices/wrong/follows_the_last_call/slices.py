"""The units of the state that a block of a persistent kernel owns."""


end = 0  # of the last slice


def units_of(block, blocks, state_size):
    """The first unit of a block, and how many units it owns."""
    global end
    first = end if block else 0
    count = -(-(state_size - first) // (blocks - block))
    end = first + count
    return first, count
