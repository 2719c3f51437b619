"""A machine to time steps on. Leave this file as it is: benchmark.py is yours."""

import random

SLOW_STEPS = 10  # the first ones of a process


class Machine:
    """A GPU in small: a queue, a clock in microseconds that runs only when something is done, and a log."""

    def __init__(self, step: float, queueing: float, seed: int) -> None:
        """A machine on which a step takes `step` microseconds, and putting it into the queue `queueing`."""
        self.step, self.queueing, self.chance = step, queueing, random.Random(seed)
        self.offset, self.now = self.chance.randrange(6), 0.0
        self.finished = []  # when each step is, or will be, finished
        self.log = []

    def clock(self) -> float:
        """The time, in microseconds."""
        self.log.append(["clock", self.in_queue()])
        return self.now

    def launch(self) -> None:
        """Puts a step into the queue and returns."""
        self.now += self.queueing
        took = self.step * self.chance.uniform(0.99, 1.01)
        if len(self.finished) < SLOW_STEPS:
            took *= 30  # code is loaded, memory is fetched
        elif (len(self.finished) + self.offset) % 6 == 0:
            took *= 20  # somebody else was quicker
        self.finished.append(max(self.now, self.finished[-1] if self.finished else 0.0) + took)
        self.log.append(["launch", self.in_queue()])

    def synchronize(self) -> None:
        """Waits until the queue is empty."""
        self.log.append(["synchronize", self.in_queue()])
        self.now = max(self.now, self.finished[-1] if self.finished else 0.0)

    def in_queue(self) -> int:
        """How many steps are not finished."""
        return sum(end > self.now for end in self.finished)


def trial(step: float, queueing: float, seed: int, calls: int) -> dict:
    """What the benchmark says about a machine, and what it did there."""
    from .benchmark import microseconds

    machine = Machine(step, queueing, seed)
    return {"said": microseconds(machine, calls), "log": machine.log}
