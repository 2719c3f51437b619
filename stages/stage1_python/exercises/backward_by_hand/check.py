from common.exercises.judge import agree, cases


def check(work):
    agree(work.cell("by_hand"), cases(work))
