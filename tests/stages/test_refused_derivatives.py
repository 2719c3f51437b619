"""What the READMEs of stages 1 to 4 say of derivatives: those of the equations are right, the cells refuse."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
from torch.autograd import forward_ad

from common.build import modules
from common.cell.case import INPUTS, Case, Cell
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(1, 2, 3, 4))
CELLS = [
    "by_hand",
    pytest.param((2, "host"), marks=pytest.mark.needs("g++")),
    pytest.param((3, "emulator"), marks=pytest.mark.needs("g++")),
    pytest.param((4, "emulator"), marks=pytest.mark.needs("g++")),
]
every_argument = pytest.mark.parametrize("k", range(5), ids=INPUTS)


@pytest.fixture(params=CELLS, ids=str)
def cell(request: pytest.FixtureRequest) -> Cell:
    """A cell that has first derivatives only."""
    if request.param == "by_hand":
        stage = modules.load_stage(1)
        return importlib.import_module(f"{stage.__name__.partition('.')[0]}.by_hand").lltm
    return modules.load_stage(*request.param).lltm


def of_one(cell: Cell, k: int) -> tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]:
    """The sum of the new state as a function of one argument, and this argument."""
    given = [tensor.detach() for tensor in Case(2, 3, 4, dtype=torch.float64).inputs().values()]
    return lambda one: cell(*given[:k], one, *given[k + 1 :])[0].sum(), given[k]


@every_argument
def test_transforms_of_torch_func_are_refused(cell, k):
    function, one = of_one(cell, k)
    for transform in (
        lambda: torch.func.grad(function)(one),
        lambda: torch.vmap(function)(torch.stack([one, one])),
        lambda: torch.func.jvp(function, (one,), (one.cos(),)),
    ):
        with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
            transform()


@every_argument
def test_forward_mode_is_refused(cell, k):
    function, one = of_one(cell, k)
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="jvp"):
        function(forward_ad.make_dual(one, one.cos()))


@every_argument
def test_the_equations_have_every_derivative(k):
    function, one = of_one(modules.load_stage(1).lltm, k)
    assert torch.autograd.gradgradcheck(function, one.requires_grad_())
    one = one.detach()
    (gradient,) = torch.autograd.grad(function(leaf := one.clone().requires_grad_()), leaf)
    torch.testing.assert_close(torch.func.grad(function)(one), gradient)
    tangent = torch.func.jvp(function, (one,), (one.cos(),))[1]
    torch.testing.assert_close(tangent, (gradient * one.cos()).sum())
    torch.testing.assert_close(torch.vmap(function)(torch.stack([one, one])), function(one).expand(2))
