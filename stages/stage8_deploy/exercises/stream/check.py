import random
from dataclasses import dataclass

from common.exercises.judge import Failure, likely_mistake, require, unchanged

MOST, EXPIRY = 2, 10
SCENARIOS = 300
STREAMS = 50  # one after the other
SHOWN = 8  # requests of a scenario that are listed

# What a wrong table would do, for the message: the names of the deviations in `Table`.
MISTAKES = {
    "continues": "a request with start continues the stream instead of beginning it",
    "begins": "a request without start begins a stream that does not exist",
    "one more": "one stream too many is allowed",
    "full": "a full table refuses requests of streams that exist",
    "never": "a stream never expires",
    "503": "a full table refuses a request without start with 503; it would not make one more, so 404 is right",
    "places": "streams that have expired still count for `most`",
    "later": "a stream that has waited for exactly `expiry` seconds still exists",
    "from start": "the time until a stream expires begins with its last request, not with the end of that request",
    "in use": "a stream expires while a request uses it",
    "two": "two requests use the same stream at a time",
    "revived": "a request with start that fails brings back a stream that had expired",
    "uncounted": "a stream does not count for `most` while its first request runs",
    "stays": "a stream exists although its first request has failed",
    "gone": "a request that fails removes a stream that existed",
    "reset": "a failed request with start leaves the first state instead of the one before",
    "locked": "a stream stays in use after a request that failed",
    "endless": "a request with end does not remove its stream",
    "ends": "a request with end removes its stream even if it fails",
}
TOLERATED = "unused"  # a request that fails does not count as a use: the rules allow both


def check(work):
    unchanged(work, "trial.py", "Edit only streams.py")
    chance = random.Random(work.seed)
    trial, kept = work.load("trial").trial, work.load("trial").kept
    scenarios = [*every_rule(), *(random_scenario(chance) for _ in range(SCENARIOS))]
    scenarios = [one for one in scenarios if answers(one) == answers(one, TOLERATED)]
    found = [trial(MOST, EXPIRY, one, len(in_order(one))) for one in scenarios]
    for scenario, got in zip(scenarios, found, strict=True):
        if got != answers(scenario):
            mistake = likely_mistake(MISTAKES, answers, scenarios, found, scenario)
            raise Failure("\n".join(explain(scenario, got, mistake)))
    states = kept(MOST, EXPIRY, STREAMS)
    require(
        states <= MOST,
        f"after {STREAMS} streams, of which all but the last have ended or expired, the states of {states} are still "
        "in memory: unless streams that do not exist any more are removed, the table grows forever",
    )


# Scenarios ---------------------------------------------------------------------------------------------------------


def request(stream, start=False, end=False, fails=False, after=0, takes=0, inside=()):
    return {"stream": stream, "start": start, "end": end, "fails": fails, "after": after, "takes": takes,
            "inside": list(inside)}  # fmt: skip


def numbered(requests):
    """The requests of a scenario with their numbers, in the order in which they arrive."""
    for number, one in enumerate(in_order(requests)):
        one["number"] = number
    return requests


def in_order(requests):
    """All requests, those inside of others included."""
    return [one for outer in requests for one in (outer, *in_order(outer["inside"]))]


def every_rule():
    """Short scenarios, so that most mistakes are found in few requests."""
    first = [
        [request("a", start=True), request("a"), request("a", start=True), request("a")],
        [request("a"), request("a", start=True)],
        [request("a", start=True), request("b", start=True), request("c", start=True), request("b"), request("a")],
        [request("a", start=True), request("b", start=True), request("c")],
        [request("a", start=True), request("a", after=9), request("a", after=9), request("a", after=10)],
        [request("a", start=True), request("b", start=True), request("c", start=True, after=11)],
        [request("a", start=True, takes=12), request("a", after=9)],
        [request("a", start=True), request("a", inside=[request("a"), request("a", start=True)]), request("a")],
        [request("a", start=True, inside=[request("b", start=True), request("c", start=True)])],
        [request("a", start=True), request("b", start=True, inside=[request("a")])],
        [request("a", start=True), request("a", inside=[request("b", start=True, after=20)]), request("a")],
        [request("a", start=True, fails=True), request("a")],
        [request("a", start=True), request("a", fails=True), request("a", start=True, fails=True), request("a")],
        [request("a", start=True), request("a", fails="refuses"), request("a")],
        [request("a", start=True), request("a", start=True, fails=True, after=10), request("a")],
        [request("a", start=True), request("a", end=True), request("a")],
        [request("a", start=True), request("a", end=True, fails=True), request("a")],
    ]
    return [numbered(scenario) for scenario in first]


