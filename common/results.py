"""Measurements as JSON: written by bench.py, recorded in docs/results/, read by tables, plots and report."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import tokenize
from collections.abc import Sequence
from pathlib import Path

from . import stages
from .errors import UserError
from .stages import ROOT, Stage

SCHEMA = 1
RECORDED = ROOT / "docs" / "results"
# No measurements: what compute-sanitizer said of the stages and of the mistakes in tests/checks, and what Nsight
# Compute counted.
SANITIZED, COMPARED, PROFILED = RECORDED / "sanitizer.json", RECORDED / "checks.json", RECORDED / "ncu.json"
INSTALLED = RECORDED / "wheels.json"  # where wheels were tried
ABLATED = RECORDED / "ablation.json"  # stage 6 without some of its ideas
MEASURED = ROOT / "out" / "bench.json"
THIS_MACHINE = "this machine"

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
KERNEL_FIELDS = {
    "name": str, "stage": (int, NONE), "pass": str, "dtype": str, "B": int, "S": int, "kernels": int,
    "median": NUMBER, "q1": NUMBER, "q3": NUMBER, "samples": int, "bytes": (int, NONE),
    "copy_gb_per_second": NUMBER, "sum_gb_per_second": NUMBER, "registers": (int, NONE),
    "threads_per_block": (int, NONE), "occupancy": (*NUMBER, NONE),
}  # fmt: skip
KERNEL_VALUES = {"pass": ("forward", "backward")}
MOST = 1.03  # of what memory has shown to be able to do in the same run: what is above is no measurement
NOT_RUN_FIELDS = {"name": str, "device": str, "what": str, "reason": str}
VALUES = {"device": ("cpu", "cuda"), "maths": ("IEEE", "TF32"), "grads": ("all", "parameters"),
          "pass": ("forward", "forward+backward")}  # fmt: skip


def write(result: dict, path: Path) -> None:
    """Writes a result; whoever reads it meanwhile sees the old file or the new one, never half of one."""
    validate(result, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_text(json.dumps(result, indent=1) + "\n")
        half.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    finally:
        half.unlink(missing_ok=True)


def read(path: Path) -> dict:
    """One result with its "name" (the file's, or "this machine"). Raises `UserError` naming a file that is wrong."""
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{shown(path)}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{shown(path)}: not JSON: {error}") from error
    validate(result, path)
    return result | {"name": THIS_MACHINE if path == MEASURED else path.stem}


def recorded() -> list[dict]:
    """What docs/results/ holds, in the order of the file names. Raises `UserError` for a quick measurement."""
    others = (SANITIZED.name, COMPARED.name, PROFILED.name, INSTALLED.name, ABLATED.name)
    found = [read(path) for path in sorted(RECORDED.glob("*.json")) if path.name not in others]
    for result in found:
        if result["quick"]:
            raise UserError(f"docs/results/{result['name']}.json is a quick measurement; record one of `make bench`")
    return found


def measured() -> dict | None:
    """The last measurement on this machine (`make bench` or `make tour`); None when there is none."""
    return read(MEASURED) if MEASURED.exists() else None


def everything() -> list[dict]:
    """The last measurement on this machine if there is one, then the recorded ones."""
    here = measured()
    return ([here] if here else []) + recorded()


def validate(result: object, path: Path) -> None:
    """Raises `UserError`, naming the file and the place in it, unless `result` is what this version writes.

    Fields beyond the known ones are let through, so that a later kind of row can say more.
    """

    def fail(problem: str) -> None:
        raise UserError(f"{shown(path)}: {problem}")

    def fields(name: str, found: object, expected: dict, values: dict = VALUES) -> None:
        if not isinstance(found, dict):
            fail(f"{name} is {type(found).__name__}, expected an object")
        for field, kind in expected.items():
            if field not in found:
                fail(f"{name} has no field {field!r}")
            if not isinstance(found[field], kind) or (isinstance(found[field], bool) and kind is not bool):
                fail(f"{name} has {field} = {found[field]!r}, which is of the wrong type")
            if field in values and found[field] not in values[field]:
                fail(f"{name} has {field} = {found[field]!r}, expected one of {', '.join(values[field])}")

    if isinstance(result, dict) and isinstance(result.get("schema"), int) and result["schema"] != SCHEMA:
        fail(f"has schema {result['schema']}, this version reads {SCHEMA}: measure again with `make bench`")
    fields("the file", result, TOP_FIELDS)
    if not isinstance(result.get("kernels", []), list):
        fail("the file has kernels that are no list")
    kinds = {
        "row": (result["rows"], ROW_FIELDS, VALUES),
        "kernel": (result.get("kernels", []), KERNEL_FIELDS, KERNEL_VALUES),
    }
    for kind, (rows, expected, values) in kinds.items():
        for k, row in enumerate(rows):
            fields(f"{kind} {k}", row, expected, values)
            if not 0 < row["q1"] <= row["median"] <= row["q3"]:
                fail(f"{kind} {k} has quartiles out of order: {row['q1']}, {row['median']}, {row['q3']}")
    for k, row in enumerate(result.get("kernels", [])):
        try:
            possible(row)
        except UserError as error:
            fail(f"kernel {k}: {error}")
    for k, entry in enumerate(result["not_run"]):
        fields(f"not_run {k}", entry, NOT_RUN_FIELDS)


def shown(path: Path) -> str:
    """A path as the reader knows it: from the root of the repository where possible."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def select(result: dict, **facts: object) -> list[dict]:
    """The rows of a result that have all the given facts: `select(result, device="cpu", grads="all")`."""
    return [row for row in result["rows"] if all(row[fact] == value for fact, value in facts.items())]


def size_of(row: dict) -> str:
    """The size of a row as it is printed: 'B16 I32 S128'."""
    return f"B{row['B']} I{row['I']} S{row['S']}"


def unique(rows: list[dict], fact: str | None = None) -> list:
    """The values of a fact over rows (of the size without one), each once, in order of appearance."""
    return list(dict.fromkeys(size_of(row) if fact is None else row[fact] for row in rows))


def size_in_memory(row: dict | None) -> str:
    """The bytes saved for backward, in KiB, or from one MiB on in MiB."""
    if row is None:
        return "not run"
    size = row["saved_bytes"]
    return f"{size / 2**20:,.1f} MiB" if size >= 2**20 else f"{size / 2**10:,.0f} KiB"


# The kernels alone --------------------------------------------------------------------------------------


def gb_per_second(row: dict) -> float | None:
    """The speed of a kernel in GB/s of the bytes that it has to read and write; None where nobody counted them."""
    return row["bytes"] / row["median"] / 1e3 if row["bytes"] else None


def share_of_copy(row: dict) -> float | None:
    """That speed as a share of a copy's in the same run; also the share of the floor, which is its bytes at that."""
    speed = gb_per_second(row)
    return speed / row["copy_gb_per_second"] if speed else None


def possible(row: dict) -> None:
    """Raises `UserError` for a kernel that would be faster than the memory that it reads and writes."""
    speed, limit = gb_per_second(row), max(row["copy_gb_per_second"], row["sum_gb_per_second"])
    if speed and speed > MOST * limit:
        raise UserError(
            f"{row['name']}, {row['pass']}, has {speed / limit:.2f} times the speed of memory, which cannot be: "
            "it does not touch all its bytes, or finds them in the cache"
        )


def kernel_cells(row: dict) -> list[str]:
    """What tables say of a kernel: launches, microseconds with quartiles, GB/s and its share of a copy's."""
    time = f"{row['median']:,.1f} ({row['q1']:,.1f} to {row['q3']:,.1f})"
    speed, share = gb_per_second(row), share_of_copy(row)
    return [str(row["kernels"]), time, *([f"{speed:,.0f}", f"{share:.0%}"] if speed else ["", ""])]


def device_name(result: dict, device: str) -> str:
    """The hardware that a result's rows of `device` ran on."""
    return result["machine"]["gpu" if device == "cuda" else "cpu"] or device


# Whether a row still speaks of the code that is here --------------------------------------------------


def kept(new: dict, path: Path, measured: Sequence[str]) -> dict:
    """The record at `path` with the date of `new`, and the hashes of the sources that are measured now.

    Raises `UserError` where it is of another machine or of other versions: one record speaks of one machine.
    """
    old = json.loads(path.read_text())
    facts = [(record["machine"]["gpu"], record["machine"]["driver"], record["versions"]) for record in (old, new)]
    if facts[0] != facts[1]:
        raise UserError(f"{shown(path)} is of another machine or of other versions; measure all of it")
    return old | {"date": new["date"], "sources": old["sources"] | {name: new["sources"][name] for name in measured}}


def source_hash(stage: Stage) -> str:
    """A hash of the sources that a measurement of the stage depends on, without comments and blank lines."""
    return hash_of(stage.folder)


def hash_of(folder: Path) -> str:
    """The same of any folder laid out as a stage's."""
    digest = hashlib.sha256()
    csrc = (path for path in (folder / "csrc").rglob("*") if path.suffix in CPP_SUFFIXES)
    for path in [folder / "lltm.py", folder / "setup.py", *sorted(csrc)]:
        if path.is_file():
            code = python_code(path.read_text()) if path.suffix == ".py" else cpp_code(path.read_text())
            digest.update(f"{path.relative_to(folder).as_posix()}\n{code}\n".encode())
    return digest.hexdigest()


def is_stale(row: dict, result: dict) -> bool:
    """Whether the sources behind a row have changed since. Eager and torch.compile run stage 1's code."""
    stage = stages.find(1 if row["stage"] is None else row["stage"])
    return result["sources"].get(str(stage.number)) != source_hash(stage)


def python_code(source: str) -> str:
    """Python without comments, docstrings and blank lines: what can change a result or a time."""
    lines = source.splitlines(keepends=True)
    spans = []  # (first line, column, last line, column), lines from 1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            spans.append((*token.start, *token.end))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                start = column(lines, first.lineno, first.col_offset)
                end = column(lines, first.end_lineno, first.end_col_offset)
                spans.append((first.lineno, start, first.end_lineno, end))
    for first, start, last, end in sorted(spans, reverse=True):
        kept = lines[first - 1][:start] + lines[last - 1][end:]
        lines[first - 1 : last] = [kept] + ["\n"] * (last - first)
    return without_blank_lines("".join(lines))


def column(lines: list[str], number: int, offset: int) -> int:
    """A column in characters; `ast` counts bytes of UTF-8."""
    return len(lines[number - 1].encode()[:offset].decode())


CPP_SUFFIXES = (".cpp", ".cu", ".h", ".cuh")
CPP_PARTS = re.compile(
    r"""R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"   # a raw string
      | "(?:\\.|[^"\\\n])*"                            # a string
      | (?<![0-9A-Za-z])'(?:\\.|[^'\\\n])+'            # a character, not the ' in 1'000
      | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)""",
    re.DOTALL | re.VERBOSE,
)


def cpp_code(source: str) -> str:
    """C++ or CUDA without comments, blank lines and indentation."""
    code = CPP_PARTS.sub(lambda part: " " if part["comment"] else part[0], source)
    return without_blank_lines("\n".join(" ".join(line.split()) for line in code.splitlines()))


def without_blank_lines(code: str) -> str:
    """The lines that say something, without spaces at their ends."""
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())
