"""A model of the time of a sequence: a fixed part, and a part for each step."""

import math


# BEGIN SOLUTION: the model time = fixed + T * step.
def fit(times):
    """The fixed time and the time of a step, in us, from the times of two numbers of steps."""
    (short, low), (long, high) = sorted(times.items())
    step = (high - low) / (long - short)
    return low - short * step, step


def predict(times, T):
    """The expected time of T steps, in us."""
    fixed, step = fit(times)
    return fixed + T * step


def steps_until_small(times, share):
    """The smallest number of steps at which the fixed part takes at most this share of the time."""
    fixed, step = fit(times)
    return max(1, math.ceil(fixed * (1 - share) / (share * step)))


# BEGIN STARTER
# def fit(times):
#     """The fixed time and the time of a step, in us, from the times of two numbers of steps."""
#     return 0.0, 0.0
#
#
# def predict(times, T):
#     """The expected time of T steps, in us."""
#     return math.inf
#
#
# def steps_until_small(times, share):
#     """The smallest number of steps at which the fixed part takes at most this share of the time."""
#     return 0
# END STARTER
# END SOLUTION
