import json
import random

from common.exercises.judge import BuildFailure, Failure, likely_mistake, unchanged

SCENARIOS = 60
TODAY = 1_795_000_000_000  # ms since 1970
SHOWN = 10  # calls before the wrong one
# Compiles the program once, then runs it with the arguments of each scenario; with the checks of libstdc++.
RUNNER = """
import json, os, resource, subprocess, sys, tempfile

def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))

def run(program, words):
    options = {"capture_output": True, "text": True, "errors": "replace", "preexec_fn": limit_memory}
    try:
        ran = subprocess.run([program, *words], timeout=5, **options)
    except subprocess.TimeoutExpired as error:
        return None, (error.stdout or b"").decode(errors="replace"), []
    reasons = [line for line in ran.stderr.splitlines() if "Assertion" in line or "what():" in line]
    return ran.returncode, ran.stdout, reasons

with tempfile.TemporaryDirectory() as folder:
    program = os.path.join(folder, "trial")
    command = [*os.environ.get("CXX", "c++").split(), "-std=c++17", "-O1", "-Wall", "-D_GLIBCXX_ASSERTIONS"]
    built = subprocess.run([*command, "trial.cpp", "-o", program], capture_output=True, text=True)
    found = built.stderr[:20_000]
    if built.returncode == 0:
        found = []
        for words in json.loads(sys.argv[1]):
            found.append(run(program, words))
            if found[-1][0] != 0:
                break
tell(found)
"""

# What a wrong queue would do, for the message: the names of the deviations in `returns`.
MISTAKES = {
    "unlimited": "the queue accepts any number of requests",
    "one more": "the queue accepts one request too many",
    "wraps": "limits.waiting = 0 counts as no limit: limits.waiting - 1 is then the largest number of a size_t",
    "reopened": "a closed queue still accepts requests",
    "discards": "a closed queue loses the requests that wait",
    "waits": "in a closed queue, requests still wait for others",
    "no delay": "requests do not wait for others",
    "later": "a request waits for more than the delay",
    "newest": "the delay begins with the newest request: it should begin with the oldest",
    "since pop": "the delay begins when the batch before it ends: it should begin when the request arrives",
    "full only": "a batch starts only when it is full: a single request would wait forever",
    "all": "a batch is larger than limits.batch",
    "due only": "a batch leaves out requests that have not waited for the delay themselves",
    "one": "a batch has one request at most",
    "last first": "the newest requests come first",
    "by number": "requests come in the order of their numbers: they should come in the order in which they arrived",
    "queue full": "a full queue starts a batch although the delay is not over and the batch is not full",
    "after full": "a full batch waits until the delay is over, too",
}


def check(work):
    unchanged(work, "trial.cpp", "Edit only queue.h")
    scenarios = [*every_rule(), *(random_scenario(random.Random(work.seed + k)) for k in range(SCENARIOS))]
    words = [[str(word) for event in scenario for word in event] for scenario in scenarios]
    ran = work.observe(RUNNER, json.dumps(words))
    if isinstance(ran.told, str):
        errors = [line for line in ran.told.splitlines() if "error:" in line] or ran.told.splitlines()
        raise BuildFailure("\n".join(["trial.cpp does not compile with your queue.h:", *errors[:3]]))
    if ran.told is None:
        raise Failure(f"trial.cpp could not be run: {ran.output}")
    found = [output.splitlines() for _, output, _ in ran.told]
    for scenario, (status, _, reasons), got in zip(scenarios, ran.told, found, strict=False):
        if got != returns(scenario) or status != 0:
            mistake = likely_mistake(MISTAKES, returns, scenarios, found, scenario)
            raise Failure("\n".join(explain(scenario, status, got, reasons, mistake)))


# Scenarios: the three limits, then events --------------------------------------------------------------------------


def every_rule():
    """Short scenarios, so that most mistakes are found in few events."""
    return [
        [(8, 3, 10), ("push", 1, 0), ("pop", 5), ("pop", 9), ("pop", 10), ("pop", 11)],
        [
            (8, 3, 10),
            ("push", 1, 0),
            ("push", 2, 7),
            ("pop", 9),
            ("pop", 10),
            ("push", 3, 12),
            ("pop", 20),
            ("pop", 22),
        ],
        [(8, 2, 10), ("push", 1, 0), ("push", 2, 1), ("pop", 2), ("pop", 3)],
        [(8, 2, 10), ("push", 1, 0), ("push", 2, 1), ("push", 3, 2), ("pop", 3), ("pop", 4), ("pop", 12)],
        [(8, 3, 10), ("push", 1, 0), ("pop", 30), ("push", 2, 31), ("pop", 35), ("pop", 41)],
        [(2, 5, 10), ("push", 1, 0), ("push", 2, 0), ("push", 3, 0), ("pop", 9), ("pop", 10), ("push", 4, 11)],
        [(8, 2, 10), *[("push", k, 0) for k in range(1, 6)], ("pop", 1), ("pop", 2), ("pop", 3), ("pop", 10)],
        [(8, 2, 10), *[("push", k, 0) for k in range(1, 6)], ("pop", 50), ("pop", 50), ("pop", 50), ("pop", 50)],
        [(8, 3, 10), ("push", 1, 0), ("close",), ("push", 2, 1), ("pop", 1), ("pop", 2)],
        [(8, 2, 10), *[("push", k, 0) for k in range(1, 6)], ("close",), *[("pop", 1)] * 4],
        [(8, 2, 0), ("pop", 0), ("push", 1, 0), ("pop", 0), ("close",), ("pop", 5)],
        [(8, 2, 10), ("push", 1, 0), ("pop", 2**31)],  # a month later
        [(8, 2, 10), ("push", 1, TODAY), ("pop", TODAY + 9), ("pop", TODAY + 10)],
        [(0, 2, 10), ("push", 1, 0), ("pop", 50), ("close",), ("pop", 60)],
        [(8, 2, 10), ("push", 7, 0), ("push", 5, 1), ("push", 6, 2), ("pop", 3), ("pop", 11), ("pop", 12)],
    ]


