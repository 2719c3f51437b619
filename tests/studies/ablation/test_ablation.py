"""Stage 6 without its optimisations: every variant is right, and what was measured is shown as it was recorded."""

from __future__ import annotations

import itertools
import json
import math
import re

import pytest
import torch

from common import study
from common.build import library, targets
from common.cell.case import Case, difference, outputs
from common.commands import optimisations
from common.errors import UserError
from common.gpu_tools import ncu_tool
from common.paths import ROOT
from common.results import formatting, records
from common.results.rows import select
from common.stages import find_stage
from common.studies.ablation import STUDY, variants
from common.studies.ablation import recorder as ablation
from common.studies.ablation.table import ablation_summary, ablation_table, speedup
from support.proofs.files import stage_files

proof = pytest.mark.proof("ablations", files=[*stage_files(6), "stages/stage6_fused/ablation/*"])

SMALL = Case(3, 5, 7)
CASES = [
    SMALL,
    Case(70, 9, 33, dtype=torch.float64, layout="transposed"),
    Case(5, 4, 40, dtype=torch.bfloat16, grads="h only"),
    Case(2, 3, 5, layout="sliced", grads="cell only"),
    Case(16, 32, 128, grads="expanded", requires_grad=("bias", "old_h")),
]


# The sources -------------------------------------------------------------------------------------------------------


def test_ideas_can_be_left_out_in_every_combination():
    """Those that are used, and all others; each leaves files of its own behind."""
    seen = set()
    for count in range(len(optimisations.OPTIMISATIONS) + 1):
        for out in itertools.combinations(optimisations.OPTIMISATIONS, count):
            seen.add(tuple(optimisations.sources_without(out).values()))
    assert len(seen) == 2 ** len(optimisations.OPTIMISATIONS)


def test_the_whole_stage_is_the_stage():
    for name, text in optimisations.sources_without(()).items():
        assert text == (find_stage(6).folder / name).read_text()


def test_every_diff_is_an_idea_that_is_explained():
    assert sorted(path.stem for path in optimisations.DIFFS.glob("*.diff")) == sorted(optimisations.OPTIMISATIONS)
    for optimisation, devices in optimisations.OPTIMISATIONS.items():
        assert re.fullmatch(r"[A-Z].{20,110}\.", optimisations.describe(optimisation))
        assert set(devices) <= set(ablation.DEVICES)


def test_an_idea_that_is_for_one_device_leaves_the_code_of_the_other_alone():
    whole = optimisations.sources_without(())
    for optimisation, devices in optimisations.OPTIMISATIONS.items():
        changed = {
            name for name, text in optimisations.sources_without([optimisation]).items() if text != whole[name]
        }
        of_cpu = {name for name in changed if re.search("_cpu|_simd", name)}
        of_gpu = {name for name in changed if re.search(r"\.cu$|_cuda|_gates", name)}
        assert devices == ("cuda",) * bool(changed - of_cpu) + ("cpu",) * bool(changed - of_gpu)


def test_a_diff_that_no_longer_fits_is_named(monkeypatch, tmp_path):
    old = optimisations.read_diff("small")
    for path in optimisations.DIFFS.glob("*.diff"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "small.diff").write_text(old.replace("-  return B <= 256", "-  return B <= 255"))
    monkeypatch.setattr(optimisations, "DIFFS", tmp_path)
    optimisations.sources_without(["bias"])
    with pytest.raises(UserError, match=r"small\.diff does not fit csrc/lltm_cuda\.cpp .*not found"):
        optimisations.sources_without(optimisations.OPTIMISATIONS)
    (tmp_path / "small.diff").write_text(old.replace("lltm_cuda.cpp", "lltm_gone.cpp"))
    with pytest.raises(UserError, match=r"small\.diff does not fit csrc/lltm_gone\.cpp"):
        optimisations.sources_without(["small"])


# What is built of them: little, for that takes long; `make ablation` checks every variant before it is timed. -----


@pytest.fixture(scope="module")
def bare():
    """The library of the stage without any optimisation, for a CPU."""
    return variants.build_variants([variants.BARE], "host")


