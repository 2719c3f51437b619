"""Every stage against the reference: stage x target x device x dtype x layout x size."""

from __future__ import annotations

import pytest
import torch

from common import stages
from common.build import modules, targets
from common.cell.case import expected, outputs
from common.check.cell import CellSubject, make_subject, refusals
from common.check.checks import gradcheck, not_finite, second_derivatives, second_device, side_stream, transforms
from support.proofs.files import stage_files

ANY = CellSubject(0, "host", "cpu", torch.float32, lambda *arguments: arguments, 0)
CASES = [
    pytest.param((name, k), id=f"{name}-{str(case).partition(', seed')[0]}")
    for name, group in ANY.cases().items()
    for k, case in enumerate(group)
]


def places() -> list:
    """Stage, target and device of everything that offers the cell, marked with what it needs."""
    params = []
    for stage in stages.cell_stages():
        for target in stage.targets:
            aten = target == "host" and stage.targets == stages.HOST
            for device in ["cpu", "cuda"] if aten else ["cuda" if target == "cuda" else "cpu"]:
                needs = (
                    ["gpu"] * (device == "cuda") + ["nvcc"] * (target == "cuda") + ["g++"] * targets.has_cpp(stage)
                )
                name = f"stage{stage.number}-{target}-{device}"
                marks = [pytest.mark.needs(*needs)]
                if target == "emulator":
                    part, files = f"stage {stage.number}", stage_files(1, stage.number)
                    marks.append(pytest.mark.proof("emulated grids", part=part, files=files))
                params.append(pytest.param((stage.number, target, device), marks=marks, id=name))
    return params


on_gpus = [place for place in places() if place.values[0][2] == "cuda"]
every_place = pytest.mark.parametrize("place", places())
every_dtype = pytest.mark.parametrize(
    ("place", "dtype"),
    [
        pytest.param(*place.values, getattr(torch, name), marks=place.marks, id=f"{place.id}-{name}")
        for place in places()
        for name in stages.get_stage(place.values[0][0]).dtypes
    ],
)


@pytest.mark.syllabus("1.1a", "2.2a", "2.7d", "2.8f")
@every_dtype
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_reference(place, dtype, case):
    name, k = case
    one = make_subject(*place, dtype)
    one.agree(one.cases()[name][k])


@every_dtype
@pytest.mark.parametrize("check", [not_finite, gradcheck, second_derivatives, transforms, refusals])
def test_check(place, dtype, check):
    check(make_subject(*place, dtype))


@every_place
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_half_precision_is_right_or_refused(place, dtype):
    one = make_subject(*place, dtype)
    case = one.case(3, 5, 70)
    try:
        got = outputs(one.lltm, case)
    except RuntimeError as error:
        assert f"lltm: input has dtype {'Half' if dtype == torch.float16 else 'BFloat16'}, expected" in str(error)
        return
    for name, want in expected(case).items():
        assert got[name].dtype == dtype
        error = (got[name].double() - want).abs().max() / want.abs().max()
        assert error < 8 * torch.finfo(dtype).eps, name


@pytest.mark.parametrize("place", on_gpus)
@pytest.mark.syllabus("3.6a")
def test_works_on_the_current_stream(place):
    side_stream(make_subject(*place, torch.float32))


@pytest.mark.needs("gpu:2")
@pytest.mark.parametrize("place", on_gpus)
@pytest.mark.syllabus("3.6b")
def test_works_on_a_second_device(place):
    second_device(make_subject(*place, torch.float32))


@pytest.mark.syllabus("1.2e", "1.2f")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_by_hand(device, dtype):
    modules.load_stage(1)
    from lltm_stage1 import by_hand

    one = CellSubject(1, "host", device, dtype, by_hand.lltm, torch.seed() % 10**6)
    for group in one.cases().values():
        for case in group:
            # It keeps to the derivation: a gradient that does not arrive is the caller's zeros.
            one.agree(case)
    for check in (gradcheck, second_derivatives, transforms, refusals):
        check(one)


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.2d")
def test_bias_gradient_has_the_shape_of_the_bias():
    modules.load_stage(2)
    from lltm_stage2 import _C

    B, I, S = 3, 5, 7
    inputs = CellSubject(2, "host", "cpu", torch.float64, lambda: None, 0).case(B, I, S).inputs()
    inputs = {name: tensor.detach() for name, tensor in inputs.items()}
    new_h, new_cell, *saved = _C.forward(**inputs)
    gradients = _C.backward(new_h, new_cell, inputs["weights"], *saved, new_cell, [True] * 5)
    assert [tuple(gradient.shape) for gradient in gradients] == [tuple(tensor.shape) for tensor in inputs.values()]


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3b")
def test_the_binding_documents_itself():
    modules.load_stage(2)
    from lltm_stage2 import _C

    assert "(input: torch.Tensor" in _C.forward.__doc__
    assert "old_cell" in _C.forward.__doc__
    assert "None where not needed" in _C.backward.__doc__


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.8f")
def test_gradients_nobody_asked_for_are_not_computed():
    modules.load_stage(2)
    from lltm_stage2 import _C

    inputs = CellSubject(2, "host", "cpu", torch.float64, lambda: None, 0).case(3, 5, 7).inputs()
    inputs = {name: tensor.detach() for name, tensor in inputs.items()}
    new_h, new_cell, *saved = _C.forward(**inputs)
    needs = [False, True, True, False, False]
    gradients = _C.backward(new_h, None, inputs["weights"], *saved, new_cell, needs)
    assert [gradient is not None for gradient in gradients] == needs
