"""Stage 6: what the fused cell leaves out, and what torch does with an operator whose gradient is C++."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.library import opcheck

from common import stages
from common.build import modules
from common.cell import reference
from common.cell.case import INPUTS, LAYOUTS, Case, difference, fresh_seed, input_gradients, outputs
from common.emulator import collect_counts
from common.measure import stage_counts
from common.measure.implementations import Implementation, Run, make_input_sets
from support.pairwise import on_targets
from support.profiled import operations
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(1, 6))


TARGETS = [
    pytest.param("host", marks=pytest.mark.needs("g++")),
    pytest.param("emulator", marks=pytest.mark.needs("g++")),
    pytest.param("cuda", marks=pytest.mark.needs("gpu", "nvcc", "g++")),
]
DTYPES = [getattr(torch, name) for name in stages.get_stage(6).dtypes]
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=stages.get_stage(6).dtypes)
PARAMETERS = ("weights", "bias")
# Around a vector (2, 4 or 8 units) and a warp of vectors; in four layouts, so that rows begin anywhere.
TAILS = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 127, 128, 129, 255, 256, 257]


@pytest.fixture(params=TARGETS)
def stage(request: pytest.FixtureRequest) -> ModuleType:
    """The stage's module, loaded for a target."""
    return modules.load_stage(6, request.param)


@pytest.fixture
def emulated() -> ModuleType:
    """The stage's module on the emulator."""
    return modules.load_stage(6, "emulator")


def case_of(stage: ModuleType, *size: int, **changes: object) -> Case:
    return Case(*size, device="cuda" if stage.TARGET == "cuda" else "cpu", **{"seed": fresh_seed(), **changes})


def agree(stage: ModuleType, case: Case) -> None:
    assert difference(case, outputs(stage.lltm, case)) is None


def arguments(stage: ModuleType, *size: int, **changes: object) -> list[torch.Tensor]:
    """The five arguments of the cell, without gradients."""
    return [tensor.detach() for tensor in case_of(stage, *size, **changes).inputs().values()]


def step(lltm, case: Case):
    """A call that goes forward and backward."""
    inputs, gradients = case.inputs(), case.gradients()
    return lambda: input_gradients(lltm(*inputs.values()), inputs, gradients)


# What is not done ------------------------------------------------------------------------------------------------

SIZES = {"small": (4, 5, 8), "large": (300, 5, 8)}  # on either side of what CUDA code does in a kernel of its own
both_sizes = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)


def is_joined(stage: ModuleType, size: tuple[int, ...]) -> bool:
    return stage.TARGET != "host" and size == SIZES["large"]


@pytest.mark.syllabus("6.2a", "6.2b")
@pytest.mark.needs("g++")
@both_sizes
@pytest.mark.parametrize("grads", ["both", "h only", "cell only", "expanded"])
@pytest.mark.parametrize("requires_grad", [INPUTS, PARAMETERS, ()], ids=["all", "parameters", "none"])
def test_nothing_is_copied_and_nothing_filled_with_zeros(stage, size, grads, requires_grad):
    case = case_of(stage, *size, grads=grads, requires_grad=requires_grad)
    done = Counter(operations(step(stage.lltm, case)))
    assert not done.keys() & {"zeros", "zeros_like", "zero_", "fill_", "full", "copy_"}
    # On a GPU, one product of X is faster than two of its halves; it is made for a product, and not kept.
    assert done["cat"] == (1 + bool(requires_grad) if is_joined(stage, size) else 0)


def test_the_profiler_would_see_them():
    case = Case(4, 5, 8, grads="h only")
    assert "cat" in operations(step(modules.load_stage(1).equations, case))
    assert "zeros" in operations(lambda: torch.zeros(3))


