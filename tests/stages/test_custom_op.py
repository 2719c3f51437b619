"""Stage 5: what torch does with a registered operator, on every target and in every dtype."""

from __future__ import annotations

import warnings
from types import ModuleType

import pytest
import torch
from torch.library import opcheck

from common import stages
from common.build import modules
from common.cell.case import INPUTS, LAYOUTS, Case, difference, expected, input_gradients, outputs
from support.pairwise import on_targets
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(5))


TARGETS = [
    pytest.param("host", marks=pytest.mark.needs("g++")),
    pytest.param("emulator", marks=pytest.mark.needs("g++")),
    pytest.param("cuda", marks=pytest.mark.needs("gpu", "nvcc", "g++")),
]
DTYPES = [getattr(torch, name) for name in stages.get_stage(5).dtypes]
LOW = [torch.float16, torch.bfloat16]
ROWS = 1.0, 1.1, 0.9, 1.3, 0.7  # scales of the rows of a batch of cases


def named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=named)
low_precision = pytest.mark.parametrize("dtype", LOW, ids=named)


@pytest.fixture(params=TARGETS)
def stage(request: pytest.FixtureRequest) -> ModuleType:
    """The stage's module, loaded for a target."""
    return modules.load_stage(5, request.param)


def device(stage: ModuleType) -> str:
    return "cuda" if stage.TARGET == "cuda" else "cpu"


def arguments(stage: ModuleType, **changes: object) -> list[torch.Tensor]:
    """The five arguments of the cell, without gradients."""
    given = {"device": device(stage), **changes}
    return [tensor.detach() for tensor in Case(3, 5, 70, **given).inputs().values()]


def z_and_cell(
    stage: ModuleType, dtype: torch.dtype = torch.float32, B: int = 3, S: int = 70, layout: str = "contiguous"
):
    """Arguments of the operator: z (B, 3S), old_cell (B, S)."""
    inputs = Case(B, 3 * S, S, dtype=dtype, device=device(stage), layout=layout).inputs()
    return inputs["input"].detach(), inputs["old_cell"].detach()


# What torch asks of an operator ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "size", "dtype", "layouts"),
    on_targets(TARGETS, [(3, 70), (1, 1), (0, 4), (5, 33)], DTYPES, looped=LAYOUTS),
    indirect=["stage"],
)
@pytest.mark.syllabus("5.2d")
def test_opcheck(stage, size, dtype, layouts):
    operators = stage.operators
    for layout in layouts:
        z, old_cell = z_and_cell(stage, dtype, *size, layout=layout)
        opcheck(operators.pointwise.default, (z, old_cell))
        opcheck(operators.pointwise.default, (z.requires_grad_(), old_cell.requires_grad_()))
        new_h, new_cell, gates = (tensor.detach() for tensor in operators.pointwise(z, old_cell))
        grad_h, grad_cell = Case(*size, size[1], dtype=dtype, device=device(stage), layout=layout).gradients()
        for grads in (
            (grad_h, grad_cell),
            (grad_h, None),
            (None, grad_cell),
            (new_h.new_ones(()).expand(size), None),
        ):
            opcheck(operators.pointwise_backward.default, (*grads, gates, new_cell))


def test_the_schemas_say_nothing_is_changed(stage):
    for operator in (stage.operators.pointwise.default, stage.operators.pointwise_backward.default):
        assert not operator._schema.is_mutable
        assert all(argument.alias_info is None for argument in operator._schema.arguments)


@every_dtype
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.syllabus("5.3a")
def test_whole_under_compile(stage, dtype, dynamic):
    """Values and gradients are those of the reference, at sizes that it was compiled for and at others."""
    torch._dynamo.reset()
    backend = "inductor" if dtype == torch.float32 and stage.TARGET != "emulator" else "aot_eager"
    compiled = torch.compile(stage.lltm, fullgraph=True, dynamic=dynamic, backend=backend)
    sizes = ((3, 5, 70), (4, 6, 33)) if dynamic else ((3, 5, 70),)
    for size in sizes:
        for grads in ("both", "h only", "expanded"):
            case = Case(*size, dtype=dtype, device=device(stage), grads=grads)
            assert difference(case, outputs(compiled, case)) is None
    if dynamic:
        with torch.compiler.set_stance("fail_on_recompile"):
            case = Case(7, 9, 21, dtype=dtype, device=device(stage), grads="expanded")
            assert difference(case, outputs(compiled, case)) is None


