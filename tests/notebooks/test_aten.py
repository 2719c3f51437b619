"""What notebooks 02 and 02c say of C++ with ATen, tried on their own texts, all of them built as one module."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, ModuleType

import pytest
import torch
from torch.autograd.function import once_differentiable
from torch.autograd.gradcheck import GradcheckError
from torch.utils.cpp_extension import load_inline

from common.build import modules
from common.cell.case import Case, Cell, difference, outputs
from common.measure.implementations import Implementation, Run, make_input_sets
from support.labs import ATEN, POINTERS
from support.profiled import allocations, operations
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof(
        "claims of notebooks",
        files=[*notebook_files("02_aten", "02c_faster_backward", "03b_kernel_in_torch"), *stage_files(1, 2)],
    ),
]

# A loop around one operation, as the notebook has it.
LOOP = "at::Tensor add_many" + ATEN["ADD_MANY"].partition("at::Tensor add_many")[2]
# What notebook 03b shows of dispatch: a switch by macro and by hand.
KINDS = "template <typename T>\nstd::string name_of" + POINTERS["KIND_CPP"].partition("std::string name_of")[2]
NEEDED = ("addmm", "cat", "elu", "elu_backward", "sigmoid_backward", "tanh_backward")
GROUPS = {
    "loop": (LOOP, ["add_many"]),
    "dispatch": ("#include <ATen/Dispatch.h>\n" + KINDS, ["kind", "kind_with_half", "kind_by_hand"]),
    "plain": (
        ATEN["DERIVATIVES"] + ATEN["FORWARD"] + ATEN["BACKWARD"],
        ["d_sigmoid", "d_tanh", "d_elu", "forward", "backward"],
    ),
    "steps": (
        "".join(f"#include <ATen/ops/{name}.h>\n" for name in NEEDED) + ATEN["REUSE"] + ATEN["ATEN"],
        ["forward", "backward", "aten_backward"],
    ),
}


def split(text: str) -> tuple[str, str]:
    """The lines that include a header, and the others."""
    headers = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#include"))
    return headers, "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#include"))


def source() -> str:
    """The notebook's binding; in front of it each group in a namespace, and in it their functions, GROUP_NAME."""
    headers, binding = split(ATEN["BINDING"])
    binding = binding.rstrip().removesuffix("}")
    groups = ""
    for group, (text, functions) in GROUPS.items():
        included, body = split(text)
        headers += included
        groups += f"namespace {group} {{\nusing at::Tensor;\n{body}}}\n"
        for name in functions:
            binding += f'  m.def("{group}_{name}", torch::wrap_pybind_function({group}::{name}));\n'
    return headers + "#include <torch/csrc/Exceptions.h>\n" + groups + binding + "}\n"


