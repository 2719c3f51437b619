from common.exercises.judge import SMALL, require


def check(work):
    forward, backward = work.number("forward"), work.number("backward")
    with work.ours() as stage:
        cell = stage.cell("lltm", "equations")
        with stage.counting() as first:
            new_h, new_cell = cell(*work.case(*SMALL).inputs().values())
        with stage.counting() as second:
            (new_h.sum() + new_cell.sum()).backward()
    more_or_fewer = "more" if forward < first.all_calls else "fewer"
    require(forward == first.all_calls, f"forward = {forward}: the cell made {more_or_fewer} calls just now")
    close = abs(backward - second.all_calls) <= 3
    require(close, f"backward = {backward}: autograd made {second.all_calls} calls just now")
    return f"Counted just now: {first.all_calls} in forward, {second.all_calls} in backward."