@proof
@proof
@pytest.mark.needs("g++")
def test_the_stage_without_any_idea_is_right_on_a_cpu(bare):
    module = variants.load_variant(variants.BARE, bare["none", "host"], "host")
    for case in CASES:
        assert difference(case, outputs(module.lltm, case)) is None


@proof
@proof
@pytest.mark.needs("g++")
def test_what_is_kept_for_backward_is_as_large_with_gates(bare):
    """Recomputing saves traffic, not memory: z is as large as the gates."""
    from common.cell.memory import saved_bytes

    module, case = (
        variants.load_variant(variants.BARE, bare["none", "host"], "host"),
        Case(16, 32, 128),
    )
    arguments = list(case.inputs().values())
    assert (
        saved_bytes(lambda: module.lltm(*arguments), without=arguments) == 4 * 16 * (3 + 1) * 128
    )  # gates, new_cell


@proof
@pytest.mark.needs("g++")
def test_a_library_is_found_again_and_shared_by_equal_sources(bare, monkeypatch):
    monkeypatch.setattr(variants, "compile_variants", None)
    same = variants.Variant("the same", tuple(optimisations.OPTIMISATIONS)[::-1])
    assert variants.build_variants([variants.BARE, same], "host") == bare | {
        (same.name, "host"): bare["none", "host"]
    }
    in_python, in_cpp = (
        variants.write_sources(variants.without("autograd")),
        variants.write_sources(variants.WHOLE),
    )
    assert library.folder_key(in_python, "host") == library.folder_key(in_cpp, "host")


@pytest.mark.needs("g++")
def test_what_does_not_compile_is_named(monkeypatch):
    def broken(out, original=variants.sources_without):
        return dict.fromkeys(original(out), "int wrong = ;\n") | {"setup.py": original(out)["setup.py"]}

    monkeypatch.setattr(variants, "sources_without", broken)
    with pytest.raises(UserError, match=r"broken/csrc/lltm\w*\.cpp does not compile(.|\n)*\.cpp:1"):
        variants.build_variants([variants.Variant("broken", ())], "host")


EMULATED = [variants.BARE, variants.without("recomputed")]


@pytest.fixture(scope="module")
def emulated():
    return {(variant.name, "emulator"): variants.build_variant_for_emulator(variant) for variant in EMULATED}


@proof
@pytest.mark.needs("g++")
@pytest.mark.parametrize("variant", EMULATED, ids=lambda variant: variant.name)
def test_a_variant_on_the_emulator_is_right(emulated, variant):
    module = variants.load_variant(variant, emulated[variant.name, "emulator"], "emulator")
    for case in CASES[:4]:
        assert difference(case, outputs(module.lltm, case)) is None


@proof
@pytest.mark.needs("g++")
def test_what_ideas_save_is_counted(emulated, monkeypatch):
    """By hand: 5 tensors stored forward, with 4 numbers or one of each lane in a request; and who runs what."""
    monkeypatch.setattr(ablation, "COUNTED_VARIANTS", EMULATED)
    monkeypatch.setattr(ablation, "COUNTED_CELL", (4, 2, 32))
    rows, _ = ablation.count_variants(emulated)
    units = math.prod(ablation.COUNTED_POINTWISE)
    for name, size in (("none", 1), ("without recomputed", 4)):
        [found] = [
            row for row in rows if row["kernel"] == "forward_kernel" and row["name"] == name and is_pointwise(row)
        ]
        for use, tensors in (("load", 4), ("store", 5)):
            assert found["emulator"][f"global {use}"]["bytes"] == tensors * 4 * units
            assert found["emulator"][f"global {use}"]["requests"] == tensors * units // (32 * size)
            assert found["emulator"][f"global {use}"]["sectors"] == tensors * units // 8
    kernels = {name: [row["kernel"] for row in rows if row["name"] == name and not is_pointwise(row)]
               for name in ("none", "without recomputed")}  # fmt: skip
    assert kernels == {
        "none": ["forward_kernel", "backward_kernel"],  # its products are torch's
        "without recomputed": ["cell_kernel", "backward_kernel", "products_kernel"],
    }


def is_pointwise(row: dict) -> bool:
    return row["what"].startswith("pointwise part")


# The record --------------------------------------------------------------------------------------------------------


