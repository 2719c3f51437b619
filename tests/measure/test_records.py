"""Results as JSON: what is written is read again, what is wrong is named, and changed sources make rows stale."""

import copy
import json

import pytest

from common import stages
from common.errors import UserError
from common.results import machine, records, sources
from common.results.rows import device_name, select, unique
from common.stages import Stage
from support.measurement import measurement


@pytest.fixture
def made() -> dict:
    result = measurement()
    del result["name"]
    return result


def test_what_is_written_is_read_again(tmp_path, made):
    path = tmp_path / "new" / "rtx-4090.json"
    records.write_result(made, path)
    assert records.read_result(path) == made | {"name": "rtx-4090"}
    assert [file.name for file in path.parent.iterdir()] == ["rtx-4090.json"]


def test_the_last_measurement_is_named_this_machine(tmp_path, made, monkeypatch):
    monkeypatch.setattr(records, "MEASURED", tmp_path / "bench.json")
    monkeypatch.setattr(records, "RECORDED", tmp_path / "recorded")
    assert records.read_measured() is None
    assert records.read_all() == []
    records.write_result(made, tmp_path / "recorded" / "b.json")
    records.write_result(made, tmp_path / "recorded" / "a.json")
    records.write_result(made, records.MEASURED)
    assert [result["name"] for result in records.read_all()] == ["this machine", "a", "b"]


def test_a_quick_measurement_is_not_recorded(tmp_path, made, monkeypatch):
    monkeypatch.setattr(records, "RECORDED", tmp_path)
    records.write_result(made | {"quick": True}, tmp_path / "laptop.json")
    with pytest.raises(UserError, match=r"docs/results/laptop.json is a quick measurement"):
        records.read_recorded()


def test_a_failed_write_keeps_the_old_file(tmp_path, made):
    path = tmp_path / "bench.json"
    records.write_result(made, path)
    broken = copy.deepcopy(made)
    del broken["rows"][0]["median"]
    with pytest.raises(UserError, match="row 0 has no field 'median'"):
        records.write_result(broken, path)
    assert records.read_result(path)["rows"] == made["rows"]
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*folder.json: Is a directory"):
        records.write_result(made, tmp_path / "folder.json")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bench.json", "folder.json"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("schema",), 99, "has schema 99, this version reads 1: measure again with `make bench`"),
        (("machine",), "fast", "the file has machine = 'fast', which is of the wrong type"),
        (("quick",), 0, "the file has quick = 0, which is of the wrong type"),
        (("rows", 3), "row", "row 3 is str, expected an object"),
        (("rows", 0, "median"), "12", "row 0 has median = '12', which is of the wrong type"),
        (("rows", 0, "samples"), True, "row 0 has samples = True, which is of the wrong type"),
        (("rows", 0, "median"), 1e9, "row 0 has quartiles out of order"),
        (("rows", 1, "pass"), "backward", "row 1 has pass = 'backward', expected one of forward, forward+backward"),
        (("rows", 1, "device"), "tpu", "row 1 has device = 'tpu', expected one of cpu, cuda"),
        (("rows", 1, "maths"), "fast", "row 1 has maths = 'fast', expected one of IEEE, TF32"),
        (("not_run",), [{"name": "stage 3"}], "not_run 0 has no field 'device'"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, made, place, value, message):
    *path, last = place
    part = made
    for key in path:
        part = part[key]
    part[last] = value
    file = tmp_path / "laptop.json"
    file.write_text(json.dumps(made))
    with pytest.raises(UserError) as error:
        records.read_result(file)
    assert message in str(error.value)
    assert "laptop.json" in str(error.value)


@pytest.mark.parametrize(("text", "message"), [("{", "not JSON"), ("[]", "the file is list, expected an object")])
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UserError, match=message):
        records.read_result(tmp_path / "x.json")
    with pytest.raises(UserError, match="No such file"):
        records.read_result(tmp_path / "y.json")


def test_later_versions_may_say_more(tmp_path, made):
    made["copies"] = [{"gigabytes_per_second": 4300}]
    made["rows"][0]["note"] = "more"
    records.write_result(made, tmp_path / "more.json")
    assert records.read_result(tmp_path / "more.json")["copies"] == made["copies"]


def test_selecting_rows():
    result = measurement(gpu="NVIDIA H200")
    rows = select(result, device="cuda", grads="all", name="stage 2")
    assert len(rows) == 4
    assert unique(rows) == ["B16 I32 S128", "B4096 I1024 S1024"]
    assert unique(result["rows"], "device") == ["cpu", "cuda"]
    assert device_name(result, "cuda") == "NVIDIA H200"
    assert device_name(result, "cpu") == "Abacus 9000"


def test_every_recorded_file_is_sound():
    for result in records.read_recorded():
        assert result["rows"] or result["sequences"], result["name"]


# Stale rows -----------------------------------------------------------------------------------------------------

PYTHON = '''"""The cell."""

import torch


def lltm(x):
    """One step."""
    text = "# no comment"
    return x * 2, text
'''
CPP = """// The cell.
#include <torch.h>

int64_t f(int64_t x) { return x * 2; }
const char* page = "https://pytorch.org";
"""


