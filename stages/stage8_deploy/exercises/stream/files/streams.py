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
        # BEGIN SOLUTION: follow the rules of README.md.
        oldest = self.clock() - self.expiry
        self.streams = {key: one for key, one in self.streams.items() if one.is_in_use or one.last_use > oldest}
        stream = self.streams.get(name)
        if stream is None:
            if not start:
                raise Refused(404)
            if len(self.streams) >= self.most:
                raise Refused(503)
            stream = self.streams[name] = Stream(None)  # no state yet: removed unless this request succeeds
        elif stream.is_in_use:
            raise Refused(409)
        stream.is_in_use = True
        try:
            answer, state = compute(self.first_state if start else stream.state)
            stream.state = None if end else state
        finally:
            stream.is_in_use = False
            stream.last_use = self.clock()
            if stream.state is None:
                del self.streams[name]
        return answer
        # BEGIN STARTER
        # stream = self.streams.setdefault(name, Stream(self.first_state))
        # answer, stream.state = compute(stream.state)
        # return answer
        # END STARTER
        # END SOLUTION