def row(name: str, median: float, **facts: object) -> dict:
    same = {"name": name, "device": "cpu", "B": 16, "I": 32, "S": 128, "pass": "forward", "dtype": "float32",
            "maths": "IEEE", "threads": 2, "saved_bytes": 2048, "median": median, "ratio": median / 100}  # fmt: skip
    return same | facts


@pytest.fixture
def record() -> dict:
    names = {"eager": 100.0, "all": 50.0, "without bias": 60.0, "none": 90.0, "only bias": 81.0}
    both = [row(name, median, **{"pass": p}) for name, median in names.items() for p in formatting.PASSES]
    kernels = [
        {"name": n, "B": 64, "S": 128, "pass": "forward", "median": m} for n, m in (("all", 2.0), ("none", 3.0))
    ]
    used = {"global load": {"bytes": 1024, "requests": 8, "sectors": 32}}
    counted = {"name": "all", "what": "pointwise part, B64 S512", "pass": "forward", "kernel": "forward_kernel"}
    return {
        "date": "2026-11-22T10:00:00Z",
        "machine": {"cpu": "A CPU", "gpu": "A GPU"},
        "versions": {"torch": "2.11.0+cu130"},
        "sources": variants.hash_ablation(),
        "rows": both,
        "kernels": kernels,
        "counts": [counted | {"emulator": used, "ncu": None, "refused": "no ncu"}],
        "not_run": {},
    }


