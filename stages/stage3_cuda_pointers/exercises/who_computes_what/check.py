import math

from common.exercises.judge import Failure, require
from common.exercises.judging.programs import printed

B, S, ROW, UNIT = 3, 70, 2, 37


def check(work):
    said = {question.name: work.number(question.name) for question in work.exercise.questions}
    measured = measure(work.ours(work.exercise.folder / "files"))
    block = (said["block_x"], said["block_y"]) == (measured["block_x"], measured["block_y"])
    require(block, f"block ({said['block_x']}, {said['block_y']}) does not write element [{ROW}, {UNIT}]")
    threads = f"thread = {UNIT}: a block has 32 threads, 0 to 31; {UNIT} is the thread's position in the row"
    require(said["thread"] != UNIT, threads)
    one_row = measured["turned_away"] // B
    require(
        said["turned_away"] != one_row,
        f"turned_away = {one_row}: that is the number for one row, and there are {B} rows",
    )
    times = B * measured["sectors_of_row_0"]
    require(
        said["sectors"] != times,
        f"sectors = {times}: {B} times row 0 would be right if each row began at a sector boundary",
    )
    for name, number in measured.items():
        if said[name] != number:
            raise Failure(
                f"{name} = {said[name]}: the emulator's number is {'larger' if said[name] < number else 'smaller'}"
            )


def measure(program):
    """The right answers, by the names of the questions."""
    (x, y, thread), counted = printed(program, "who.cu", [B, S, ROW, UNIT], (3,), f"B={B}, S={S}")
    [launch] = counted.launches
    _, row_0 = printed(program, "who.cu", [1, S, 0, 0], (3,), f"B=1, S={S}")
    return {
        "block_x": int(x),
        "block_y": int(y),
        "thread": int(thread),
        "turned_away": math.prod(launch.grid) * math.prod(launch.block) - counted.total("lanes"),
        "sectors_of_row_0": row_0.total("sectors"),
        "sectors": counted.total("sectors"),
    }
