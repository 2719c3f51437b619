import random

from common.exercises.judge import Failure, require, unchanged

SLOW_STEPS = 10


def check(work):
    unchanged(work, "machine.py", "It is the machine; benchmark.py is yours")
    trial = work.load("machine").trial
    chance = random.Random(work.seed)
    for calls in (15, 24, 31):
        step, queueing, seed = chance.uniform(50, 900), chance.uniform(2, 20), chance.randrange(2**31)
        found = trial(step, queueing, seed, calls)
        honest(found["log"], calls)
        right(found["said"], step + queueing, f"{calls} calls of {step:.0f} us")


def honest(log, calls):
    """Raises `Failure` for what was timed, whatever number came out."""
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
        f"{before} steps ran before the clock was read first, and the first {SLOW_STEPS} are slow: warm up",
    )
    timed, readings = done.count("launch") - before, done.count("clock")
    require(timed >= calls, f"{timed} steps were timed, expected {calls}")
    require(readings >= 2 * calls, f"the clock was read {readings} times: time each of the {calls} steps by itself")


def right(said, want, trial):
    """Raises `Failure` unless the number is the median."""
    if not isinstance(said, int | float):
        raise Failure(f"microseconds returns {said!r:.40}, expected a number")
    close = abs(said - want) <= 0.012 * want
    require(
        close or not said > want,
        f"microseconds says {said:.1f}, expected about {want:.1f} ({trial}): steps that were held up are in it. "
        "Which number of a list do a few large ones not move?",
    )
    require(close, f"microseconds says {said:.1f}, expected about {want:.1f} ({trial})")
