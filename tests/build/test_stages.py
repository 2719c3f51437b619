"""The table of stages. Proofs do not depend on it but on these tests, which hold every value in it fixed."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest

from common import stages
from common.errors import UserError
from common.paths import ROOT
from common.stages import Stage

BOTH = ("cuda", "host", "emulator")
TWO = ("float32", "float64")
FOUR = (*TWO, "float16", "bfloat16")
ROWS = [
    (0, "stage0_extending_python", "primer", "Extending PyTorch from Python", ("host",), None, TWO, ()),
    (1, "stage1_python", "cell", "The LLTM in Python", ("host",), None, TWO, ()),
    (2, "stage2_aten", "cell", "C++ with ATen", ("host",), None, TWO, ()),
    (3, "stage3_cuda_pointers", "cell", "CUDA kernels over raw pointers", ("cuda", "emulator"), (9, 10), TWO, ()),
    (
        4,
        "stage4_cuda_accessors",
        "cell",
        "CUDA kernels over packed accessors",
        ("cuda", "emulator"),
        (9, 10),
        TWO,
        (),
    ),
    (5, "stage5_custom_op", "cell", "A registered operator", BOTH, (9, 10), FOUR, ()),
    (6, "stage6_fused", "cell", "The fused cell", BOTH, (6, 10), FOUR, ("cell_kernel", "products_kernel")),
    (7, "stage7_sequence", "sequence", "The whole sequence in one call", BOTH, None, FOUR, ()),
    (8, "stage8_deploy", "program", "Deployment without Python", ("host",), None, TWO, ()),
    (9, "stage9_distributed", "program", "Training on many GPUs", ("host",), None, TWO, ()),
]


def test_the_table_has_these_values():
    assert [astuple(stage) for stage in stages.STAGES] == ROWS
    assert stages.POINTWISE_KERNELS == ("forward_kernel", "backward_kernel")


def test_a_row_says_where_its_stage_is_and_what_it_is_for():
    for stage in stages.STAGES:
        assert stage.folder == ROOT / "stages" / stage.folder_name
        assert stage.is_here
        assert stage.package == f"lltm_stage{stage.number}"
        assert stages.find_stage(stage.number) is stages.get_stage(stage.number) is stage
    assert [stage.number for stage in stages.timed_stages()] == [1, 2, 3, 4, 5, 6, 7]
    assert [stage.number for stage in stages.cell_stages()] == [1, 2, 3, 4, 5, 6]


def test_a_stage_without_a_readme_is_not_written_yet(tmp_path, monkeypatch):
    absent = Stage(77, str(tmp_path), "cell", "Absent", ("host",))
    monkeypatch.setattr(stages, "STAGES", (*stages.STAGES, absent))
    assert stages.find_stage(77) is absent
    assert absent.is_timed
    assert not replace(absent, kind="program").is_timed
    assert absent not in stages.cell_stages() + stages.timed_stages()
    with pytest.raises(UserError, match=r"^stage 77 \(Absent\) does not exist yet; the stages that do: 0, 1, "):
        stages.get_stage(77)
    (tmp_path / "README.md").touch()
    assert stages.get_stage(77) is stages.cell_stages()[-1] is stages.timed_stages()[-1] is absent


@pytest.mark.parametrize("number", [-1, 99])
def test_a_number_that_is_not_in_the_table_is_one_line(number):
    for function in (stages.find_stage, stages.get_stage):
        with pytest.raises(UserError, match=f"^there is no stage {number}; the stages are 0 to 9$"):
            function(number)