@both_sizes
def test_products_that_nobody_needs_are_not_made(stage, size):
    """One for input and old_h together or for either; for the weights one of X, or two of its halves."""
    own = stage.TARGET != "host" and size == SIZES["small"]
    for needed in (INPUTS, PARAMETERS, *((name,) for name in INPUTS)):
        done = Counter(operations(step(stage.lltm, case_of(stage, *size, requires_grad=needed))))
        products = bool({"input", "old_h"} & set(needed)) + ("weights" in needed) * (2 - is_joined(stage, size))
        assert done["mm"] == (0 if own else products), needed
        assert done["addmm"] + done["addmm_"] == (0 if own else 2 - is_joined(stage, size))


@both_sizes
def test_gradients_that_nobody_needs_do_not_come_out(stage, size):
    input, weights, _, old_h, _ = given = arguments(stage, *size)
    _, new_cell, z = stage.operators.cell(*given)
    saved = (old_h, None, input, weights, old_h, new_cell, z)
    d_X, *rest = stage.operators.cell_backward(*saved, [True] * 5)
    of_h, of_input = d_X[:, : old_h.size(1)], d_X[:, old_h.size(1) :]
    d_weights, d_bias, d_old_cell = rest
    for k, want in enumerate((of_input, d_weights, d_bias, of_h, d_old_cell)):
        got = stage.operators.cell_backward(*saved, [other == k for other in range(5)])
        (gradient,) = [gradient for gradient in got if gradient is not None]
        torch.testing.assert_close(gradient, want)
    assert stage.operators.cell_backward(None, *saved[1:], [True] * 5) == (None,) * 4


# Small sizes on a GPU --------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.4a")
def test_small_cells_are_two_launches_forward_and_backward(emulated):
    with collect_counts(emulated) as counted:
        outputs(emulated.lltm, case_of(emulated, *SIZES["small"]))
    kernels = [launch.kernel.split("<")[0] for launch in counted.launches for _ in range(launch.launches)]
    assert kernels == ["cell_kernel", "backward_kernel", "products_kernel"]


TILES = [(0, 33), (1, 32), (3, 64), (5, 65), (33, 31), (130, 16)]  # I, S
ASKED = INPUTS, ("input",), ("old_h",), ("weights",)


@pytest.mark.parametrize(
    ("stage", "size", "B", "dtype", "asked"),
    on_targets(TARGETS, TILES, [1, 3, 4, 5, 16, 17], DTYPES, looped=ASKED),
    indirect=["stage"],
)
def test_every_remainder_of_a_tile(stage, size, B, dtype, asked):
    for requires_grad in asked:
        agree(stage, case_of(stage, B, *size, dtype=dtype, requires_grad=requires_grad))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_small_and_large_are_the_same_cell(stage, dtype):
    """The rows of a batch know nothing of each other: what a small one gives, a large one gives in its rows."""
    input, weights, bias, old_h, old_cell = arguments(stage, 300, 9, 40, dtype=dtype)
    large = stage.lltm(input, weights, bias, old_h, old_cell)
    small = stage.lltm(input[:5], weights, bias, old_h[:5], old_cell[:5])
    torch.testing.assert_close(list(small), [result[:5] for result in large])


@pytest.mark.syllabus("6.1d")
@pytest.mark.needs("gpu", "nvcc")
@pytest.mark.parametrize("gate", ["sigmoid", "elu"])
def test_a_gate_made_of_fast_units_is_a_few_ulp_from_exact(gate):
    operators = modules.load_stage(6, "cuda").operators
    z = torch.cat([torch.linspace(-20, 20, 100_001), torch.logspace(-30, 1, 50_000).mul(-1)]).cuda()[None]
    one, off = torch.ones_like(z), torch.full_like(z, 100)  # sigmoid(100) and elu(1) are 1
    gates = [z, one, one] if gate == "sigmoid" else [off, one, z]
    _, got = operators.pointwise(torch.cat(gates, 1), torch.zeros_like(z))
    want = getattr(torch.nn.functional, gate)(z.double())
    ulp = torch.finfo(torch.float32).eps * want.abs()
    worst = ((got - want).abs() / ulp).max().item()
    assert worst < (32 if gate == "sigmoid" else 8)


