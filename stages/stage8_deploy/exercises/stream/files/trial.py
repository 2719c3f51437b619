"""What `make check` calls. Do not change this file; edit streams.py."""

import gc
import weakref

from .streams import Refused, Streams


class ModelFailure(Exception):
    """What `compute` raises in a request that should fail."""


class State(tuple):
    """The numbers of a stream's requests. A state is any object, so it may also be false, as 0 is."""

    def __bool__(self):
        return False


def trial(most, expiry, requests, count):
    """What each of `count` requests gets: the numbers of its stream's requests so far, or a text.

    A request has a number, a stream, start, end and fails (True, or "refuses"). It arrives `after` seconds after the
    one before, and takes `takes` seconds after the requests `inside` of it.
    """
    time = [0.0]
    streams = Streams(State(), most, expiry, lambda: time[0])
    results = ["nothing: it is not sent"] * count  # if the request that it is inside of is refused

    def run(request):
        def compute(state):
            for one in request["inside"]:
                run(one)
            time[0] += request["takes"]
            if request["fails"]:
                raise Refused(429) if request["fails"] == "refuses" else ModelFailure
            numbers = State((*state, request["number"]))
            return list(numbers), numbers

        time[0] += request["after"]
        results[request["number"]] = describe(streams, request, compute)

    for request in requests:
        run(request)
    return results


class Marked:
    """A state of which we can see whether it is still in memory."""


def kept(most, expiry, count):
    """How many states are in memory after `count` streams. Each ends, or expires before the next one starts."""
    time = [0.0]
    streams = Streams(Marked(), most, expiry, lambda: time[0])
    states = weakref.WeakSet()

    def compute(_):
        state = Marked()
        states.add(state)
        return None, state

    for k in range(count):
        time[0] += expiry
        streams.request(f"stream {k}", True, k % 2 == 0, compute)
    gc.collect()
    return len(states)


def describe(streams, request, compute):
    """The answer, or a text: the status, or the exception."""
    try:
        return streams.request(request["stream"], request["start"], request["end"], compute)
    except Refused as error:
        return f"status {error.status}"
    except ModelFailure:
        return "the model's exception"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