def test_export(stage):
    class Cell(torch.nn.Module):
        def forward(self, *given):
            return stage.lltm(*given)

    given = arguments(stage)
    exported = torch.export.export(Cell(), tuple(given))
    names = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert any(name.endswith(".pointwise.default") for name in names)
    for got, want in zip(exported.module()(*given), stage.lltm(*given), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.needs("gpu", "nvcc")
def test_a_cuda_graph_replays_it():
    stage = modules.load_stage(5, "cuda")
    static, other = arguments(stage), arguments(stage, seed=1)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # what runs once only, such as cuBLAS's workspace, is no part of a graph
        stage.lltm(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = stage.lltm(*static)
    for to, value in zip(static, other, strict=True):
        to.copy_(value)
    graph.replay()
    for got, want in zip(results, stage.lltm(*other), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


# Autocast and low precision ----------------------------------------------------------------------------------------


@low_precision
@pytest.mark.syllabus("5.4a")
def test_autocast(stage, dtype):
    """float32 arguments under autocast: results in its dtype, gradients in float32, within that dtype's rounding."""
    case = Case(3, 5, 70, device=device(stage))
    inputs = case.inputs()
    with torch.autocast(device(stage), dtype=dtype):
        results = stage.lltm(*inputs.values())
    assert [result.dtype for result in results] == [dtype, dtype]
    got = dict(zip(("new_h", "new_cell"), results, strict=True))
    got |= input_gradients(results, inputs, tuple(grad.to(dtype) for grad in case.gradients()))
    for name, want in expected(case).items():
        assert got[name].dtype == (torch.float32 if name.startswith("d_") else dtype)
        error = (got[name].double() - want).abs().max() / want.abs().max()
        assert error < 8 * torch.finfo(dtype).eps, name


@low_precision
def test_a_mixture_is_cast_under_autocast_and_refused_without(stage, dtype):
    z, old_cell = z_and_cell(stage)
    with torch.autocast(device(stage), dtype=dtype):
        results = stage.operators.pointwise(z.to(dtype), old_cell)
    assert {result.dtype for result in results} == {dtype}
    with pytest.raises(RuntimeError, match="lltm: old_cell has dtype Float, but z has"):
        stage.operators.pointwise(z.to(dtype), old_cell)


@low_precision
@pytest.mark.syllabus("5.4b")
def test_the_maths_of_low_precision_is_float(stage, dtype):
    """The result is that of float32 arguments, rounded once."""
    z, old_cell = z_and_cell(stage, dtype)
    for got, want in zip(
        stage.operators.pointwise(z, old_cell), stage.operators.pointwise(z.float(), old_cell.float()), strict=True
    ):
        torch.testing.assert_close(got, want.to(dtype), rtol=0, atol=0)


# Transforms --------------------------------------------------------------------------------------------------------


def test_vmap_is_a_loop(stage):
    batch = [arguments(stage, seed=seed) for seed in range(4)]
    stacked = [torch.stack(given) for given in zip(*batch, strict=True)]
    for got, wanted in zip(
        torch.vmap(stage.lltm)(*stacked), zip(*(stage.lltm(*given) for given in batch), strict=True), strict=True
    ):
        torch.testing.assert_close(got, torch.stack(wanted))


def test_vmap_of_some_arguments(stage):
    input, weights, bias, old_h, old_cell = arguments(stage)
    inputs = torch.stack([scale * input for scale in ROWS], dim=1)  # (B, 5, I)
    got = torch.vmap(stage.lltm, in_dims=(1, None, None, None, None))(inputs, weights, bias, old_h, old_cell)
    for k, scale in enumerate(ROWS):
        for result, want in zip(got, stage.lltm(scale * input, weights, bias, old_h, old_cell), strict=True):
            torch.testing.assert_close(result[k], want)


def test_gradients_through_vmap(stage):
    batch = [Case(3, 5, 70, device=device(stage), seed=seed).inputs() for seed in range(3)]
    stacked = {name: torch.stack([given[name].detach() for given in batch]).requires_grad_() for name in INPUTS}
    sum(result.square().sum() for result in torch.vmap(stage.lltm)(*stacked.values())).backward()
    for k, given in enumerate(batch):
        sum(result.square().sum() for result in stage.lltm(*given.values())).backward()
        for name in INPUTS:
            torch.testing.assert_close(stacked[name].grad[k], given[name].grad)


def test_what_is_refused(stage):
    inputs = Case(3, 5, 7, device=device(stage)).inputs()
    results = stage.lltm(*inputs.values())
    first = torch.autograd.grad(results[0].square().sum(), list(inputs.values()), create_graph=True)
    with pytest.raises(RuntimeError, match="lltm: the gradient is once_differentiable"):
        first[0].sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="lltm: the gradient is once_differentiable"):
        torch.autograd.grad(results[1].sum() + first[0].sum(), inputs["bias"])

    grad_h = torch.ones(3, 7, device=device(stage), requires_grad=True)
    _, new_cell, gates = stage.operators.pointwise(*z_and_cell(stage, S=7))
    with pytest.raises(RuntimeError, match="lltm: the gradient is once_differentiable"):
        stage.operators.pointwise_backward(grad_h, None, gates, new_cell)[0].sum().backward()

    detached = [tensor.detach() for tensor in inputs.values()]
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(lambda input: stage.lltm(input, *detached[1:])[0].sum())(detached[0])


@pytest.mark.parametrize("k", range(5), ids=INPUTS)
def test_forward_mode_is_refused(stage, k):
    given = arguments(stage)
    with pytest.raises(RuntimeError, match="lltm: there are no forward-mode derivatives"):
        torch.func.jvp(lambda one: stage.lltm(*given[:k], one, *given[k + 1 :])[0], (given[k],), (given[k],))


def test_forward_mode_of_the_operator_is_silently_zero_as_the_readme_warns(stage):
    """A defect of register_autograd; when this fails, torch has fixed it and `refuse_tangents` can go."""
    z, old_cell = z_and_cell(stage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, tangent = torch.func.jvp(lambda z: stage.operators.pointwise(z, old_cell)[0], (z,), (z,))
    assert tangent.abs().max() == 0


# The operators by themselves ---------------------------------------------------------------------------------------

BAD = [
    (lambda z, c: (z.long(), c.long()), r"lltm: z has dtype Long, expected a floating-point dtype"),
    (lambda z, c: (z[0], c), r"lltm: z has shape \[210\], expected \(B, 3S\)"),
    (lambda z, c: (z[:, 1:], c), r"lltm: z has shape \[3, 209\], expected \(B, 3S\)"),
    (lambda z, c: (z, c[:1]), r"lltm: old_cell has shape \[1, 70\], but z of shape \[3, 210\] calls for \[3, 70\]"),
    (lambda z, c: (z, c.double()), r"lltm: old_cell has dtype Double, but z has Float"),
]


@pytest.mark.parametrize(("spoilt", "says"), BAD, ids=[says for _, says in BAD])
def test_bad_arguments_of_forward(stage, spoilt, says):
    with pytest.raises(RuntimeError, match=says):
        stage.operators.pointwise(*spoilt(*z_and_cell(stage)))


def test_bad_arguments_of_backward(stage):
    new_h, new_cell, gates = stage.operators.pointwise(*z_and_cell(stage))
    for given, says in (
        ((new_h, None, gates[:, 0], new_cell), r"gates has shape \[3, 70\], expected \(B, 3, S\)"),
        (
            (new_h[:1], None, gates, new_cell),
            r"grad_h has shape \[1, 70\], but gates of shape \[3, 3, 70\] calls for",
        ),
        ((None, new_h.double(), gates, new_cell), r"grad_cell has dtype Double, but gates has Float"),
        ((new_h, None, gates, new_cell[:, 1:]), r"new_cell has shape \[3, 69\], but gates of shape"),
    ):
        with pytest.raises(RuntimeError, match=f"lltm: {says}"):
            stage.operators.pointwise_backward(*given)


def test_a_device_without_kernels_is_refused_by_torch(stage):
    sparse = torch.zeros(3, 210, device=device(stage)).to_sparse()
    with pytest.raises(NotImplementedError, match=r"Could not run 'lltm_stage5_.*::pointwise'.*Sparse"):
        stage.operators.pointwise(sparse, torch.zeros(3, 70, device=device(stage)))


@pytest.mark.syllabus("5.1d")
def test_each_target_has_its_own_namespace():
    host, emulator = modules.load_stage(5, "host"), modules.load_stage(5, "emulator")
    assert host._C.NAMESPACE != emulator._C.NAMESPACE
    z, old_cell = z_and_cell(host)
    for one, other in zip(
        host.operators.pointwise(z, old_cell), emulator.operators.pointwise(z, old_cell), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_only_gates_and_the_new_cell_are_saved_for_the_operator(stage):
    z, old_cell = (tensor.requires_grad_() for tensor in z_and_cell(stage))
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor
    ):
        _, new_cell, gates = stage.operators.pointwise(z, old_cell)
    assert [tensor.data_ptr() for tensor in saved] == [gates.data_ptr(), new_cell.data_ptr()]
    assert not gates.requires_grad


@pytest.mark.needs("gpu", "nvcc")
def test_more_numbers_than_32_bits_count():
    """3 B S > 2^31: the last rows are right, forward and backward."""
    operators = modules.load_stage(5, "cuda").operators
    B, S = 2**20, 700
    if torch.cuda.mem_get_info()[0] < 12 * 3 * B * S:
        pytest.skip("needs 26 GB of GPU memory")
    z = torch.randn(B, 3 * S, dtype=torch.bfloat16, device="cuda")
    old_cell = torch.randn(B, S, dtype=torch.bfloat16, device="cuda")
    assert z.numel() > 2**31
    whole = operators.pointwise(z, old_cell)
    for got, want in zip(whole, operators.pointwise(z[-5:], old_cell[-5:]), strict=True):
        torch.testing.assert_close(got[-5:], want, rtol=0, atol=0)
    new_h, new_cell, gates = whole
    ends = operators.pointwise_backward(new_h[-5:], None, gates[-5:], new_cell[-5:])
    for got, want in zip(operators.pointwise_backward(new_h, None, gates, new_cell), ends, strict=True):
        torch.testing.assert_close(got[-5:], want, rtol=0, atol=0)


@pytest.mark.needs("gpu:2", "nvcc")
def test_two_devices_are_refused():
    operators = modules.load_stage(5, "cuda").operators
    with pytest.raises(RuntimeError, match="lltm: old_cell is on cuda:1, but z is on cuda:0"):
        operators.pointwise(torch.zeros(3, 210, device="cuda:0"), torch.zeros(3, 70, device="cuda:1"))