@every_dtype
def test_gates_are_right_all_the_way_to_where_they_saturate(stage, dtype):
    """Every hundredth from where an exponential is next to nothing to where it overflows, in each gate."""
    reach = 80_000 if dtype == torch.float64 else 11_000
    at = (torch.arange(-reach, reach, device=arguments(stage, 1, 1, 1)[0].device).double() / 100).to(dtype)[None]
    one, zero = torch.ones_like(at), torch.zeros_like(at)
    for gate in range(3):
        z = torch.cat([at if gate == k else one for k in range(3)], 1)
        new_h, new_cell = stage.operators.pointwise(z, zero)
        d_z, _, d_old_cell = stage.operators.pointwise_backward(one, one, z, new_cell, [False, True])
        want = reference.pointwise_forward(z, zero) + reference.pointwise_backward(one, one, z, zero)
        for got, exact in zip((new_h, new_cell, d_z, d_old_cell), want, strict=True):
            torch.testing.assert_close(got, exact.to(dtype))


@pytest.mark.syllabus("6.2c")
@every_dtype
def test_saved_are_inputs_an_output_and_z(stage, dtype):
    case = case_of(stage, 16, 32, 128, dtype=dtype)
    saved = Run(Implementation("stage 6", stage.lltm), make_input_sets(case), backward=False).saved_bytes()
    number = dtype.itemsize
    assert saved == {
        "saved_bytes": 16 * 3 * 128 * number,  # z
        "saved_input_bytes": (16 * 32 + 3 * 128 * (128 + 32) + 16 * 128) * number,  # input, weights and old_h
        "saved_output_bytes": 16 * 128 * number,  # new_cell
    }


# Alignment, tails, rows ------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.3b", "6.3c")
@pytest.mark.parametrize(
    ("stage", "S", "dtype", "layouts"), on_targets(TARGETS, TAILS, DTYPES, looped=LAYOUTS), indirect=["stage"]
)
def test_every_tail_and_every_alignment(stage, S, dtype, layouts):
    for layout in layouts:
        agree(stage, case_of(stage, 5, 2, S, dtype=dtype, layout=layout))


def moved(tensor: torch.Tensor, by: int) -> torch.Tensor:
    """The same numbers, so many elements behind an aligned address."""
    storage = tensor.new_full((tensor.numel() + by,), float("nan"))
    return storage[by:].view(tensor.shape).copy_(tensor)


