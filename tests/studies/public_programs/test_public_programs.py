"""The study of public programs: its list, its outcomes, and its record."""

from __future__ import annotations

import pytest

from common import study
from common.errors import UserError
from common.studies.public_programs import recorder
from common.studies.public_programs.program import Program
from common.studies.public_programs.programs import PROGRAMS, REPOSITORIES

# Ends with the status of its argument; with none, it writes past the end of an array.
SOURCE = """
#include <cstdlib>
const int kCount = 1 << 20;
__global__ void fill(int* x) { x[threadIdx.x] = 1; }
int main(int count, char** words) {
  int* x;
  cudaMalloc(&x, 4 * sizeof(int));
  fill<<<1, count > 1 ? 4 : 5>>>(x);
  cudaDeviceSynchronize();
  cudaFree(x);
  return count > 1 ? atoi(words[1]) : kCount >> 20;
}
"""


def test_every_program_belongs_to_a_repository_and_is_listed_once():
    names = [(program.repository, program.name) for program in PROGRAMS]
    assert len(set(names)) == len(names)
    assert {repository for repository, _ in names} == set(REPOSITORIES)


def test_the_record_has_every_program():
    rows = [row for record in recorder.read_record().values() for row in record["rows"]]
    names = {(row["repository"], row["name"]) for row in rows}
    assert names == {(one.repository, one.name) for one in PROGRAMS}
    assert len(names) == len(rows)


@pytest.mark.needs("g++")
@pytest.mark.proof("studies")
def test_the_outcomes_are_told_apart(tmp_path):
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "fill.cu").write_text(SOURCE)
    (folder / "typo.cu").write_text(SOURCE.replace("__global__", "__globl__"))

    def outcome(source: str, *arguments: str) -> tuple[str, str]:
        row = recorder.try_program(Program("clone", (source,), arguments=arguments), tmp_path)
        return row["outcome"], row["reason"]

    assert outcome("fill.cu", "0") == ("right", "")
    assert outcome("fill.cu", "3")[0] == "wrong"
    assert outcome("fill.cu", "2")[0] == "waived"
    kind, reason = outcome("fill.cu")
    assert (kind, "writes past the end of x" in reason) == ("reported", True)
    kind, reason = outcome("typo.cu")
    assert (kind, "__globl__" in reason) == ("does not build", True)
    assert outcome("missing.cu")[0] == "not run"
    (folder / "handle.cu").write_text("#include <cublas_v2.h>\nint main() { return int(cublasSsymm(nullptr)); }\n")
    kind, reason = outcome("handle.cu")
    assert (kind, "the emulator does not support cublasSsymm" in reason) == ("not supported", True)
    (folder / "flag.cu").write_text("int main() { return MACRO; }\n")
    row = recorder.try_program(Program("clone", ("flag.cu",), compiler_flags=("-DMACRO=0",)), tmp_path)
    assert row["outcome"] == "right"


def test_a_repository_that_is_not_there_keeps_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(recorder, "PROGRAMS", (Program("SGEMM_CUDA", ("a.cu",)), Program("llm.c", ("b.cu",))))
    monkeypatch.setattr(recorder, "run", lambda *_: recorder.Ran(0, "", 1.0))
    for name, source in (("SGEMM_CUDA", "a.cu"), ("llm.c", "b.cu")):
        folder = tmp_path / f"only {name}"
        (folder / name).mkdir(parents=True)
        (folder / name / source).touch()
        assert recorder.record_outcomes(folder) == 0
    assert {name: [row["outcome"] for row in record["rows"]] for name, record in recorder.read_record().items()} == {
        "SGEMM_CUDA": ["right"],
        "llm.c": ["right"],
    }
    assert recorder.record_outcomes(tmp_path) == 1


def test_sizes_are_replaced_in_a_copy(tmp_path):
    (tmp_path / "sizes.cu").write_text(SOURCE)
    smaller = Program("clone", ("sizes.cu",), smaller=(("1 << 20", "1 << 10"),))
    work = tmp_path / "work"
    work.mkdir()
    (copy,) = recorder.shrink(smaller, tmp_path, work)
    assert copy.read_text() == SOURCE.replace("1 << 20", "1 << 10")
    assert (tmp_path / "sizes.cu").read_text() == SOURCE
    with pytest.raises(UserError, match="is in no source of sizes"):
        recorder.shrink(Program("clone", ("sizes.cu",), smaller=(("1 << 30", "1"),)), tmp_path, work)
