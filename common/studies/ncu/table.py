"""The recorded counts of the emulator and of Nsight Compute as tables, with a sentence wherever they differ."""

from __future__ import annotations

from collections.abc import Iterator

from ...gpu_tools import ncu_tool
from ...pages.markdown import markdown_table as table
from . import STUDY, microbenchmarks
from . import recorder as ncu

# Why a number of the tool's is another one, by kernel, space and number. A test holds that none is missing.
PREDICATED = (
    "the number of units that are left decides what a lane loads and stores; nvcc turns some of these conditions "
    "into predicates, and an instruction counts as executed even if its predicate is false for every lane of the warp"
)
CONTENDED = (
    "no two lanes of a warp access the same bank; the tool's metrics for banks also count some waits of one warp for "
    "another, at most a few hundredths of all, and their number differs between runs"
)
WHY: dict[tuple[str, str, str], str] = {
    **{(kernel, f"global {use}", "instructions"): PREDICATED
       for kernel in ("forward_kernel", "backward_kernel") for use in ("load", "store")},
    **{("products_kernel", f"shared {use}", what): CONTENDED
       for use in ("load", "store") for what in ("wavefronts", "conflicts")},
}  # fmt: skip


def ncu_table() -> str:
    """The recorded launches as two tables: the microbenchmarks with their counts by hand, and the stages' kernels."""
    if not STUDY.record().exists():
        return "Not counted yet: `make ncu` on a machine with a GPU that lets ncu work."
    record, notes = ncu.read_ncu_record(), {}
    hand, small, of_stages = microbenchmarks.read_expected_counts(), [], []
    for launch in record["launches"]:
        kernel = f"`{launch['kernel']}`"
        for space, *both in launch_cells(launch, notes):
            if launch["stage"] is None:
                expected = format_numbers(add_instructions(hand[launch["kernel"]].get(space, {})), space)
                small.append([kernel, space_label(space), expected, *both])
            else:
                of_stages.append(
                    [
                        f"stage {launch['stage']}",
                        kernel,
                        ncu_tool.KernelCase.of(launch).size,
                        space_label(space),
                        *both,
                    ]
                )
    head = ["emulator", "ncu", "ncu / emulator"]
    said = "".join(f"\n\n{mark}: {text}" for text, mark in notes.items())
    return "\n\n".join(
        [
            f"{describe_record(record)} {ncu.summarise_agreement(record)}{list_stale(record)}",
            table(["kernel", "what", "by hand", *head], small, left=2),
            table(["", "kernel", "size", "what", *head], of_stages, left=4) + said,
        ]
    )


def describe_record(record: dict) -> str:
    """The machine and the versions, if the tool has run."""
    if not record["machine"]:
        return "ncu: not measured yet."
    versions = record["versions"]
    return (
        f"ncu {versions['ncu']} on {record['machine']['gpu']}, nvcc {versions['nvcc']}, "
        f"torch {versions['torch'].partition('+')[0]}, {record['date'][:10]}."
    )


def list_stale(record: dict) -> str:
    """Which of the programs have changed since the tool counted them."""
    known = {name: program.source_hash() for name, program in ncu.counted_programs().items()}
    changed = [name for name, old in record["sources"].items() if known.get(name) != old]
    return f"\n\nStale, because the sources have changed since: {', '.join(changed)}." if changed else ""


def space_label(space: str) -> str:
    """A space, and the numbers that stand in its cells."""
    return f"{space}: {' / '.join(ncu_tool.NUMBERS[space])}"


def format_numbers(found: dict[str, int], space: str) -> str:
    """The numbers of a cell."""
    return " / ".join(f"{found.get(what, 0):,}" for what in ncu_tool.NUMBERS[space])


def add_instructions(hand: dict[str, int]) -> dict[str, int]:
    """Counts by hand, which are of requests: each is an instruction that a warp executes."""
    return hand | {"instructions": hand.get("requests", 0)}


def launch_cells(launch: dict, notes: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Space, the emulator's numbers, the tool's, and how they compare, for each space that a launch uses."""
    for space in ncu.spaces_of(launch):
        ours = launch["emulator"].get(space, {})
        if launch["ncu"] is None:
            yield space, format_numbers(ours, space), f"not measured ({note_mark(launch['refused'], notes)})", ""
            continue
        theirs = launch["ncu"].get(space, {})
        wrong = [what for what in ncu_tool.NUMBERS[space] if ours.get(what, 0) != theirs.get(what, 0)]
        reasons = dict.fromkeys(WHY.get((launch["kernel"], space, what), "not explained yet") for what in wrong)
        marks = "".join(f" ({note_mark(reason, notes)})" for reason in reasons)
        yield (
            space,
            format_numbers(ours, space),
            format_numbers(theirs, space),
            format_ratios(ours, theirs, space) + marks,
        )


def format_ratios(ours: dict[str, int], theirs: dict[str, int], space: str) -> str:
    """The tool's numbers as multiples of ours; one for all where all are the same."""
    found = []
    for what in ncu_tool.NUMBERS[space]:
        mine, other = ours.get(what, 0), theirs.get(what, 0)
        found.append("1" if mine == other else f"{other / mine:.3g}" if mine else "-")
    return "1" if set(found) == {"1"} else " / ".join(found)


def note_mark(text: str, notes: dict[str, str]) -> str:
    """The mark of a note; each text is one note."""
    return notes.setdefault(text, f"note {len(notes) + 1}")