@pytest.mark.syllabus("6.3b")
@every_dtype
def test_each_tensor_may_be_aligned_in_its_own_way(stage, dtype):
    given = [tensor.to(dtype) for tensor in arguments(stage, 9, 1, 32)]
    *_, old_cell = given
    z = torch.cat([old_cell + k for k in (0, -1, 1)], 1)
    operators = stage.operators
    new_h, new_cell = operators.pointwise(z, old_cell)
    gradients = operators.pointwise_backward(new_h, old_cell, z, new_cell, [True, True])
    for by in range(1, 16 // dtype.itemsize):
        got = operators.pointwise(z, moved(old_cell, by))
        torch.testing.assert_close(got, (new_h, new_cell), rtol=0, atol=0)
        torch.testing.assert_close(operators.pointwise(moved(z, by), old_cell), got, rtol=0, atol=0)
        for k in range(4):
            four = [moved(t, by) if k == j else t for j, t in enumerate((new_h, old_cell, z, new_cell))]
            again = operators.pointwise_backward(*four, [True, True])
            for one, other in zip(again, gradients, strict=True):
                torch.testing.assert_close(one, other)  # a bias's sum may be of other parts


@every_dtype
def test_a_single_row_may_be_the_beginning_of_a_longer_one(stage, dtype):
    """It has no gaps, whatever its stride, and so no copy is made; but it does not end where a pack does."""
    pack = 16 // dtype.itemsize
    _, weights, _, _, cell = (tensor.to(dtype) for tensor in arguments(stage, 1, pack, pack))
    z, cell = weights.view(1, -1)[:, : 3 * (pack - 1)], cell[:, : pack - 1]
    assert z.is_contiguous()
    assert z.stride(0) % pack == 0
    operators, alone = stage.operators, (cell.clone(), z.clone())
    torch.testing.assert_close(operators.pointwise(z, cell), operators.pointwise(*reversed(alone)), rtol=0, atol=0)
    got = operators.pointwise_backward(cell, None, z, cell, [True, True])
    want = operators.pointwise_backward(alone[0], None, alone[1], alone[0], [True, True])
    torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.syllabus("6.3a")
@pytest.mark.needs("g++")
@pytest.mark.parametrize("S", [512, 510, 509])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_a_thread_asks_for_16_bytes_at_once(dtype, S):
    """Wherever a row begins at a multiple of 16 bytes: everywhere if 16 bytes divide it, else here and there."""
    counted = stage_counts.count_stage(6, B=8, S=S, dtype=dtype)
    itemsize = getattr(torch, dtype).itemsize
    for kernel, loaded, stored in (("forward_kernel", 4, 2), ("backward_kernel", 6, 4)):
        for space, tensors in (("global load", loaded), ("global store", stored)):
            rows = counted.of(kernel, space)
            assert sum(row.bytes for row in rows) == tensors * 8 * S * itemsize  # each number once, no more
            lanes = sum(row.lanes for row in rows)
            packs = tensors * 8 * S * itemsize / 16
            assert lanes == packs if S * itemsize % 16 == 0 else lanes > packs


@pytest.mark.needs("g++")
def test_more_rows_than_a_grid_has(emulated):
    """8 rows a block and 65535 blocks: the last row is a second turn of the loop."""
    agree(emulated, case_of(emulated, 8 * 65535 + 1, 1, 1, requires_grad=("old_cell",)))


@pytest.mark.needs("gpu", "nvcc")
def test_more_numbers_than_an_int_can_count():
    operators = modules.load_stage(6, "cuda").operators
    B, S = 2**31 // (3 * 1024) + 9, 1024
    z = torch.empty(B, 3 * S, dtype=torch.float16, device="cuda")
    assert z.numel() > 2**31
    z.normal_()
    old_cell, last = z[:, :S], slice(-7, None)
    new_h, new_cell = operators.pointwise(z, old_cell)
    d_z, d_bias, d_old_cell = operators.pointwise_backward(new_h, old_cell, z, new_cell, [True, True])
    few = operators.pointwise(z[last], old_cell[last])
    gradients = operators.pointwise_backward(few[0], old_cell[last], z[last], few[1], [False, True])
    got = new_h[last], new_cell[last], d_z[last], d_old_cell[last]
    torch.testing.assert_close(got, (*few, gradients[0], gradients[2]), rtol=0, atol=0)
    torch.testing.assert_close(d_bias, d_z.sum(0, dtype=torch.float32).half(), rtol=1e-2, atol=1)


@pytest.mark.syllabus("6.2e")
@every_dtype
def test_the_same_numbers_every_time(stage, dtype):
    case = case_of(stage, 700, 3, 40, dtype=dtype)
    first, *others = (outputs(stage.lltm, case) for _ in range(4))
    for other in others:
        for name, tensor in first.items():
            assert torch.equal(tensor, other[name]), name


@pytest.mark.syllabus("6.2e")
@every_dtype
def test_the_bias_gradient_is_the_sum_of_d_z(stage, dtype):
    """Over one block or thread, and over many."""
    for B in (0, 1, 8, 9, 1000):
        _, _, _, old_h, old_cell = arguments(stage, B, 1, 40, dtype=dtype)
        z = torch.cat([old_cell, old_h, old_h - old_cell], 1)
        d_z, d_bias, _ = stage.operators.pointwise_backward(old_h, old_cell, z, old_cell, [True, True])
        want = d_z.double().sum(0)
        allowed = torch.finfo(dtype).eps * (want.abs() + 32 * d_z.double().square().sum(0).sqrt())
        assert ((d_bias.double() - want).abs() <= allowed).all()


# What torch does with it -----------------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("size", [(3, 5, 70), (1, 1, 1), (0, 4, 8)], ids=str)
def test_opcheck(stage, dtype, size):
    operators = stage.operators
    for layout in LAYOUTS if dtype == torch.float32 else LAYOUTS[:1]:  # what layouts do is the same for any dtype
        case = case_of(stage, *size, dtype=dtype, layout=layout)
        given = case.inputs()
        opcheck(operators.cell.default, tuple(given.values()))
        input, weights, bias, old_h, old_cell = (tensor.detach() for tensor in given.values())
        opcheck(operators.cell.default, (input, weights, bias, old_h, old_cell))
        _, new_cell, z = operators.cell(input, weights, bias, old_h, old_cell)
        grad_h, grad_cell = case.gradients()
        for grads in ((grad_h, grad_cell), (grad_h, None), (None, grad_cell), (None, None)):
            for needs in ([True] * 5, [False, True, True, False, False]):
                opcheck(operators.cell_backward.default, (*grads, input, weights, old_h, new_cell, z, needs))
        opcheck(operators.pointwise.default, (z, old_cell))
        for needs in ([True, True], [False, True], [True, False]):
            opcheck(operators.pointwise_backward.default, (grad_h, None, z, new_cell, needs))


@pytest.mark.syllabus("6.4b")
@every_dtype
@pytest.mark.parametrize("dynamic", [False, True])
def test_whole_under_compile(stage, dtype, dynamic):
    torch._dynamo.reset()
    backend = "inductor" if dtype == torch.float32 and stage.TARGET != "emulator" else "aot_eager"
    compiled = torch.compile(stage.lltm, fullgraph=True, dynamic=dynamic, backend=backend)
    for size in ((3, 5, 70), (4, 6, 33))[: 1 + dynamic]:
        for changes in ({}, {"grads": "h only"}, {"grads": "expanded"}, {"requires_grad": PARAMETERS}):
            case = case_of(stage, *size, dtype=dtype, **changes)
            assert difference(case, outputs(compiled, case)) is None
    if dynamic:
        with torch.compiler.set_stance("fail_on_recompile"):
            case = case_of(stage, 7, 9, 21, dtype=dtype)
            assert difference(case, outputs(compiled, case)) is None


def test_export_keeps_the_operator(stage):
    class Cell(torch.nn.Module):
        def forward(self, *given):
            return stage.lltm(*given)

    given = arguments(stage, 3, 5, 7)
    exported = torch.export.export(Cell(), tuple(given))
    assert stage.operators.cell.default in [node.target for node in exported.graph.nodes]
    torch.testing.assert_close(exported.module()(*given), stage.lltm(*given), rtol=0, atol=0)


@pytest.mark.needs("gpu", "nvcc")
def test_a_cuda_graph_replays_both_passes():
    stage = modules.load_stage(6, "cuda")
    static = [tensor.requires_grad_() for tensor in arguments(stage, 9, 5, 70)]
    other = arguments(stage, 9, 5, 70)

    def both(given):
        results = stage.lltm(*given)
        return *results, *torch.autograd.grad(sum(result.sum() for result in results), given)

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # what runs once only, such as cuBLAS's workspace, is no part of a graph
        both(static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = both(static)
    with torch.no_grad():
        for to, value in zip(static, other, strict=True):
            to.copy_(value)
    graph.replay()
    for one, want in zip(got, both([tensor.requires_grad_() for tensor in other]), strict=True):
        torch.testing.assert_close(one, want, rtol=0, atol=0)


@pytest.mark.syllabus("6.4c")
@pytest.mark.needs("g++")
def test_a_cpu_works_with_as_many_threads_as_torch():
    """The result is the same for any number of them: sums are made in parts that do not depend on it."""
    stage, threads = modules.load_stage(6, "host"), torch.get_num_threads()
    case = Case(300, 3, 200)
    got = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            z, cell = torch.ones(300, 600).cumsum(0).sin(), torch.ones(300, 200).cumsum(1).sin()
            got.append(stage.operators.pointwise_backward(cell, cell, z, cell, [True, True]))
            agree(stage, case)
    finally:
        torch.set_num_threads(threads)
    for other in got[1:]:
        torch.testing.assert_close(other, got[0], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_autocast(stage, dtype):
    case = case_of(stage, 3, 5, 70)
    with torch.autocast(case.device, dtype=dtype):
        got = outputs(stage.lltm, case)
    want = stage.lltm(*(tensor.detach().to(dtype) for tensor in case.inputs().values()))
    torch.testing.assert_close((got["new_h"], got["new_cell"]), want, rtol=0, atol=0)
    assert {got[f"d_{name}"].dtype for name in INPUTS} == {torch.float32}


@both_sizes
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_backward_is_in_the_dtype_of_its_forward(stage, dtype, size):
    """Autocast or not, wherever it is called."""
    case = case_of(stage, *size)
    inputs, gradients = case.inputs(), case.gradients()
    want = input_gradients(stage.lltm(*inputs.values()), inputs, gradients)
    results = stage.lltm(*inputs.values())
    with torch.autocast(case.device, dtype=dtype):
        got = input_gradients(results, inputs, gradients)
    torch.testing.assert_close(got, want, rtol=0, atol=0)


@both_sizes
def test_backward_refuses_what_does_not_fit(stage, size):
    input, weights, _, old_h, _ = given = arguments(stage, *size)
    _, new_cell, z = stage.operators.cell(*given)
    named = {"input": input, "weights": weights, "old_h": old_h}
    wrong = [(name, tensor[:-1]) for name, tensor in named.items()]
    wrong += [(name, named[name][:, :-1]) for name in ("weights", "old_h")]
    wrong += [(name, tensor.double()) for name, tensor in named.items()]
    wrong.append(("input", input[0]))
    for name, tensor in wrong:
        factors = tuple((named | {name: tensor}).values())
        for device in (z.device, "meta"):
            all_of_it = (t.to(device) for t in (old_h, old_h, *factors, new_cell, z))
            with pytest.raises(RuntimeError, match=f"lltm: {name} has (shape|dtype)"):
                stage.operators.cell_backward(*all_of_it, [True] * 5)


def test_vmap_goes_through_the_batch(stage):
    given = arguments(stage, 6, 5, 7)
    input, weights, bias, *state = given
    batches = [tensor.unflatten(0, (2, 3)) for tensor in (input, *state)]
    got = torch.vmap(stage.lltm, in_dims=(0, None, None, 0, 0))(batches[0], weights, bias, *batches[1:])
    torch.testing.assert_close([part.flatten(0, 1) for part in got], list(stage.lltm(*given)))


def test_what_has_no_derivative_says_so(stage):
    given = arguments(stage, 3, 5, 7)
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="jvp is not implemented"):
        stage.lltm(*(forward_ad.make_dual(tensor, tensor) for tensor in given))
    with pytest.raises(RuntimeError, match="functorch"):
        torch.func.grad(lambda bias: stage.lltm(*given[:2], bias, *given[3:])[0].sum())(given[2])
    z, old_cell = given[1].new_zeros(3, 21).requires_grad_(), given[4]
    new_h, _ = stage.operators.pointwise(z, old_cell)
    with pytest.raises(RuntimeError, match=r"pointwise has no derivative"):
        new_h.sum().backward()
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="no forward-mode derivative"):
        stage.operators.pointwise(forward_ad.make_dual(z.detach(), z.detach()), old_cell)


@pytest.mark.parametrize("k", range(2), ids=["z", "old_cell"])
def test_an_operator_without_a_derivative_is_connected_with_each_argument(stage, k):
    _, _, _, _, old_cell = arguments(stage, 3, 5, 7)
    given = [old_cell.new_ones(3, 21), old_cell.detach()]
    given[k].requires_grad_()
    new_h, new_cell = stage.operators.pointwise(*given)
    loss = new_h.sum() + new_cell.sum() + given[k].sum()  # the second path alone would give ones
    with pytest.raises(RuntimeError, match="pointwise has no derivative"):
        torch.autograd.grad(loss, given[k])
