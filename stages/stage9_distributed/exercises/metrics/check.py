import math
import random

from common.exercises.judge import Failure, require, returned_numbers, unchanged


def check(work):
    unchanged(work, "trial.py", "Edit only metrics.py")
    chance = random.Random(work.seed)
    large = chance.randrange(10**8, 10**9) | 1
    for counts in ([30, 30], [50, 7], [4, 0, 9], [0, 3], [large, 2, 5], [8, 1, 6, 2]):
        shares = [[count * chance.uniform(0.5, 2), chance.randint(0, count), count] for count in counts]
        found = work.load("trial").trial(shares)
        what = f"shares of {', '.join(map(str, counts))} samples"
        if isinstance(found, str):
            waits = (
                "a process waits in all_reduce for another one that never calls it: each must call it equally often"
            )
            raise Failure(f"{waits if found == 'waits' else found} ({what})")
        results, calls = found
        require(all(call == 1 for call in calls), f"all_reduce is called {max(calls)} times, expected once ({what})")
        compare(results, shares, what)


def compare(results, shares, what):
    """Raises `Failure` unless all processes have the right numbers."""
    losses, correct, counts = (sum(column) for column in zip(*shares, strict=True))
    present = [share for share in shares if share[2]]
    for rank, said in enumerate(results):
        said = returned_numbers(said, 2, f"process {rank}: the function")
        for name, got, want, column in (
            ("loss", said[0], losses / counts, 0),
            ("accuracy", said[1], correct / counts, 1),
        ):
            if math.isclose(got, want, rel_tol=1e-12, abs_tol=1e-15):
                continue
            means = [share[column] / share[2] for share in present]
            note = ""
            if math.isclose(got, want, rel_tol=1e-5):
                note = ": right to a few digits. float32 cannot hold such sums and counts"
            elif any(math.isclose(got, sum(means) / n, rel_tol=1e-5) for n in (len(present), len(shares))):
                note = ": this is a mean of the processes' means, in which samples of a small share count more"
            raise Failure(f"the {name} in process {rank} is {got:.12g}, expected {want:.12g} ({what}){note}")
