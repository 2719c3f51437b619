"""The rows of a result: selecting them, and their numbers as text."""

from __future__ import annotations

from ..errors import UserError

# A row with a greater share of the speed that memory reached in the same run is a mistake in the measurement.
MOST_OF_COPY = 1.03
FAR_APART = 1.3  # the third quartile as a multiple of the first
DISTURBED = "The quartiles lie far apart: something else was running, and a second run may give other times."


def select(result: dict, **facts: object) -> list[dict]:
    """The rows of a result that have all the given facts: `select(result, device="cpu", grads="all")`."""
    return [row for row in result["rows"] if all(row[fact] == value for fact, value in facts.items())]


def size_label(row: dict) -> str:
    """The size of a row as it is printed: 'B16 I32 S128'."""
    return f"B{row['B']} I{row['I']} S{row['S']}"


def unique(rows: list[dict], fact: str | None = None) -> list:
    """The values of a fact over rows (of the size without one), each once, in order of appearance."""
    return list(dict.fromkeys(size_label(row) if fact is None else row[fact] for row in rows))


def headline_names(rows: list[dict]) -> list[str]:
    """What a short table or chart shows: eager, the fastest mode of torch.compile, Triton, and stages from 2 on."""
    names = unique(rows, "name")
    modes = [name for name in names if name.startswith("torch.compile")]
    fastest = min(modes, key=lambda name: min(row["ratio"] for row in rows if row["name"] == name), default="")
    shown = {"eager", fastest, "Triton"}
    return [name for name in names if name in shown or (name.startswith("stage ") and name != "stage 1")]


def is_disturbed(row: dict) -> bool:
    """Whether a CPU's samples lie further apart than those of a quiet machine do."""
    return row["device"] == "cpu" and row["q3"] >= FAR_APART * row["q1"]


def size_in_memory(row: dict | None) -> str:
    """The bytes saved for backward, in KiB, or from one MiB on in MiB."""
    if row is None:
        return "not run"
    size = row["saved_bytes"]
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


def gb_per_second(row: dict) -> float | None:
    """The speed of a kernel in GB/s of the bytes that it has to read and write; None where they are unknown."""
    return row["bytes"] / row["median"] / 1e3 if row["bytes"] else None


def share_of_copy(row: dict) -> float | None:
    """That speed as a share of a copy's in the same run; also the share of the floor, which is its bytes at that."""
    speed = gb_per_second(row)
    return speed / row["copy_gb_per_second"] if speed else None


def check_plausible(row: dict) -> None:
    """Raises `UserError` for a kernel that would be faster than the memory that it reads and writes."""
    speed, limit = gb_per_second(row), max(row["copy_gb_per_second"], row["sum_gb_per_second"])
    if speed and speed > MOST_OF_COPY * limit:
        raise UserError(
            f"{row['name']}, {row['pass']}, has {speed / limit:.2f} times the speed of memory, which cannot be: "
            "it does not access all its bytes, or finds them in the cache"
        )


def kernel_cells(row: dict) -> list[str]:
    """What tables say of a kernel: launches, microseconds with quartiles, GB/s and its share of a copy's."""
    time = f"{row['median']:,.1f} ({row['q1']:,.1f} to {row['q3']:,.1f})"
    speed, share = gb_per_second(row), share_of_copy(row)
    return [str(row["kernels"]), time, *([f"{speed:,.0f}", f"{share:.0%}"] if speed else ["", ""])]


def device_name(result: dict, device: str) -> str:
    """The hardware that a result's rows of `device` ran on."""
    return result["machine"]["gpu" if device == "cuda" else "cpu"] or device
