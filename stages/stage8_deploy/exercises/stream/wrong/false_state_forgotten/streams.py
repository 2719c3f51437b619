"""A table of streams: sequences whose steps arrive in several requests."""

from dataclasses import dataclass


class Refused(Exception):
    """Why a request gets no answer, as an HTTP status."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


@dataclass
class Stream:
    """What is kept between two requests of a stream."""

    state: object
    is_in_use: bool = False
    last_use: float = 0.0  # when its last request ended


class Streams:
    """The streams that exist, by name. `clock()` is the time in seconds."""

    def __init__(self, first_state, most, expiry, clock):
        self.first_state, self.most, self.expiry, self.clock = first_state, most, expiry, clock
        self.streams = {}

    def request(self, name, start, end, compute):
        """The answer to a request of a stream; `compute(state)` returns it, and the state after it.

        Raises `Refused` or what `compute` raises.
        """
        now = self.clock()
        for key, stream in list(self.streams.items()):
            if not stream.is_in_use and now - stream.last_use >= self.expiry:
                del self.streams[key]
        stream = self.streams.get(name)
        if stream is not None and stream.is_in_use:
            raise Refused(409)
        if stream is None and not start:
            raise Refused(404)
        is_new = stream is None
        if is_new:
            if len(self.streams) >= self.most:
                raise Refused(503)
            stream = self.streams[name] = Stream(self.first_state)
        stream.is_in_use = True
        try:
            answer, state = compute(self.first_state if start else stream.state or self.first_state)
        except Exception:
            stream.is_in_use, stream.last_use = False, self.clock()
            if is_new:
                del self.streams[name]
            raise
        stream.state, stream.is_in_use, stream.last_use = state, False, self.clock()
        if end:
            del self.streams[name]
        return answer
