"""What notebook 05c says of operators that write to their arguments, of layouts and of calls: its own operators."""

from __future__ import annotations

import itertools
from types import ModuleType

import pytest
import torch
from torch.torch_version import TorchVersion
from torch.utils.cpp_extension import load_inline

from support.labs import definitions, texts
from support.proofs.files import notebook_files

pytestmark = [
    pytest.mark.usefixtures("compiles_anew"),
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof("claims of notebooks", files=notebook_files("05c_compiled_operators")),
]

NUMBERS = itertools.count()
NOTEBOOK = definitions("05c_compiled_operators")
FUNCTIONS = ["step", "two_steps", "one_row", "used_before", "used_later", "clone_before"]


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The notebook's operators in C++."""
    folder = str(tmp_path_factory.mktemp("changing"))
    options = {"functions": ["like"], "no_implicit_headers": True, "extra_cflags": ["-O2"], "build_directory": folder}
    return load_inline("lab_changing", texts("05c_compiled_operators")["CHANGING"], **options)


# Operators that write to their arguments --------------------------------------------------------------------------


@pytest.mark.syllabus("5.3h")
def test_mutates_args_is_in_the_schema_and_the_argument_must_not_be_returned():
    assert str(NOTEBOOK.advance_._opoverload._schema).endswith("::advance_(Tensor(a0!) cell, Tensor z) -> ()")
    with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
        NOTEBOOK.returning(torch.zeros(3), torch.zeros(3))


@pytest.mark.syllabus("5.3h")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_compiled_function_writes_to_the_cell_unless_its_old_value_is_needed(name, monkeypatch):
    monkeypatch.setattr(NOTEBOOK, "ADDRESSES", [], raising=False)
    function = getattr(NOTEBOOK, name)
    eager = NOTEBOOK.where(function, torch.zeros(3, 2), torch.zeros(3, 2))
    compiled = NOTEBOOK.where(torch.compile(function, fullgraph=True), torch.zeros(3, 2), torch.zeros(3, 2))
    for got, want in zip(compiled[1:], eager[1:], strict=True):
        torch.testing.assert_close(got, want)
    assert ("a copy" in compiled[0]) == (name in COPIED), compiled[0]


COPIED = {"used_before", "used_later", "clone_before"}


@pytest.mark.syllabus("5.3i")
def test_only_custom_op_raises_the_version_by_itself(changing):
    operators = torch.ops.lab_changing
    name = f"test_version_{next(NUMBERS)}::in_python_"

    @torch.library.custom_op(name, mutates_args=("cell",))
    def in_python_(cell: torch.Tensor, step: float) -> None:
        operators.hidden_(cell, step)

    for change, rises in ((operators.hidden_, False), (operators.counted_, True), (in_python_, True)):
        cell = torch.ones(1)
        before = cell._version
        change(cell, 0.5)
        assert cell.item() == 1.5
        assert (cell._version > before) == rises
    assert NOTEBOOK.change_what_is_saved(lambda cell: operators.hidden_(cell, 0.5)) == 1.5, (
        "silently wrong: 1 is right"
    )
    for change in (operators.counted_, in_python_):
        with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
            NOTEBOOK.change_what_is_saved(lambda cell, change=change: change(cell, 0.5))


@pytest.mark.syllabus("5.3i")
def test_define_and_impl_in_python_do_not_raise_the_version_either():
    namespace = f"test_version_{next(NUMBERS)}"
    torch.library.define(f"{namespace}::fill_", "(Tensor(a!) x) -> ()")
    torch.library.impl(f"{namespace}::fill_", "cpu", lambda x: x.numpy().fill(7))
    x = torch.zeros(2)
    getattr(torch.ops, namespace).fill_(x)
    assert (x.tolist(), x._version) == ([7, 7], 0)


@pytest.mark.syllabus("5.3j")
def test_an_operator_in_place_has_no_gradient(monkeypatch):
    monkeypatch.setattr(NOTEBOOK, "ADDRESSES", [], raising=False)
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        NOTEBOOK.advance_.register_autograd(lambda ctx: None)
    z, cell = torch.zeros(3, requires_grad=True), torch.zeros(3)
    NOTEBOOK.advance_(cell, z)
    assert cell.tolist() == [0.5] * 3
    assert not cell.requires_grad
    with pytest.raises(RuntimeError, match="there is no gradient"):
        NOTEBOOK.advance_in_place(cell, z)
    with torch.no_grad():
        NOTEBOOK.advance_in_place(cell, z)
    assert cell.tolist() == [1.0] * 3


# Layouts ----------------------------------------------------------------------------------------------------------


def strides(tag: str | None, function) -> list[tuple[int, ...]]:
    """The strides that an operator with a layout tag gets from a function, in eager mode and compiled."""
    namespace = f"test_layout_{next(NUMBERS)}"
    seen: list[tuple[int, ...]] = []

    def look(x):
        seen.append(x.stride())
        return x.clone(memory_format=torch.contiguous_format)

    tags = [torch.Tag.pt2_compliant_tag, *([getattr(torch.Tag, tag)] if tag else [])]
    torch.library.define(f"{namespace}::look", "(Tensor x) -> Tensor", tags=tags)
    torch.library.impl(f"{namespace}::look", "cpu", look)
    torch.library.register_fake(f"{namespace}::look", lambda x: x.new_empty(x.shape))
    operator, x = getattr(torch.ops, namespace).look, torch.randn(4, 5)
    assert torch.equal(function(operator, x), torch.compile(function, fullgraph=True)(operator, x))
    return seen


@pytest.mark.skipif(TorchVersion(torch.__version__) < (2, 15), reason="the default differs between versions")
@pytest.mark.syllabus("5.3k")
@pytest.mark.parametrize("function", [NOTEBOOK.part_of_rows, NOTEBOOK.channels_last_sum])
def test_by_default_an_operator_gets_the_strides_of_eager_mode(function):
    for tag in (None, "needs_exact_strides"):
        eager, compiled = strides(tag, function)
        assert eager == compiled


@pytest.mark.syllabus("5.3k")
def test_the_other_tags_let_the_compiler_choose():
    assert strides("needs_fixed_stride_order", NOTEBOOK.part_of_rows) == [(5, 1), (3, 1)]
    eager, compiled = strides("needs_fixed_stride_order", NOTEBOOK.channels_last_sum)
    assert eager == compiled == (20, 1, 10, 2)
    for tag in ("needs_contiguous_strides", "flexible_layout"):
        assert strides(tag, NOTEBOOK.channels_last_sum) == [(20, 1, 10, 2), (20, 10, 5, 1)]


# Calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("5.1h")
def test_a_call_of_a_custom_op_takes_several_times_as_long_as_any_other(changing):
    number = next(NUMBERS)

    @torch.library.custom_op(f"test_cost_{number}::custom_op", mutates_args=())
    def custom_op(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    torch.library.define(f"test_cost_{number}::defined", "(Tensor x) -> Tensor")
    torch.library.impl(f"test_cost_{number}::defined", "cpu", torch.empty_like)
    calls = {
        "C++": torch.ops.lab_changing.like,
        "define": getattr(torch.ops, f"test_cost_{number}").defined,
        "custom_op": custom_op,
    }
    times = NOTEBOOK.microseconds_of_calls(calls, torch.zeros(1))
    assert times["custom_op"] > 2 * times["C++"]
    assert times["custom_op"] > 1.7 * times["define"]
    assert times["define"] < 3 * times["C++"]