def cells(text: str, first: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_tables_of_a_record(record):
    text = ablation_table({**record, "kernels": [], "counts": []})
    assert cells(text, "eager") == ["100 (0.50)", "100 (0.50)", "2 KiB"]
    assert cells(text, "the stage") == ["50 (1.00)", "50 (1.00)", "2 KiB"]
    assert cells(text, "without `bias`") == ["60 (0.83)", "60 (0.83)", "2 KiB"]
    assert cells(text, "only `bias`") == ["81 (1.11)", "81 (1.11)", "2 KiB"]
    assert optimisations.describe("bias") in text
    assert "Stale" not in text
    text = ablation_table({**record, "rows": [], "counts": []})
    assert cells(text, "no optimisation") == ["3.0 (1.00)"]
    text = ablation_table({**record, "rows": [], "kernels": []})
    assert cells(text, "`forward_kernel`")[-5:] == ["1.0", "8", "not measured", "32", "not measured"]
    assert "no ncu" in text


def test_the_summary_has_a_line_for_each_optimisation_of_the_kernels(record):
    kernels = [{"name": "without bias", "B": 64, "S": 128, "pass": "forward", "median": 2.5}, *record["kernels"]]
    text = ablation_summary(record | {"kernels": kernels})
    assert cells(text, "without `bias`") == ["2.5 (0.80)"]
    assert "no optimisation" not in text
    assert text.endswith("[ablation](../../docs/results/ablation.md).")


def test_a_row_without_a_time_is_left_out(record):
    text = ablation_table({**record, "rows": [row for row in record["rows"] if row["name"] != "without bias"]})
    assert "without `bias`" not in text


def test_a_record_of_other_sources_is_stale(record, monkeypatch):
    assert ablation_table(record | {"sources": "others"}).startswith("Stale")
    monkeypatch.setattr(variants, "read_diff", lambda optimisation: "another text")
    assert ablation_table(record).startswith("Stale")


def test_a_record_is_read_back_and_a_broken_one_is_named(record, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path)
    path = STUDY.record()
    with pytest.raises(UserError, match=r"ablation\.json: .*No such file"):
        ablation.read_recorded_ablation()
    records.save(record, path)
    assert ablation.read_recorded_ablation() == record
    path.write_text(json.dumps({"rows": []}))
    with pytest.raises(UserError, match=r"ablation\.json has no date, machine"):
        ablation.read_recorded_ablation()
    path.write_text("{")
    with pytest.raises(UserError, match=r"ablation\.json"):
        ablation.read_recorded_ablation()


def test_parts_of_the_same_sources_are_kept(record, tmp_path):
    from common.results import machine

    path = tmp_path / "ablation.json"
    versions = machine.collect_versions() | {"ncu": ncu_tool.ncu_version() if ncu_tool.find_ncu() else None}
    here = record | {"versions": versions, "machine": machine.describe_machine()}
    records.save(here, path)
    assert ablation.resume_record(path)["rows"] == record["rows"]
    for other in ({"sources": "others"}, {"machine": {"cpu": "another", "gpu": None}}, {"versions": {}}):
        records.save(here | other, path)
        assert ablation.resume_record(path)["rows"] == []


def test_what_needs_a_gpu_is_refused_without_one(monkeypatch):
    monkeypatch.setattr(targets, "why_unavailable", lambda target: "no GPU that torch can use")
    with pytest.raises(UserError, match="kernels cannot be measured here: no GPU that torch can use"):
        ablation.measure_ablation(only=["counts", "kernels"])


def test_what_is_recorded_has_a_row_for_every_idea():
    """Of the machine that the workbook was measured on."""
    found = ablation.read_recorded_ablation()
    for device in {row["device"] for row in found["rows"]}:
        names = {row["name"] for row in select(found, device=device)}
        assert names == {"eager", *(variant.name for variant in variants.variants_for_device(device))}
    assert ablation_table(found) in (ROOT / "docs" / "results" / "ablation.md").read_text()


def worth(record: dict, name: str, to: str, **where) -> list[float]:
    """The times of a variant at all sizes and passes, as multiples of another's."""
    found = (select(record, name=one, **where) for one in (name, to))
    return [1 / speedup(row, other) for row, other in zip(*found, strict=True)]


def test_the_readme_says_what_each_idea_is_worth():
    """Its five findings, of what is recorded."""
    record = ablation.read_recorded_ablation()
    large, small = {"device": "cuda", "B": 4096}, [{"device": "cuda", "B": B} for B in (16, 64)]
    for where in small:
        assert min(worth(record, "without small", "all", **where)) > 1.4
        assert min(worth(record, "without autograd", "all", **where)) > 1.15
    for optimisation in ("recomputed", "packs", "units", "bias", "small", "joined", "autograd"):
        assert min(worth(record, f"without {optimisation}", "all", **large)) > 0.99
        assert max(worth(record, f"without {optimisation}", "all", **large)) < 1.04
    kernels = {"rows": record["kernels"]}
    forward = {"B": 4096, "pass": "forward"}
    without = [
        worth(kernels, f"without {optimisation}", "all", **forward)[0]
        for optimisation in ("recomputed", "packs", "units")
    ]
    alone = [worth(kernels, f"only {optimisation}", "none", **forward)[0] for optimisation in ("packs", "units")]
    assert all(ratio > least for ratio, least in zip(without, (1.4, 1.2, 1.15), strict=True))
    for costs, wins in zip(without[1:], alone, strict=True):  # they need each other
        assert 0 < 1 - wins < (costs - 1) / 2
    backward = {"B": 64, "pass": "backward"}
    for optimisation in ("bias", "packs"):
        assert worth(kernels, f"without {optimisation}", "all", **backward)[0] < 1
    for B, least in ((16, 0.9), (64, 1.1), (256, 1.05)):
        on_cpu = {"device": "cpu", "B": B}
        assert least < min(worth(record, "without joined", "all", **on_cpu))
        assert min(worth(record, "without vectors", "all", **on_cpu)) > 1.5
    text = " ".join((ROOT / "stages" / "stage6_fused" / "README.md").read_text().split())
    pairs = [
        [select(record, name=name, **large, **{"pass": passes})[0]["median"] for name in ("without joined", "all")]
        for passes in ("forward", "forward+backward")
    ]
    said = [f"{two:,.0f} us instead of {one:,.0f}" for two, one in pairs]
    assert f"Forward takes {said[0]}, and with backward {said[1]}" in text
    a, b, c, packs, units = (abs(100 * (ratio - 1)) for ratio in without + alone)
    assert f"{a:.0f}, {b:.0f} and {c:.0f} % longer" in text
    assert f"But `packs` and `units` alone gain only {packs:.0f} and {units:.0f} %" in text
    one, both = (100 * (ratio - 1) for ratio in worth(record, "none", "all", **large))
    assert f"Together they gain {one:.0f} % forward and {both:.0f} % with backward" in text
