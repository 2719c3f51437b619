import json
import random

from common.exercises.judge import require, returned_numbers
from common.results.records import RECORDED

SWEEP = RECORDED / "studies" / "sequence_sweep.json"
FITTED, PREDICTED = (32, 128), 512
SHORTEST = 300  # microseconds of 32 steps. A shorter call takes the GPU less time than the CPU, which launches it
# Runs in the learner's folder and reports which functions change the times that they receive.
CHANGES = """
import model

times, changing = {32: 96.0, 128: 192.0}, []
for name, *others in (("fit",), ("predict", 512), ("steps_until_small", 0.5)):
    given = dict(times)
    getattr(model, name)(given, *others)
    changing += [name] if given != times else []
tell(changing)
"""


def check(work):
    model = work.load("model")
    chance = random.Random(work.seed)
    for fixed, step in ((100, 1.5), (0, 2), (-5, 6), (chance.uniform(50, 200), chance.uniform(0.5, 3))):
        agree(model, fixed, step, chance)
    exactly_at_the_share(model)
    changing = work.observe(CHANGES).told or []
    require(
        not changing,
        f"these functions change the dictionary `times` of their caller: {', '.join(changing)}. The next function "
        "that receives it does not find the measured times",
    )
    return "; ".join(compare(model, *one) for one in measured())


def agree(model, fixed, step, chance):
    """Raises `Failure` unless the functions follow the model with these two parts."""
    short, long = chance.randint(8, 40), chance.randint(60, 200)
    times = {T: fixed + T * step for T in (long, short)}
    case = f"{fixed:.4g} us and {step:.4g} us a step, measured at {short} and {long} steps"
    got = returned_numbers(model.fit(times), 2, f"fit({times})")
    close = all(abs(one - want) < 1e-6 * (fixed + step) for one, want in zip(got, (fixed, step), strict=True))
    require(close, f"{case}: fit gives {got[0]:.4g} us and {got[1]:.4g} us a step")
    for T in (1, short, 700):
        want, found = fixed + T * step, predicted(model, times, T)
        require(
            abs(found - want) < 1e-6 * want, f"{case}: predict gives {found:.5g} us for {T} steps, not {want:.5g}"
        )
    for share in (0.5, 0.1, 0.03):
        found = model.steps_until_small(times, share)
        require(
            isinstance(found, int) and found >= 1, f"{case}: steps_until_small gives {found!r}, not a number >= 1"
        )
        slack = 1e-6 * (fixed + step)
        small = fixed <= share * (fixed + found * step) + slack
        require(small, f"{case}: at {found} steps the fixed part still takes more than {share} of the time")
        fewer = found > 1 and fixed <= share * (fixed + (found - 1) * step) - slack
        require(not fewer, f"{case}: fewer than {found} steps are enough for a share of {share}")


def predicted(model, times, T):
    """The time that the model predicts for T steps."""
    return returned_numbers([model.predict(times, T)], 1, f"predict({times}, {T})")[0]


def exactly_at_the_share(model):
    """Raises `Failure` if a step too many is wanted where the fixed part takes exactly this share of the time."""
    for share, want in ((0.5, 64), (0.25, 192)):
        found = model.steps_until_small({32: 64.0 + 32, 128: 64.0 + 128}, share)
        require(
            found == want,
            f"64 us and 1 us a step: steps_until_small gives {found} for a share of {share}, expected {want}: the "
            f"fixed part takes exactly {share} of the time there, and it may take at most that",
        )


def compare(model, name, sizes, times):
    """Raises `Failure` unless the prediction is near the recorded time. Returns the line for the learner."""
    fitted = {T: times[T] for T in FITTED}
    found, recorded = predicted(model, fitted, PREDICTED), times[PREDICTED]
    error = found / recorded - 1
    require(
        abs(error) < 0.25, f"{name}, {sizes}: {found:.4g} us predicted for {PREDICTED} steps, {recorded} recorded"
    )
    return f"{name}, {sizes}: {found:.0f} us predicted, {recorded:.0f} recorded ({100 * error:+.0f}%)"


def measured():
    """The recorded forward times of an LSTM by the persistent kernels, at sizes where the GPU decides the time."""
    found = {}
    for row in json.loads(SWEEP.read_text(encoding="utf-8"))["rows"]:
        is_lstm = (row["cell"], row["dtype"], row["pass"]) == ("lstm", "bfloat16", "forward")
        if is_lstm and row["name"] in ("stage 7, grid", "stage 7, cluster"):
            found.setdefault((row["name"], f"B={row['B']}, S={row['S']}"), {})[row["T"]] = row["median"]
    complete = [(*key, times) for key, times in found.items() if {*FITTED, PREDICTED} <= times.keys()]
    chosen = [one for one in complete if one[-1][FITTED[0]] >= SHORTEST]
    require(chosen, "the recorded sweep has no large size with 32, 128 and 512 steps")
    return chosen
