import json

from common.exercises.judge import Failure, require
from common.paths import ROOT


def check(work):
    budget, registers, occupancy, slower = (
        work.number(name) for name in ("budget", "registers", "occupancy", "slower")
    )
    three, four = recorded("stage 3"), recorded("stage 4")
    require(
        budget * 2048 == 65536,
        f"budget = {budget}: 2048 threads would take {budget * 2048:,} registers, but there are 65,536",
    )
    more = "more" if registers < four["registers"] else "fewer"
    require(
        abs(registers - four["registers"]) <= 6,
        f"registers = {registers}: nvcc counted {more}. Each stride that is used takes registers, and so does "
        "each address that is computed from it",
    )
    threads = 65536 // (four["registers"] * 256) * 256
    require(
        occupancy == round(100 * four["occupancy"]),
        f"occupancy = {occupancy}: with {four['registers']} registers each, {threads} of 2048 threads fit",
    )
    percent = 100 * (four["median"] / three["median"] - 1)
    way = "smaller" if slower > percent else "larger"
    require(
        abs(slower - percent) <= 4,
        f"slower = {slower}: the measured difference is {way}. Memory limits both kernels, and the remaining threads "
        "keep it nearly as busy",
    )


def recorded(name):
    """The measurement of a stage's backward kernel on an H200."""
    for row in json.loads((ROOT / "docs" / "results" / "h200.json").read_text())["kernels"]:
        if (row["name"], row["pass"], row["B"], row["S"]) == (name, "backward", 8192, 4096):
            return row
    raise Failure(f"docs/results/h200.json has no backward kernel of {name} at B8192 S4096")
