"""The memory that calls of the extension keep. The check runs this in the learner's process."""

import sys

from ._C import operators


def kept(calls):
    """How many more blocks of Python's memory are in use after so many calls."""
    operators()
    before = sys.getallocatedblocks()
    for _ in range(calls):
        operators()
    return sys.getallocatedblocks() - before
