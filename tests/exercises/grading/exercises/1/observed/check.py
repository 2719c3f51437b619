from pathlib import Path

from common.exercises.judge import require, unchanged

LOOK = "from answer import double\ntell(double(3))\n"  # run in the learner's folder


def check(work):
    unchanged(work, "given.py", "answer.py is yours")
    require(work.observe(LOOK).told == 6, "a program that asks for double(3) is not told 6")
    require(work.beside(Path(__file__).with_name("ours.py")).doubles(), "ours.py finds that double does not double")
    require(work.load("given").doubles(), "given.py finds that double does not double")
