"""A machine to time steps on. Do not change this file; edit benchmark.py."""

import random

SLOW_STEPS = 10  # the first steps of a process


class Machine:
    """A model of a GPU: a queue, a clock in microseconds that advances only when something runs, and a log."""

    def __init__(self, step: float, queueing: float, seed: int) -> None:
        """A machine on which a step takes `step` microseconds, and adding it to the queue takes `queueing`."""
        self.step, self.queueing, self.chance = step, queueing, random.Random(seed)
        self.offset, self.now = self.chance.randrange(6), 0.0
        self.finished = []  # the time at which each step finishes
        self.log = []

    def clock(self) -> float:
        """The time, in microseconds."""
        self.note("clock")
        return self.now

    def launch(self) -> None:
        """Puts a step into the queue and returns."""
        self.now += self.queueing
        took = self.step * self.chance.uniform(0.99, 1.01)
        if len(self.finished) < SLOW_STEPS:
            took *= 30  # loading code and requesting memory takes time
        elif (len(self.finished) + self.offset) % 6 == 0:
            took *= 20  # other work delays this step
        self.finished.append(max(self.now, self.finished[-1] if self.finished else 0.0) + took)
        self.note("launch")

    def synchronize(self) -> None:
        """Waits until the queue is empty."""
        self.note("synchronize")
        self.now = max(self.now, self.finished[-1] if self.finished else 0.0)

    def note(self, what: str) -> None:
        """Adds a call to the log, with the number of steps in the queue and the time."""
        self.log.append([what, self.in_queue(), self.now])

    def in_queue(self) -> int:
        """How many steps are not finished."""
        return sum(end > self.now for end in self.finished)


def trial(step: float, queueing: float, seed: int, calls: int) -> dict:
    """The benchmark's result for a machine, and the machine's log of its calls."""
    from .benchmark import microseconds

    machine = Machine(step, queueing, seed)
    return {"said": microseconds(machine, calls), "log": machine.log}
