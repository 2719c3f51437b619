"""Calls smooth twice before the first backward, and twice with the same list. It runs in the learner's process."""

import sys
from pathlib import Path

import numpy
import torch


def gradients(signal, first, second):
    """The gradient of smooth(signal, first), after a call with another kernel, twice; and `first` afterwards."""
    from .smooth import smooth

    kernel = list(first)
    y = smooth(signal, kernel)
    smooth(signal, list(second))
    (first_time,) = torch.autograd.grad(y.sum(), signal)
    (second_time,) = torch.autograd.grad(smooth(signal, kernel).sum(), signal)
    return [first_time, second_time], kernel


def calls_numpy(signal, kernel):
    """Whether smooth calls numpy.convolve, or numpy.correlate, which it consists of."""
    from .smooth import smooth

    called, home = set(), Path(numpy.__file__).parent

    def profile(frame, event, argument):
        if event == "call" and home in Path(frame.f_code.co_filename).parents:
            called.add(frame.f_code.co_name)

    sys.setprofile(profile)
    try:
        smooth(signal, list(kernel))
    finally:
        sys.setprofile(None)
    return not called.isdisjoint({"convolve", "correlate"})
