"""The rows of a result: selects them and formats their numbers."""

from __future__ import annotations

from ..errors import UserError

# A row that reaches a greater share of the memory speed in the same run must be a measurement error.
MOST_OF_COPY = 1.03
FAR_APART = 1.3  # the third quartile as a multiple of the first
MOST_DRIFT = 1.1  # of a baseline's times within a measurement that is recorded
EAGER = "eager"
CUDA_GRAPH = "CUDA graph of "  # before the name of an implementation whose launches are replayed
GRAPH_PEERS = (f"{CUDA_GRAPH}eager", f"{CUDA_GRAPH}torch.compile")  # the strongest peers of a small cell on a GPU
DISTURBED = "The quartiles lie far apart: something else was running, and a second run may give other times."


def select(result: dict, **facts: object) -> list[dict]:
    """The rows of a result that have all the given facts: `select(result, device="cpu", grads="all")`."""
    return [row for row in result["rows"] if all(row[fact] == value for fact, value in facts.items())]


def size_label(row: dict) -> str:
    """The size of a row as it is printed: 'B16 I32 S128'."""
    return f"B{row['B']} I{row['I']} S{row['S']}"


def unique(rows: list[dict], fact: str | None = None) -> list:
    """The distinct values of a fact (by default the size) in rows, in order of appearance."""
    return list(dict.fromkeys(size_label(row) if fact is None else row[fact] for row in rows))


def headline_names(rows: list[dict]) -> list[str]:
    """The rows of a short table or chart: eager, its strongest peers, and the stages from 2 on.

    The peers are the fastest mode of torch.compile and Triton, if they ran, and on a GPU eager and torch.compile
    under a CUDA graph, even if they were not measured.
    """
    names = unique(rows, "name")
    modes = [name for name in names if name.startswith("torch.compile")]
    fastest = min(modes, key=lambda name: min(row["ratio"] for row in rows if row["name"] == name), default="")
    graphs = GRAPH_PEERS if any(row["device"] == "cuda" for row in rows) else ()
    peers = [name for name in (EAGER, fastest, "Triton") if name in names]
    return [*peers, *graphs, *(name for name in names if name.startswith("stage ") and name != "stage 1")]


def is_peer(row: dict) -> bool:
    """Whether a row is of an implementation without C++: no stage, also not one under a CUDA graph."""
    return row["stage"] is None and "stage" not in row["name"]


def speedup(row: dict, other: dict) -> float:
    """How many times as fast as another row a row is; both were compared with one baseline, round by round."""
    return other["ratio"] / row["ratio"]


def is_disturbed(row: dict) -> bool:
    """Whether the samples of a CPU row vary more than on an idle machine."""
    return row["device"] == "cpu" and row["q3"] >= FAR_APART * row["q1"]


def describe_drift(result: dict) -> str | None:
    """How far a baseline's times at one size are from the first of them, if too far for a recorded measurement.

    `make bench` measures eager at one size first, again before every other size, and at the end; and torch's LSTM
    before and after all sequences. On a quiet machine their times agree.
    """
    return next(iter(find_drifts(result).values()), None)


def find_drifts(result: dict) -> dict[tuple[str, str], str]:
    """The baselines whose times drifted, as (device, name), with how far."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in result.get("repeats", []):
        for name, median in row["medians"].items():
            baseline = row.get("name", EAGER)
            what = f"{baseline}'s {name} at {size_label(row)}"
            found.setdefault((row["device"], baseline, what), []).append(median)
    drifts = {}
    for (device, baseline, what), (first, *later) in found.items():
        drift, farthest = max((max(median / first, first / median), median) for median in (first, *later))
        if drift > MOST_DRIFT:
            times = f"{first:,.0f} us at the beginning and {farthest:,.0f} us later in the same run"
            drifts[device, baseline] = (
                f"{what} on {device.upper()} tensors took {times}, more than {MOST_DRIFT - 1:.0%} apart, so "
                "something else was running"
            )
    return drifts


def quiet_part(result: dict) -> dict:
    """A result without what was measured while a baseline drifted: cells by eager, sequences by torch's LSTM.

    Cells and sequences of each device are measured one after the other, and each has its own repeats.
    """
    drifts = find_drifts(result)
    cells = {device for device, name in drifts if name == EAGER}
    sequences = {device for device, name in drifts if name != EAGER}
    return result | {
        "rows": [row for row in result["rows"] if row["device"] not in cells],
        "kernels": result.get("kernels", []) if "cuda" not in cells else [],
        "sequences": [row for row in result.get("sequences", []) if row["device"] not in sequences],
        "repeats": [r for r in result.get("repeats", []) if (r["device"], r.get("name", EAGER)) not in drifts],
    }


def size_in_memory(row: dict | None) -> str:
    """The bytes saved for backward, in KiB, or in MiB from one MiB on."""
    if row is None:
        return "not run"
    size = row["saved_bytes"]
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


def gb_per_second(row: dict) -> float | None:
    """The speed of a kernel in GB/s, by the bytes that it has to read and write; None if they are unknown."""
    return row["bytes"] / row["median"] / 1e3 if row["bytes"] else None


def share_of_copy(row: dict) -> float | None:
    """This speed as a share of the speed of a copy in the same run."""
    speed = gb_per_second(row)
    return speed / row["copy_gb_per_second"] if speed else None


def check_plausible(row: dict) -> None:
    """Raises `UserError` for a kernel that would be faster than the memory that it reads and writes."""
    speed, limit = gb_per_second(row), max(row["copy_gb_per_second"], row["sum_gb_per_second"])
    if speed and speed > MOST_OF_COPY * limit:
        raise UserError(
            f"{row['name']}, {row['pass']}, has {speed / limit:.2f} times the speed of memory, which is impossible: "
            "it does not access all its bytes, or finds them in the cache"
        )


def kernel_cells(row: dict) -> list[str]:
    """The cells of a kernel in tables: launches, microseconds with quartiles, GB/s, share of a copy's speed."""
    time = f"{row['median']:,.1f} ({row['q1']:,.1f} to {row['q3']:,.1f})"
    speed, share = gb_per_second(row), share_of_copy(row)
    return [str(row["kernels"]), time, *([f"{speed:,.0f}", f"{share:.0%}"] if speed else ["", ""])]


def device_name(result: dict, device: str) -> str:
    """The hardware that a result's rows of `device` ran on."""
    return result["machine"]["gpu" if device == "cuda" else "cpu"] or device
