"""What the notebooks say of times, held against what is recorded: of an H200, which they quote, and of a CPU."""

from __future__ import annotations

import re

import pytest

from common import stages
from common.measure.bench import FULL
from common.results import records
from common.results.rows import share_of_copy, size_label, unique
from common.studies import compare_tools, sanitize, sequence
from common.studies.sequence.step_chart import parts_of_step

SMALL, LARGE = (16, 32, 128), (64, 1024, 128)  # B, I, S


@pytest.fixture(scope="module")
def machine() -> dict:
    return records.read_result(records.RECORDED / "h200.json")


def row_of(machine: dict, **wanted: object) -> dict:
    """The only row with these values; gradients for all inputs unless told otherwise."""
    wanted = {"grads": "all", "maths": "IEEE", **wanted}
    (row,) = [row for row in machine["rows"] if all(row[key] == value for key, value in wanted.items())]
    return row


def step(machine: dict, name: str, device: str, size: tuple[int, int, int], passes: str) -> dict:
    B, I, S = size
    return row_of(machine, name=name, device=device, B=B, I=I, S=S, **{"pass": passes})


def kernels_of(machine: dict, name: str) -> dict[tuple[str, int, int], dict]:
    """The rows of the pointwise kernels of one implementation, by pass and size."""
    return {(row["pass"], row["B"], row["S"]): row for row in machine["kernels"] if row["name"] == name}


def measured() -> list[tuple[dict, str]]:
    """Every recorded machine with each device that was measured on it."""
    return [(found, device) for found in records.read_recorded() for device in unique(found["rows"], "device")]


def test_both_devices_were_measured_with_every_stage(machine):
    assert {device for _, device in measured()} == {"cpu", "cuda"}
    here = {f"stage {stage.number}" for stage in stages.cell_stages()}
    compiled = {"eager", "torch.compile", "Triton"}
    of_gpu = {row["name"] for row in machine["rows"] if row["device"] == "cuda"}
    last = f"stage {stages.cell_stages()[-1].number}"
    graphs = {f"CUDA graph of {name}" for name in ("eager", "torch.compile", last)}
    assert of_gpu == here | compiled | graphs | {f"torch.compile {FULL.modes[0]}"}
    assert {row["name"] for row in machine["kernels"]} == here - {"stage 1", "stage 2"} | compiled
    of_cpus = {row["name"] for found, device in measured() if device == "cpu" for row in found["rows"]}
    assert {name for name in here if "host" in stages.get_stage(int(name.split()[1])).targets} <= of_cpus


@pytest.mark.syllabus("1.3d", "1.4b")
def test_the_small_step_is_mostly_overhead():
    """29 times the arithmetic takes a few times as long: so most of the small step is not arithmetic."""

    def products(size: tuple[int, int, int]) -> int:
        B, I, S = size
        return B * (S + I) * 3 * S

    more = products(LARGE) / products(SMALL)
    for machine, device in measured():
        for passes in ("forward", "forward+backward"):
            small, large = (step(machine, "eager", device, size, passes)["median"] for size in (SMALL, LARGE))
            arithmetic = large / more  # at most this in the small one
            assert arithmetic < 0.5 * small


@pytest.mark.syllabus("1.4c")
def test_torch_compile_is_not_always_faster(machine):
    rows = [row for found, _ in measured() for row in found["rows"] if row["name"] == "torch.compile"]
    assert any(row["ratio"] > 1 for row in rows)
    eager, compiled = (kernels_of(machine, name) for name in ("eager", "torch.compile"))
    assert all(compiled[key]["kernels"] < row["kernels"] for key, row in eager.items()), "fewer kernels"
    assert all(compiled[key]["median"] < row["median"] for key, row in eager.items()), "and they are faster"


@pytest.mark.syllabus("2.8b")
def test_stage_2_keeps_less_for_backward_than_eager(machine):
    rows = [row for row in machine["rows"] if row["name"] == "stage 2"]
    assert rows
    for row in rows:
        same = {key: row[key] for key in ("device", "grads", "B", "I", "S", "pass")}
        eager = row_of(machine, name="eager", **same)
        X, block = 4 * row["B"] * (row["S"] + row["I"]), 4 * row["B"] * row["S"]
        assert row["saved_bytes"] == X + 4 * block
        assert eager["saved_bytes"] == X + 7 * block


@pytest.mark.syllabus("2.8g")
def test_the_backward_of_stage_2_is_faster_than_autograds():
    for machine, device in measured():
        for size in (SMALL, LARGE):

            def backward(name: str, machine=machine, device=device, size=size) -> float:
                both, forward = (
                    step(machine, name, device, size, passes)["median"] for passes in ("forward+backward", "forward")
                )
                return both - forward

            assert backward("stage 2") < backward("eager")


@pytest.mark.syllabus("3.7a", "3.7b")
def test_a_pass_of_stage_3_is_one_kernel(machine):
    eager, stage = kernels_of(machine, "eager"), kernels_of(machine, "stage 3")
    assert eager.keys() == stage.keys()
    assert {row["kernels"] for row in stage.values()} == {1}
    for key, row in stage.items():
        assert row["median"] < 0.6 * eager[key]["median"]