def random_scenario(chance):
    def random_request(depth):
        inside = [random_request(depth + 1) for _ in range(chance.choice((0, 0, 1, 2)))] if depth < 2 else []
        return request(
            chance.choice("abc"),
            start=chance.random() < 0.4,
            end=chance.random() < 0.15,
            fails=chance.choice((False,) * 8 + (True, "refuses")),
            after=chance.choice((0, 0, 1, 4, 10, 11)),
            takes=chance.choice((0, 0, 1, 12)),
            inside=inside,
        )

    return numbered([random_request(0) for _ in range(chance.randrange(3, 8))])


# The rules ---------------------------------------------------------------------------------------------------------


@dataclass
class Stream:
    state: list
    is_in_use: bool
    last_use: float


def answers(requests, mistake=""):
    """What each request of a scenario gets."""
    table = Table(mistake, len(in_order(requests)))
    for one in requests:
        table.answer(one)
    return table.results


class Table:
    """Our table, with one of the `MISTAKES` if it is named."""

    def __init__(self, mistake, count):
        self.mistake, self.time, self.streams = mistake, 0, {}
        self.results = ["nothing: it is not sent"] * count

    def answer(self, one):
        self.time += one["after"]
        self.results[one["number"]] = self.result_of(one)

    def is_expired(self, stream):
        if self.mistake == "never" or (stream.is_in_use and self.mistake != "in use"):
            return False
        age = self.time - stream.last_use
        return age > EXPIRY if self.mistake == "later" else age >= EXPIRY

    def result_of(self, one):
        name, mistake = one["stream"], self.mistake
        ever = self.streams.get(name)
        for other in [key for key, stream in self.streams.items() if self.is_expired(stream)]:
            if mistake != "places" or other == name:
                del self.streams[other]
        before = self.streams.get(name)
        counted = [s for s in self.streams.values() if not (mistake == "uncounted" and s.state is None)]
        if before is None and mistake == "503" and len(counted) >= MOST:
            return "status 503"
        if before is None and not one["start"] and mistake != "begins":
            return "status 404"
        if len(counted) >= MOST + (mistake == "one more") and (before is None or mistake == "full"):
            return "status 503"
        if before is not None and before.is_in_use and mistake != "two":
            return "status 409"
        is_fresh = before is None or (one["start"] and mistake != "continues")
        stream = Stream([] if is_fresh else before.state or [], True, self.time)
        self.streams[name] = Stream(before.state if before else None, True, self.time)
        begin = self.time
        for inner in one["inside"]:
            self.answer(inner)
        self.time += one["takes"]
        return self.finish(one, ever if mistake == "revived" else before, stream, begin)

    def finish(self, one, before, stream, begin):
        """Keeps or removes the stream of a request; returns what the client gets."""
        name, mistake, fails = one["stream"], self.mistake, one["fails"]
        if fails:
            result = "status 429" if fails == "refuses" else "the model's exception"
            kept = before.state if before else ([] if mistake == "stays" else None)
            if mistake == "gone" or (mistake == "ends" and one["end"]):
                kept = None
            if mistake == "reset" and one["start"] and before:
                kept = []
        else:
            result = kept = [*stream.state, one["number"]]
            if one["end"] and mistake != "endless":
                kept = None
        if mistake == "in use" and name not in self.streams:
            kept = None
        self.streams.pop(name, None)
        if kept is not None:
            last = begin if mistake == "from start" else self.time
            if fails and before and mistake == TOLERATED:
                last = before.last_use
            self.streams[name] = Stream(kept, bool(fails) and mistake == "locked", last)
        return result


# Messages ----------------------------------------------------------------------------------------------------------


def explain(scenario, found, mistake):
    """The first request with a wrong result, the likely mistake, and all requests if there are few."""
    want, requests = answers(scenario), in_order(scenario)
    wrong = next(k for k, pair in enumerate(zip(found, want, strict=True)) if pair[0] != pair[1])
    yield f"request {wrong} gets {said(found[wrong])}, expected {said(want[wrong])}"
    if mistake:
        yield f"It looks as if {MISTAKES[mistake]}"
    if len(requests) <= SHOWN:
        yield f"At most {MOST} streams; they expire after {EXPIRY} seconds. The requests:"
        yield from describe(scenario, found)


def said(result):
    return f"the steps of requests {result}" if isinstance(result, list) else str(result)


def describe(requests, found, indent="  "):
    """A line for each request, those inside of others indented."""
    for one in requests:
        facts = [f"stream {one['stream']}", *(fact for fact in ("start", "end") if one[fact])]
        facts += [f"{one['after']} s after the one before"] * bool(one["after"])
        facts += [f"takes {one['takes']} s"] * bool(one["takes"])
        facts += ["the model fails" if one["fails"] is True else "its work is refused with 429"] * bool(one["fails"])
        yield f"{indent}{one['number']}: {', '.join(facts)}: {said(found[one['number']])}"
        yield from describe(one["inside"], found, indent + "  while it runs, ")