def random_scenario(chance):
    time = chance.choice((0, TODAY))
    events = [(chance.choice((1, 3, 6)), chance.choice((1, 2, 4)), chance.choice((0, 5, 20)))]
    for request in range(chance.randrange(20, 60)):
        time += chance.choice((0, 0, 1, 4, 20))
        events.append(("push", request, time) if chance.random() < 0.6 else ("pop", time))
    return [*events, ("close",), ("push", 99, time), *[("pop", time)] * 8]


# The rules ---------------------------------------------------------------------------------------------------------


def returns(scenario, mistake=""):
    """The line of each event for our queue, or for one with one of the `MISTAKES`."""
    (most, size, delay), *events = scenario
    waiting, is_closed, lines, last_pop = [], False, [], 0
    for event in events:
        now = event[-1]
        if event[0] == "close":
            is_closed = True
            if mistake == "discards":
                waiting = []
            lines.append("")
        elif event[0] == "push":
            is_unlimited = mistake == "unlimited" or (mistake == "wraps" and most == 0)
            is_full = len(waiting) >= most + (mistake == "one more") and not is_unlimited
            is_refused = is_full or (is_closed and mistake != "reopened")
            if not is_refused:
                waiting.append((event[1], now))
            if mistake == "by number":
                waiting.sort()
            lines.append("refused" if is_refused else "accepted")
        else:
            batch = waiting[: pop_size(waiting, most, size, delay, now, is_closed, last_pop, mistake)]
            if mistake == "last first":
                batch = waiting[::-1][: len(batch)]
            waiting = [one for one in waiting if one not in batch]
            last_pop = now if batch else last_pop
            lines.append("".join(f"{request} " for request, _ in batch))
    return lines


def pop_size(waiting, most, size, delay, now, is_closed, last_pop, mistake):
    """How many requests a batch has; 0 if none is due."""
    if not waiting:
        return 0
    oldest = waiting[-1 if mistake == "newest" else 0][1]
    waited = now - (max(oldest, last_pop) if mistake == "since pop" else oldest)
    has_waited = (waited > delay if mistake == "later" else waited >= delay) and mistake != "full only"
    is_full = len(waiting) >= (min(size, most) if mistake == "queue full" else size) and mistake != "after full"
    if has_waited or is_full or (is_closed and mistake != "waits") or mistake == "no delay":
        due = sum(now - arrival >= delay for _, arrival in waiting)
        at_most = {"all": len(waiting), "one": 1, "due only": size if is_full or is_closed else min(size, due)}
        return at_most.get(mistake, min(size, len(waiting)))
    return 0


# Messages ----------------------------------------------------------------------------------------------------------


def explain(scenario, status, found, reasons, mistake):
    """The first event with a wrong result, the likely mistake, and the events before."""
    (most, size, delay), *events = scenario
    want = returns(scenario)
    wrong = next((k for k, line in enumerate(want) if found[k : k + 1] != [line]), len(want) - 1)
    call = as_call(events[wrong])
    if wrong < len(found):
        yield f"{call} returns {said(found[wrong])}, expected {said(want[wrong])}"
    elif status is None:
        yield f"{call} does not return: the program was stopped after 5 seconds"
    else:
        yield f"the program ends in {call} with status {status}: {describe_end(reasons)}"
    if mistake:
        yield f"It looks as if {MISTAKES[mistake]}"
    yield f"limits: waiting {most}, batch {size}, delay {delay} ms. What was called before, and what it returned:"
    for event, line in list(zip(events[:wrong], found, strict=False))[-SHOWN:]:
        yield f"  {as_call(event)}" + (f": {said(line)}" if event != ("close",) else "")


def as_call(event):
    return f"{event[0]}({', '.join(map(str, event[1:]))})"


def describe_end(reasons):
    """The assertion of the standard library that failed, or the exception that was thrown."""
    return reasons[-1].rpartition("Assertion ")[2].strip() if reasons else "it crashed"


def said(line):
    return {"accepted": "true", "refused": "false"}.get(line, f"[{', '.join(line.split())}]")
