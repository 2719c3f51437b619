import math
import random
import statistics

from common.exercises.judge import Failure, require, unchanged

SLOW_STEPS = 10


def check(work):
    unchanged(work, "machine.py", "Edit only benchmark.py")
    trial = work.load("machine").trial
    chance = random.Random(work.seed)
    for calls in (15, 24, 31, 4):
        step, queueing, seed = chance.uniform(50, 900), chance.uniform(2, 20), chance.randrange(2**31)
        found = trial(step, queueing, seed, calls)
        right(found["said"], honest(found["log"], calls), f"{calls} calls of {step:.0f} us")


def honest(log, calls):
    """The times of the steps that were timed. Raises `Failure` if it was the wrong work, whatever the result."""
    require(any(what == "clock" for what, *_ in log), "the clock was never read")
    for what, waiting, _ in log:
        steps = "a step was" if waiting == 1 else f"{waiting} steps were"
        require(
            what != "clock" or not waiting,
            f"the clock was read while {steps} still in the queue: this times the queueing, not the step. "
            "Synchronise before each reading of the clock",
        )
    samples, launched, since, last = [], 0, 0, None  # (steps launched before the sample, its time)
    for what, _, now in log:
        if what == "launch":
            launched, since = launched + 1, since + 1
        elif what == "clock":
            if last is not None and since == 1:
                samples.append((launched - 1, now - last))
            since, last = 0, now
    require(len(samples) >= calls, f"{len(samples)} steps were timed one by one, expected {calls}")
    before, _ = samples[-calls]
    require(
        before >= SLOW_STEPS,
        f"{before} steps ran before the first timed step, but the first {SLOW_STEPS} are slow: warm up",
    )
    return [time for _, time in samples[-calls:]]


def right(said, times, trial):
    """Raises `Failure` unless the number is the median of the times."""
    if not isinstance(said, int | float):
        raise Failure(f"microseconds returns {said!r:.40}, expected a number")
    want = statistics.median(times)
    require(
        said <= 1.012 * want,
        f"microseconds returns {said:.1f}, expected about {want:.1f} ({trial}): it includes delayed steps. "
        "Which average is not changed by a few large numbers?",
    )
    require(
        math.isclose(said, want, rel_tol=1e-9),
        f"microseconds returns {said:.3f}, but the median of the times that it measured is {want:.3f} ({trial}). "
        "Half of the times are smaller, and half are larger; of an even number of times, the median is the mean of "
        "the two in the middle",
    )
