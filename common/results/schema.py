"""The format of a recorded measurement: its fields, their types, and their allowed values."""

from __future__ import annotations

from pathlib import Path

from ..errors import UserError
from ..paths import display_path
from .rows import check_plausible

SCHEMA = 1
NUMBER = (int, float)
NONE = type(None)
TOP_FIELDS = {
    "schema": int, "date": str, "quick": bool, "machine": dict, "versions": dict,
    "sources": dict, "rows": list, "not_run": list,
}  # fmt: skip
ROW_FIELDS = {
    "name": str, "stage": (int, NONE), "target": (str, NONE), "device": str, "dtype": str, "maths": str,
    "threads": (int, NONE), "grads": str, "B": int, "I": int, "S": int, "pass": str,
    "median": NUMBER, "q1": NUMBER, "q3": NUMBER, "samples": int, "ratio": (*NUMBER, NONE),
    "saved_bytes": int, "saved_input_bytes": int, "saved_output_bytes": int, "build_seconds": (*NUMBER, NONE),
}  # fmt: skip
SEQUENCE_FIELDS = {
    "name": str, "stage": (int, NONE), "target": (str, NONE), "device": str, "dtype": str, "maths": str,
    "threads": (int, NONE), "cell": str, "T": int, "B": int, "I": int, "S": int, "pass": str, "baseline": str,
    "median": NUMBER, "q1": NUMBER, "q3": NUMBER, "samples": int, "ratio": NUMBER, "peak_bytes": int,
    "saved_bytes": int, "saved_input_bytes": int, "saved_output_bytes": int, "build_seconds": (*NUMBER, NONE),
}  # fmt: skip
KERNEL_FIELDS = {
    "name": str, "stage": (int, NONE), "pass": str, "dtype": str, "B": int, "S": int, "kernels": int,
    "median": NUMBER, "q1": NUMBER, "q3": NUMBER, "samples": int, "bytes": (int, NONE),
    "copy_gb_per_second": NUMBER, "sum_gb_per_second": NUMBER, "registers": (int, NONE),
    "threads_per_block": (int, NONE), "occupancy": (*NUMBER, NONE),
}  # fmt: skip
KERNEL_VALUES = {"pass": ("forward", "backward")}
REPEAT_FIELDS = {"device": str, "B": int, "I": int, "S": int, "medians": dict}
NOT_RUN_FIELDS = {"name": str, "device": str, "what": str, "reason": str}
VALUES = {"device": ("cpu", "cuda"), "maths": ("IEEE", "TF32"), "grads": ("all", "parameters"),
          "pass": ("forward", "forward+backward")}  # fmt: skip


def validate(result: object, path: Path) -> None:
    """Raises `UserError`, naming the file and the place in it, unless `result` has this version's format.

    Unknown fields are accepted, so that a later version can add some.
    """
    try:
        validate_head(result)
        parts = (
            ("row", ROW_FIELDS, VALUES),
            ("kernel", KERNEL_FIELDS, KERNEL_VALUES),
            ("sequence", SEQUENCE_FIELDS, VALUES),
        )
        for kind, expected, values in parts:
            for k, row in enumerate(result.get(f"{kind}s", [])):
                validate_fields(f"{kind} {k}", row, expected, values)
                validate_quartiles(f"{kind} {k}", row)
        for k, row in enumerate(result.get("kernels", [])):
            validate_speed(f"kernel {k}", row)
        for k, entry in enumerate(result["not_run"]):
            validate_fields(f"not_run {k}", entry, NOT_RUN_FIELDS)
        for k, entry in enumerate(result.get("repeats", [])):
            validate_fields(f"repeat {k}", entry, REPEAT_FIELDS)
            validate_fields(f"repeat {k}", entry["medians"], dict.fromkeys(VALUES["pass"], NUMBER))
    except UserError as error:
        raise UserError(f"{display_path(path)}: {error}") from None


def validate_head(result: object) -> None:
    """Raises `UserError` unless the top level is valid."""
    if isinstance(result, dict) and isinstance(result.get("schema"), int) and result["schema"] != SCHEMA:
        raise UserError(
            f"has schema {result['schema']}, this version reads {SCHEMA}: measure again with `make bench`"
        )
    validate_fields("the file", result, TOP_FIELDS)
    for part in ("kernels", "sequences", "repeats"):
        if not isinstance(result.get(part, []), list):
            raise UserError(f"`{part}` is not a list")


def validate_fields(name: str, found: object, expected: dict, values: dict = VALUES) -> None:
    """Raises `UserError` unless `found` is an object with these fields, of their types and with possible values."""
    if not isinstance(found, dict):
        raise UserError(f"{name} is {type(found).__name__}, expected an object")
    for field, kind in expected.items():
        if field not in found:
            raise UserError(f"{name} has no field {field!r}")
        if not isinstance(found[field], kind) or (isinstance(found[field], bool) and kind is not bool):
            raise UserError(f"{name} has {field} = {found[field]!r}, which is of the wrong type")
        if field in values and found[field] not in values[field]:
            raise UserError(f"{name} has {field} = {found[field]!r}, expected one of {', '.join(values[field])}")


def validate_quartiles(name: str, row: dict) -> None:
    """Raises `UserError` unless a row's quartiles are positive and in order."""
    if not 0 < row["q1"] <= row["median"] <= row["q3"]:
        raise UserError(f"{name} has quartiles out of order: {row['q1']}, {row['median']}, {row['q3']}")


def validate_speed(name: str, row: dict) -> None:
    """Raises `UserError` for a kernel that would be faster than memory."""
    try:
        check_plausible(row)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