@pytest.fixture(scope="module")
def aten(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = str(tmp_path_factory.mktemp("aten"))
    return load_inline("aten", source(), no_implicit_headers=True, extra_cflags=["-O1"], build_directory=folder)


def cell_of(forward: Callable, backward: Callable, refuses: bool = True) -> Cell:
    """A Function around the forward and backward of a group, as the notebook's `function_around`."""

    class Around(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            new_h, new_cell, *saved = forward(*inputs)
            ctx.save_for_backward(inputs[1], new_cell, *saved)
            return new_h, new_cell

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            gradient = Refusing.apply if refuses and torch.is_grad_enabled() else backward
            return tuple(gradient(grad_h, grad_cell, *ctx.saved_tensors))

    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            return tuple(backward(*arguments))

        @staticmethod
        def backward(ctx, *gradients):
            raise RuntimeError("there are no second derivatives")

    return Around.apply


@pytest.fixture(scope="module")
def versions(aten: ModuleType) -> dict[str, Cell]:
    """From eager to stage 2, in the notebook's order."""
    return {
        "eager": modules.load_stage(1).equations,
        "plain": cell_of(aten.plain_forward, aten.plain_backward),
        "reused": cell_of(aten.steps_forward, aten.steps_backward),
        "ATen's": cell_of(aten.steps_forward, aten.steps_aten_backward),
        "stage 2": modules.load_stage(2).lltm,
    }


def backward_of(cell: Cell, case: Case) -> Callable[[], object]:
    """A call of the backward pass alone."""
    inputs, gradients = list(case.inputs().values()), case.gradients()
    results = cell(*inputs)
    return lambda: torch.autograd.grad(results, inputs, gradients, retain_graph=True)


def test_every_version_is_right(versions):
    for cell in versions.values():
        assert difference(Case(3, 5, 70), outputs(cell, Case(3, 5, 70))) is None


# What C++ removes, and the binding -------------------------------------------------------------------------------


def python_instructions(call: Callable[[], object]) -> int:
    """How many instructions of Python's own machine a call takes."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Callable:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.syllabus("2.1a")
def test_cpp_removes_the_python_between_operations(aten):
    def add_many(x: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            x = x + 1
        return x

    x = torch.zeros(16)
    calls = [lambda times=times: add_many(x, times) for times in (100, 200)]
    in_cpp = [lambda times=times: aten.loop_add_many(x, times) for times in (100, 200)]
    assert torch.equal(calls[0](), in_cpp[0]())
    assert operations(calls[0]) == operations(in_cpp[0]) == ["add"] * 100
    few, many = map(python_instructions, calls)
    assert many - few >= 300, "some for each operation"
    few, many = map(python_instructions, in_cpp)
    assert many == few < 20


@pytest.mark.syllabus("2.2c")
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "elu"])
def test_a_derivative_in_aten_agrees_with_autograd(aten, name):
    z = torch.linspace(-30, 30, 601, dtype=torch.float64, requires_grad=True)
    function = getattr(torch.nn.functional, name) if name == "elu" else getattr(torch, name)
    (expected,) = torch.autograd.grad(function(z).sum(), z)
    torch.testing.assert_close(getattr(aten, f"plain_d_{name}")(z.detach()), expected, rtol=0, atol=1e-14)


@pytest.mark.syllabus("2.3d")
def test_an_exception_of_cpp_arrives_with_its_message(aten):
    with pytest.raises(RuntimeError, match=r"^scale: x has 1 dimensions, expected 2"):
        aten.scale(torch.ones(3))
    with pytest.raises(ValueError, match=r"^scale: factor is 0$"):
        aten.scale(torch.ones(1, 3), factor=0)
    assert aten.scale(torch.ones(1, 3), factor=5).tolist() == [[5, 5, 5]]


@pytest.mark.syllabus("2.3e")
def test_without_the_gil_other_threads_run(aten):
    def ticks_during(call: Callable[[float], None]) -> int:
        ticks, over = [], threading.Event()

        def count() -> None:
            while not over.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        start = time.perf_counter()
        call(0.3)
        end = time.perf_counter()
        over.set()
        thread.join()
        return sum(start + 0.01 < tick < end - 0.01 for tick in ticks)

    assert ticks_during(aten.wait_and_hold) == 0
    assert ticks_during(aten.wait_and_release) > 10


@pytest.mark.syllabus("3.4a", "3.4b")
def test_the_dispatch_macro_does_what_a_switch_does(aten):
    """`scalar_t` is another type in each case, of which the lambda gives the name."""
    for dtype, name in ((torch.float32, "Float"), (torch.float64, "Double")):
        x = torch.zeros(1, dtype=dtype)
        assert aten.dispatch_kind(x) == aten.dispatch_kind_by_hand(x) == aten.dispatch_kind_with_half(x) == name
    half = torch.zeros(1, dtype=torch.float16)
    assert aten.dispatch_kind_with_half(half) == "Half"
    for function in ("kind", "kind_by_hand"):
        with pytest.raises(RuntimeError, match=f"\"{function}\" not implemented for 'Half'"):
            getattr(aten, f"dispatch_{function}")(half)


# The Function around the extension -------------------------------------------------------------------------------


@pytest.mark.syllabus("2.7a")
def test_backward_returns_a_gradient_for_each_argument(aten):
    def six(*arguments: object) -> tuple:
        gradients = aten.plain_backward(*arguments)
        return (*gradients, gradients[0])

    def six_into_five(*arguments: object) -> tuple:
        d_input, d_weights, d_bias, d_old_h, d_old_cell = six(*arguments)
        return d_input, d_weights, d_bias, d_old_h, d_old_cell

    def first_derivative(backward: Callable) -> None:
        results = cell_of(aten.plain_forward, backward)(*Case(2, 3, 4).inputs().values())
        sum(result.sum() for result in results).backward()

    first_derivative(aten.plain_backward)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 5, got 6\)"):
        first_derivative(six)
    with pytest.raises(ValueError, match="too many values to unpack"):
        first_derivative(six_into_five)


def penalised_gradient(cell: Cell, of_output: Callable = torch.square, penalty: float = 1) -> torch.Tensor:
    """The gradient for the bias of a loss with a gradient penalty."""
    inputs = list(Case(2, 3, 4, dtype=torch.float64).inputs().values())
    loss = sum(of_output(result).sum() for result in cell(*inputs))
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    loss = loss + penalty * sum(gradient.square().sum() for gradient in first)
    return torch.autograd.grad(loss, inputs[2])[0]


@pytest.mark.syllabus("2.7b")
def test_saved_intermediates_make_second_derivatives_silently_wrong(aten):
    right = penalised_gradient(modules.load_stage(1).lltm)
    silent = cell_of(aten.plain_forward, aten.plain_backward, refuses=False)
    inputs = tuple(Case(2, 3, 4, dtype=torch.float64).inputs().values())
    assert torch.autograd.gradcheck(silent, inputs)
    assert (penalised_gradient(silent) - right).abs().max() > 0.01 * right.abs().max()
    with pytest.raises(GradcheckError):
        torch.autograd.gradgradcheck(silent, inputs)

    class Around(torch.autograd.Function):
        forward = staticmethod(aten_forward(aten))

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_h, grad_cell):
            return tuple(aten.plain_backward(grad_h, grad_cell, *ctx.saved_tensors))

    # The penalty is lost as a whole, and nothing says so.
    without_penalty = penalised_gradient(modules.load_stage(1).lltm, penalty=0)
    torch.testing.assert_close(penalised_gradient(Around.apply), without_penalty)


def aten_forward(aten: ModuleType) -> Callable:
    def forward(ctx, *inputs):
        new_h, new_cell, *saved = aten.plain_forward(*inputs)
        ctx.save_for_backward(inputs[1], new_cell, *saved)
        return new_h, new_cell

    return forward


@pytest.mark.syllabus("2.7c")
@pytest.mark.parametrize("of_output", [torch.square, torch.clone])
def test_second_derivatives_are_refused_for_every_caller(aten, of_output):
    stage = modules.load_stage(2)
    for refusing in (cell_of(aten.plain_forward, aten.plain_backward), stage.lltm):
        with pytest.raises(RuntimeError, match="there are no second derivatives"):
            penalised_gradient(refusing, of_output)


@pytest.mark.syllabus("2.7c")
def test_a_saved_intermediate_does_not_connect_the_refusal():
    stage = modules.load_stage(2)

    class SavesIntermediates(stage.LLTMFunction):
        @staticmethod
        def forward(ctx, *inputs):
            new_h, new_cell, *saved = stage._C.forward(*inputs)
            ctx.save_for_backward(inputs[1], *saved, new_cell.clone())
            ctx.set_materialize_grads(False)
            return new_h, new_cell

    without_penalty = penalised_gradient(modules.load_stage(1).lltm, torch.clone, penalty=0)
    torch.testing.assert_close(penalised_gradient(SavesIntermediates.apply, torch.clone), without_penalty)


@pytest.mark.syllabus("2.7e")
def test_cpp_of_aten_calls_needs_no_backward_and_a_function_hides_it(aten):
    def direct(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(aten.plain_forward(*inputs)[:2])

    inside = []

    def hidden(*inputs: torch.Tensor) -> list[torch.Tensor]:
        results = aten.plain_forward(*inputs)
        inside.extend(result.grad_fn for result in results)
        return results

    inputs = tuple(Case(2, 3, 4, dtype=torch.float64).inputs().values())
    assert torch.autograd.gradcheck(direct, inputs)
    assert torch.autograd.gradgradcheck(direct, inputs)
    torch.testing.assert_close(penalised_gradient(direct), penalised_gradient(modules.load_stage(1).lltm))
    cell_of(hidden, aten.plain_backward)(*inputs)
    assert inside == [None] * 7


@pytest.mark.syllabus("2.7f")
def test_autocast_breaks_a_function_and_custom_fwd_mends_it():
    class Mm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x.mm(w)

        @staticmethod
        def backward(ctx, grad):
            x, w = ctx.saved_tensors
            return grad.mm(w.t()), x.t().mm(grad)

    class Fixed(Mm):
        forward = staticmethod(torch.amp.custom_fwd(Mm.forward, device_type="cpu", cast_inputs=torch.float32))
        backward = staticmethod(torch.amp.custom_bwd(Mm.backward, device_type="cpu"))

    def gradients(function: Cell, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16):
            results = function(*inputs)
        return torch.autograd.grad(sum(result.sum() for result in results), inputs)

    x, w = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    different = "expected m1 and m2 to have the same dtype, but got: c10::BFloat16 != float"
    with pytest.raises(RuntimeError, match=different):
        gradients(Mm.apply, x, w)
    with pytest.raises(RuntimeError, match=different):
        gradients(modules.load_stage(2).lltm, *Case(2, 3, 4).inputs().values())
    for got, expected in zip(
        gradients(Fixed.apply, x, w), (w.sum(1).expand(2, 3), x.sum(0)[:, None].expand(3, 4)), strict=True
    ):
        torch.testing.assert_close(got, expected)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
@pytest.mark.syllabus("2.7g")
def test_compile_breaks_its_graph_at_a_pybind11_function():
    graphs = []

    def counting(graph: torch.nn.Module, _: object) -> torch.nn.Module:
        graphs.append(graph)
        return graph

    def around(lltm: Cell) -> Callable:
        return lambda input, *others: lltm(2 * input, *others)[0].exp()

    inputs = list(Case(2, 3, 4).inputs().values())
    for cell, expected in ((modules.load_stage(1).equations, 1), (modules.load_stage(2).lltm, 2)):
        graphs.clear()
        torch.testing.assert_close(torch.compile(around(cell), backend=counting)(*inputs), around(cell)(*inputs))
        assert len(graphs) == expected
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(around(modules.load_stage(2).lltm), backend="eager", fullgraph=True)(*inputs)


# Why the backward can be slower, and how to win ------------------------------------------------------------------


@pytest.mark.syllabus("2.8a")
def test_the_plain_backward_computes_anew_what_autograd_kept(versions):
    case = Case(3, 5, 70)
    by_autograd, plain = (operations(backward_of(versions[name], case)) for name in ("eager", "plain"))
    anew = {"sigmoid", "tanh", "exp"}
    assert anew.issubset(plain)
    assert not anew.intersection(by_autograd)
    assert len(plain) > len(by_autograd)


@pytest.mark.syllabus("2.8d")
def test_atens_own_derivatives_take_one_pass():
    grad, z = torch.randn(2, 1000, dtype=torch.float64)
    s, t, e = torch.sigmoid(z), torch.tanh(z), torch.nn.functional.elu(z)
    derivatives = {
        "sigmoid": (lambda: torch.ops.aten.sigmoid_backward(grad, s), lambda: grad * s * (1 - s)),
        "tanh": (lambda: torch.ops.aten.tanh_backward(grad, t), lambda: grad * (1 - t * t)),
        "elu": (
            lambda: torch.ops.aten.elu_backward(grad, 1, 1, 1, True, e),
            lambda: grad * (e + 1).clamp_max(1),
        ),
    }
    for name, (at_once, formula) in derivatives.items():
        torch.testing.assert_close(at_once(), formula())
        assert operations(at_once) == [f"{name}_backward"]
        assert len(operations(formula)) >= 3
        assert allocations(formula, 8000) > allocations(at_once, 8000) == 1


@pytest.mark.syllabus("2.8d", "2.8e")
def test_each_step_takes_fewer_operations_or_less_memory(versions):
    case, block = Case(3, 5, 70), 3 * 70 * 4  # bytes of (B, S)
    backwards = {name: backward_of(cell, case) for name, cell in versions.items() if name != "eager"}
    calls = [len(operations(call)) for call in backwards.values()]
    taken = [allocations(call, block) for call in backwards.values()]
    assert calls == sorted(calls, reverse=True)
    assert len(set(calls[:3])) == 3, "plain, reused, ATen's: each does with fewer"
    assert taken == sorted(taken, reverse=True)
    assert taken[3] < taken[2], "in one block, in place"


@pytest.mark.syllabus("2.8b")
def test_the_bytes_that_each_version_keeps_for_backward(versions):
    case = Case(3, 5, 7)
    X, block = 3 * (7 + 5), 3 * 7
    expected = {
        "eager": X + 7 * block,  # z, three gates, tanh
        "plain": X + 6 * block,  # z and three gates
        "reused": X + 3 * block,  # the gates
        "ATen's": X + 3 * block,
        "stage 2": X + 3 * block,  # the gates; new_cell is a result, which the caller keeps
    }
    for name, numbers in expected.items():
        run = Run(Implementation(name, versions[name]), make_input_sets(case), backward=False)
        assert run.saved_bytes()["saved_bytes"] == 4 * numbers, name
