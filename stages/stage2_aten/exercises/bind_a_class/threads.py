"""Adds rows to objects from several threads, in the learner's process."""

from concurrent.futures import ThreadPoolExecutor


def added_by_threads(x, threads, calls, objects):
    """Mean and number of rows of each of several objects, to which each thread has added x so many times."""
    from . import _C

    def add(one):
        for _ in range(calls):
            one.add(x)

    found = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(objects):
            one = _C.RunningMean(x.size(1))
            list(pool.map(add, [one] * threads))
            found.append([one.mean, one.rows])
    return found