@pytest.fixture
def stage(tmp_path) -> Stage:
    folder = tmp_path / "stage2_toy"
    (folder / "csrc").mkdir(parents=True)
    (folder / "lltm.py").write_text(PYTHON)
    (folder / "csrc" / "lltm.cpp").write_text(CPP)
    (folder / "setup.py").write_text("setup(flags=['-O2'])\n")
    return Stage(2, str(folder), "cell", "Toy", ("host",))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("lltm.py", "def lltm(x):", "def lltm(x):  # ünïcode comment"),
        ("lltm.py", "import torch\n", "# a line of its own\nimport torch\n\n\n"),
        ("lltm.py", '"""One step."""', '"""One step,\n\n    told at länger length.\n    """'),
        ("lltm.py", '"""The cell."""\n', ""),
        ("csrc/lltm.cpp", "// The cell.", "/* The cell,\n   told at length: \"quoted\" and 'c'. */"),
        ("csrc/lltm.cpp", "x * 2; }", "x * 2; }  // twice"),
        ("csrc/lltm.cpp", "return x * 2;", "return /* twice */ x * 2;"),
        ("csrc/lltm.cpp", "int64_t f", "\n\n    int64_t f"),
        ("csrc/lltm.cpp", "return x * 2;", "return x\n          * 2;"),
    ],
)
def test_words_do_not_make_a_row_stale(stage, file, old, new):
    before = sources.hash_stage(stage)
    change(stage, file, old, new)
    assert sources.hash_stage(stage) == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("lltm.py", "x * 2", "x * 3"),
        ("lltm.py", "# no comment", "# no comment at all"),
        ("csrc/lltm.cpp", "x * 2", "x * 3"),
        ("csrc/lltm.cpp", "https://pytorch.org", "https://example.org"),
        ("setup.py", "-O2", "-O3"),
    ],
)
def test_code_makes_a_row_stale(stage, file, old, new):
    before = sources.hash_stage(stage)
    change(stage, file, old, new)
    assert sources.hash_stage(stage) != before


def change(stage: Stage, file: str, old: str, new: str) -> None:
    path = stage.folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_new_or_renamed_source_makes_a_row_stale(stage):
    before = sources.hash_stage(stage)
    (stage.folder / "csrc" / "notes.txt").write_text("no source")
    assert sources.hash_stage(stage) == before
    (stage.folder / "csrc" / "lltm_kernel.cu").write_text("__global__ void f() {}")
    assert sources.hash_stage(stage) != before
    (stage.folder / "csrc" / "lltm_kernel.cu").unlink()
    (stage.folder / "csrc" / "lltm.cpp").rename(stage.folder / "csrc" / "cell.cpp")
    assert sources.hash_stage(stage) != before


def test_raw_strings_and_digit_separators_are_no_comments():
    code = 'auto a = R"x(// kept " )" )x"; int n = 1\'000\'000; // gone\nchar c = \'"\'; // gone too\n'
    assert sources.cpp_code(code) == 'auto a=R"x(//kept")")x";int n=1\'000\'000;char c=\'"\';'


def test_eager_and_torch_compile_are_as_old_as_stage_1():
    result = measurement()
    by_name = {row["name"]: row for row in result["rows"]}
    assert not any(sources.is_stale(row, result) for row in result["rows"])
    result["sources"]["1"] = "another"
    stale = {name for name, row in by_name.items() if sources.is_stale(row, result)}
    assert stale == {"eager", "torch.compile", "stage 1"}
    del result["sources"]["2"]
    assert sources.is_stale(by_name["stage 2"], result)


# The machine ----------------------------------------------------------------------------------------------------


def test_versions_are_read_from_what_programs_print(monkeypatch):
    monkeypatch.setattr(
        machine, "read_output", lambda command: "nvcc: NVIDIA\nCuda compilation tools, release 13.0, V13.0.88"
    )
    assert machine.first_version(["nvcc", "--version"], after="release ") == "13.0"
    monkeypatch.setattr(machine, "read_output", lambda command: "13")
    assert machine.first_version(["g++", "-dumpfullversion"]) == "13"
    monkeypatch.setattr(machine, "read_output", lambda command: "")
    assert machine.first_version(["nvcc"]) is None


def test_programs_that_are_not_there_print_nothing():
    assert machine.read_output(["no-such-program-anywhere"]) == ""
    assert machine.read_output(["false"]) == ""


def test_clocks_as_nvidia_smi_prints_them(monkeypatch):
    monkeypatch.setattr(machine, "read_output", lambda command: "580.159.03, 345, 3201, 1980, [N/A]")
    assert machine.nvidia_smi() == {
        "driver": "580.159.03",
        "gpu_clocks_mhz": {"sm": 345, "memory": 3201, "sm_max": 1980, "memory_max": None},
    }
    monkeypatch.setattr(machine, "read_output", lambda command: "")
    assert machine.nvidia_smi() == {}


def test_this_machine_has_a_processor():
    facts = machine.describe_machine()
    assert facts["cpu"]
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0
    assert machine.collect_versions()["torch"]


def test_stage_1_and_2_have_sources():
    assert sources.hash_stage(stages.find_stage(1)) != sources.hash_stage(stages.find_stage(2))


def test_what_is_kept_of_a_record_is_of_the_same_machine_and_versions(tmp_path):
    old = {"date": "1", "machine": {"gpu": "A", "driver": "5"}, "versions": {"torch": "2"}, "rows": [1]}
    old["sources"] = {"3": "x", "6": "y"}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    new = {**old, "date": "2", "sources": {"3": "changed", "6": "new"}, "rows": []}
    assert records.keep_other_parts(new, path, ["6"]) == old | {"date": "2", "sources": {"3": "x", "6": "new"}}
    for changes in ({"versions": {"torch": "3"}}, {"machine": {"gpu": "B", "driver": "5"}}):
        with pytest.raises(UserError, match="from another machine or other versions; measure all of it again"):
            records.keep_other_parts(new | changes, path, ["6"])
