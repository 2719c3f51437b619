from common.exercises.judge import SMALL, agree, cases, derived_by_hand


def check(work):
    agree(work.cell("by_hand"), cases(work))
    derived_by_hand(work, "by_hand", "lltm", *work.case(*SMALL).inputs().values())