@pytest.mark.syllabus("4.3a")
def test_accessors_take_more_registers_than_pointers(machine):
    pointers, accessors = kernels_of(machine, "stage 3"), kernels_of(machine, "stage 4")
    for key, row in accessors.items():
        assert row["registers"] > pointers[key]["registers"]
        assert row["occupancy"] <= pointers[key]["occupancy"]


@pytest.mark.syllabus("4.3b")
def test_the_kernels_over_accessors_take_a_little_longer(machine):
    pointers, accessors = kernels_of(machine, "stage 3"), kernels_of(machine, "stage 4")
    assert pointers.keys() == accessors.keys()
    for key, row in accessors.items():
        assert 1 < row["median"] / pointers[key]["median"] < 1.15


@pytest.fixture(scope="module")
def sequences() -> list[dict]:
    """The times of sequences on an H200."""
    return records.read_result(records.RECORDED / "h200_sequences.json")["sequences"]


@pytest.fixture(scope="module")
def readme() -> str:
    """The text of stage 7's README."""
    return (stages.get_stage(7).folder / "README.md").read_text()


def test_stage_7_says_what_it_has_reached(sequences, readme):
    """The README's table of aims, and the sentences below it, are what is recorded."""
    lines = re.findall(
        r"\| (LSTM|LLTM), (T\d+ B\d+ I\d+ S\d+), (\w+) \| (.*) / (.*) \| (.*) \| (.*) \| (.*) \|", readme
    )
    assert len(lines) == 8
    misses, to_cudnn, to_flash = [], [], []
    for cell, size, numbers, forward, both, *shown in lines:
        wanted = {"cell": cell.lower()} | {word[0]: int(word[1:]) for word in size.split()}
        wanted |= {"dtype": numbers} if numbers == "bfloat16" else {"dtype": "float32", "maths": numbers}
        rows = [row for row in sequences if wanted.items() <= row.items()]
        own, cudnn, flash = (
            [row["median"] / 1e3 for row in rows if row["name"] == name]
            for name in ("stage 7", "cuDNN LSTM", "FlashRNN, fused")
        )
        assert shown == [" / ".join(f"{time:.2f}" for time in times) or "–" for times in (own, cudnn, flash)]
        misses += [time / float(aim) for time, aim in zip(own, (forward, both), strict=True)]
        to_cudnn += [other / time for other, time in zip(cudnn, own, strict=False)]
        to_flash += [other / time for other, time in zip(flash, own, strict=False)]
    assert f"it takes {min(misses):.1f} to {max(misses):.1f} times as long" in readme
    assert f"cuDNN takes {min(to_cudnn):.1f} to {max(to_cudnn):.1f} times as" in readme
    small, wide = to_flash[:2], to_flash[2:]
    assert f"is {min(small):.1f} to {max(small):.1f} times as fast as FlashRNN's at 512 units" in readme
    assert f"and {min(wide):.1f} times at 768" in readme


def test_stage_7_says_how_near_a_step_is_to_its_limit(readme):
    sweep, limits = (sequence.STUDY.read_record(part) for part in ("sweep", "limits"))
    parts = parts_of_step(sweep, limits)
    step, limit = sum(parts.values()), parts["product"] + parts["exchange"]
    said = " ".join(readme.split())
    assert f"needs {step:.1f} us for a step of 8 rows and 512 units, a sixth of it for the product" in said
    assert 1 / 7 < parts["product"] / step < 1 / 5
    assert f"the product and the exchange of h, is {limit:.2f} us, which is {100 * limit / step:.0f} % of it" in said
    assert (limits["machine"]["gpu"].split()[1], "the limit on an H100" in said) == ("H100", True)


def test_stage_7_says_that_it_gains_less_in_float16(sequences, readme):
    times = {
        name: [row["median"] / 1e3 for row in sequences if (row["name"], row["dtype"]) == (name, "float16")]
        for name in ("stage 7", "cuDNN LSTM")
    }
    shown = {name: f"{forward:.2f} / {both:.2f} ms" for name, (forward, both) in times.items()}
    said = " ".join(readme.split())
    assert f"cuDNN takes {shown['cuDNN LSTM']} and this stage {shown['stage 7'].removesuffix(' ms')} ms" in said
    forward, both = (cudnn / own for own, cudnn in zip(*times.values(), strict=True))
    assert f"{forward:.1f} times as fast in forward and {both:.1f} times with backward" in said


