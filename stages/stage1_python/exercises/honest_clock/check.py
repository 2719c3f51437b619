import random

from common.exercises.judge import Failure, require, unchanged

SLOW_STEPS = 10


def check(work):
    unchanged(work, "machine.py", "Edit only benchmark.py")
    trial = work.load("machine").trial
    chance = random.Random(work.seed)
    for calls in (15, 24, 31):
        step, queueing, seed = chance.uniform(50, 900), chance.uniform(2, 20), chance.randrange(2**31)
        found = trial(step, queueing, seed, calls)
        honest(found["log"], calls)
        right(found["said"], step + queueing, f"{calls} calls of {step:.0f} us")


def honest(log, calls):
    """Raises `Failure` if the wrong work was timed, whatever the resulting number."""
    done = [what for what, _ in log]
    require("clock" in done, "the clock was never read")
    for what, waiting in log:
        steps = "a step was" if waiting == 1 else f"{waiting} steps were"
        require(
            what != "clock" or not waiting,
            f"the clock was read while {steps} still in the queue: this times the queueing, not the step. "
            "Synchronise before each reading of the clock",
        )
    before = done[: done.index("clock")].count("launch")
    require(
        before >= SLOW_STEPS,
        f"{before} steps ran before the clock was first read, but the first {SLOW_STEPS} are slow: warm up",
    )
    timed, readings = done.count("launch") - before, done.count("clock")
    require(timed >= calls, f"{timed} steps were timed, expected {calls}")
    require(readings >= 2 * calls, f"the clock was read {readings} times: time each of the {calls} steps separately")


def right(said, want, trial):
    """Raises `Failure` unless the number is the median."""
    if not isinstance(said, int | float):
        raise Failure(f"microseconds returns {said!r:.40}, expected a number")
    close = abs(said - want) <= 0.012 * want
    require(
        close or not said > want,
        f"microseconds returns {said:.1f}, expected about {want:.1f} ({trial}): it includes delayed steps. "
        "Which average is not changed by a few large numbers?",
    )
    require(close, f"microseconds returns {said:.1f}, expected about {want:.1f} ({trial})")
