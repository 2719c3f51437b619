"""What `make check` calls. Do not change this file; edit streams.py."""

from .streams import Refused, Streams


class ModelFailure(Exception):
    """What `compute` raises in a request that should fail."""


def trial(most, expiry, requests, count):
    """What each of `count` requests gets: the numbers of its stream's requests so far, or a text.

    A request has a number, a stream, start, end and fails; it arrives `after` seconds after the one before, and
    takes `takes` seconds after the requests `inside` of it.
    """
    time = [0.0]
    streams = Streams((), most, expiry, lambda: time[0])
    results = ["nothing: it is not sent"] * count  # if the request that it is inside of is refused

    def run(request):
        def compute(state):
            for one in request["inside"]:
                run(one)
            time[0] += request["takes"]
            if request["fails"]:
                raise ModelFailure
            return [*state, request["number"]], (*state, request["number"])

        time[0] += request["after"]
        results[request["number"]] = describe(streams, request, compute)

    for request in requests:
        run(request)
    return results


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