@pytest.mark.parametrize("cores", ["two", "sixteen"])
def test_stage_7_says_what_it_has_reached_on_a_cpu(cores, readme):
    """The README's table of times on a CPU, and the ratios below it, are what is recorded."""
    record = records.read_result(records.RECORDED / f"{cores}_cores_sequences.json")
    assert record["machine"]["cores"] == {"two": 2, "sixteen": 16}[cores]
    rows = [row for row in record["sequences"] if row["T"] == 128]
    times = {
        (row["cell"], row["name"].removesuffix(f" {row['cell'].upper()}"), row["pass"]): row["median"] for row in rows
    }

    def pair(cell: str, name: str, base: str = "") -> str:
        """Milliseconds of both passes, or how many times as fast as another's they are; – if it was not measured."""
        found = []
        for which in ("forward", "forward+backward"):
            if (time := times.get((cell, name, which))) is None:
                return "–"
            found.append(f"{times[cell, base, which] / time if base else time / 1e3:.2f}")
        return " / ".join(found)

    table = readme[readme.index(f"| on {cores} cores |") :]
    for cell in ("lstm", "gru", "lltm"):
        shown = " | ".join(pair(cell, name) for name in ("stage 7", "torch.nn", "eager loop"))
        (line,) = re.findall(rf"^\| {cell.upper()} \|.*", table, re.MULTILINE)[:1]
        assert line.endswith(f"| {shown} |")
    lstm, lltm = pair("lstm", "stage 7", "torch.nn"), pair("lltm", "stage 7", "eager loop")
    if cores == "two":
        assert f"the LSTM is {lstm} times as fast as `torch.nn.LSTM`" in readme
        assert f"The LLTM is {lltm} and" in readme
    else:
        assert f"on sixteen, {lstm} times," in readme
        assert f"\n{lltm} times as fast as the eager loop" in readme


@pytest.mark.syllabus("6.1b", "6.4a")
def test_stage_6_says_what_it_has_reached(machine):
    """The README's tables of aims are what is recorded."""
    text = (stages.get_stage(6).folder / "README.md").read_text()

    def reached(found: dict, size: tuple[int, int, int], device: str, grads: str) -> str:
        B, I, S = size
        same = {"name": "stage 6", "device": device, "B": B, "I": I, "S": S, "grads": grads}
        both = (row_of(found, **same, **{"pass": passes})["ratio"] for passes in ("forward", "forward+backward"))
        return " / ".join(f"{1 / ratio:.2f}" for ratio in both)

    def label_of(size: tuple[int, int, int]) -> str:
        return size_label(dict(zip("BIS", size, strict=True)))

    for size in (SMALL, (4096, 1024, 1024)):
        (line,) = re.findall(rf"\| H200, {label_of(size)} \| .*", text)
        assert line.endswith(f" | {reached(machine, size, 'cuda', 'all')} |")
    cpus = {row["threads"]: found for found, device in measured() if device == "cpu" for row in found["rows"]}
    assert f"| | aim | {' | '.join(f'{threads} threads' for threads in sorted(cpus))} |" in text
    for size in (SMALL, LARGE, (256, 256, 512)):
        (line,) = re.findall(rf"\| {label_of(size)} \| [^|]* / [^|]* \| .*", text)
        assert line.endswith(
            " | ".join(["", *(reached(cpus[n], size, "cpu", "parameters") for n in sorted(cpus))]) + " |"
        )
    kernels = kernels_of(machine, "stage 6")
    for B, S in ((8192, 4096), (4096, 1024)):
        shares = (share_of_copy(kernels[passes, B, S]) for passes in ("forward", "backward"))
        said = " / ".join(f"{100 * share:.0f} %" for share in shares)
        (line,) = re.findall(rf"\| H200, kernels at B{B} S{S} \| .*", text)
        assert line.endswith(f" | {said} |")


# compute-sanitizer ----------------------------------------------------------------------------------------------


def said(tool: str, case: str) -> dict:
    """What a tool said of one of the programs in common/emulator/programs/mistakes."""
    (row,) = [row for row in compare_tools.STUDY.read_record()["rows"] if (row["tool"], row["case"]) == (tool, case)]
    return row


@pytest.mark.syllabus("3.8a")
@pytest.mark.parametrize(
    ("tool", "wrong", "right", "message"),
    [
        ("memcheck", "wrong_guard_off_by_one", "right_guard", "Invalid __global__ read of size 4 bytes"),
        (
            "racecheck",
            "wrong_no_barrier_after_the_load",
            "right_barrier_after_the_load",
            "Race reported between Write access",
        ),
    ],
)
def test_compute_sanitizer_finds_bad_accesses_and_races(tool, wrong, right, message):
    assert said(tool, wrong)["outcome"] == "right line"
    assert message in said(tool, wrong)["message"]
    assert said(tool, right)["outcome"] == "silent"


@pytest.mark.syllabus("3.8a")
def test_compute_sanitizer_has_nothing_to_say_of_the_stages():
    rows = sanitize.STUDY.read_record()["rows"]
    assert {row["tool"] for row in rows} == {"memcheck", "racecheck", "initcheck", "synccheck"}
    assert {row["outcome"] for row in rows} == {"clean"}


@pytest.mark.syllabus("4.1d")
def test_a_kernel_cannot_follow_a_pointer_to_memory_of_the_host():
    assert said("memcheck", "wrong_host_array")["outcome"] == "right line"
    assert "illegal memory access" in said("no tool", "wrong_host_array")["message"]
