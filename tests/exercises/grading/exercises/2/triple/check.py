from common.exercises.judge import require


def check(work):
    triple = work.load("_C").triple
    for x in (-7, 2, work.seed):
        got = triple(x)
        require(got == 3 * x, f"triple({x}) is {got}, expected {3 * x}")
