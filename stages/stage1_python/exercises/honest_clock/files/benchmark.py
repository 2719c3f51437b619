"""Measures how long a step takes."""

import statistics


def microseconds(machine, calls):
    """The median time of a step in microseconds, from `calls` steps on a fresh machine (machine.py)."""
    # BEGIN SOLUTION: these lines contain three mistakes.
    for _ in range(10):  # warm up
        machine.launch()
    machine.synchronize()

    samples = []
    for _ in range(calls):
        start = machine.clock()
        machine.launch()
        machine.synchronize()
        samples.append(machine.clock() - start)
    return statistics.median(samples)
    # BEGIN STARTER
    # samples = []
    # for _ in range(calls):
    #     start = machine.clock()
    #     machine.launch()
    #     samples.append(machine.clock() - start)
    # return statistics.mean(samples)
    # END STARTER
    # END SOLUTION
