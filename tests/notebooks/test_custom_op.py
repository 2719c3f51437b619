"""What notebook 05 says of registered operators in general: its own small ones, each with one registration wrong."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import pytest
import torch
from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.gradcheck import GradcheckError
from torch.library import opcheck
from torch.torch_version import TorchVersion

from common.build import modules
from common.cell import reference
from common.cell.case import Case, expected, outputs, tolerance
from support.labs import definitions, lab_library
from support.proofs.files import notebook_files, stage_files

pytestmark = [
    pytest.mark.usefixtures("compiles_anew"),
    pytest.mark.needs("g++", "ninja"),
    pytest.mark.proof("claims of notebooks", files=[*notebook_files("05_custom_op"), *stage_files(5)]),
]

NOTEBOOK = definitions("05_custom_op")
NUMBERS = itertools.count()


@pytest.fixture
def gated():
    """`sigmoid(z) * x` in C++, with a kernel for the CPU and nothing else."""
    lab_library()
    return torch.ops.lab.forgotten


@pytest.fixture
def make():
    """Registers a new operator with a kernel for the CPU, and, if given, a fake kernel."""

    def make(kernel, fake=None, schema="(Tensor z, Tensor x) -> Tensor"):
        namespace = f"test_notebook_{next(NUMBERS)}"
        torch.library.define(f"{namespace}::gated", schema, tags=[torch.Tag.pt2_compliant_tag])
        torch.library.impl(f"{namespace}::gated", "cpu", kernel)
        if fake:
            torch.library.register_fake(f"{namespace}::gated", fake)
        return getattr(torch.ops, namespace).gated

    return make


def samples(**options: object) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(0)
    return tuple(torch.randn(3, 4, generator=numbers, **options) for _ in "zx")


def formula(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return z.sigmoid() * x


def contiguous(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The right fake kernel of gated."""
    return z.new_empty(z.shape)


def complaints(operator, arguments) -> dict[str, str]:
    """What opcheck finds, by the name of its test."""
    results = opcheck(operator, arguments, raise_exception=False)
    return {test: str(result) for test, result in results.items() if result != "SUCCESS"}


def process(script: str) -> subprocess.CompletedProcess:
    """A script in a process of its own."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


# The dispatcher and the schema ------------------------------------------------------------------------------------


@pytest.mark.syllabus("5.1e")
def test_each_key_passes_on_to_the_next():
    seen: list[str] = []
    library = torch.library.Library("test_notebook_who", "DEF")
    library.define("asked(Tensor x) -> Tensor")
    asked = torch.ops.test_notebook_who.asked

    def kernel(key: str):
        def passes_on(x):
            seen.append(key)
            with _ExcludeDispatchKeyGuard(DispatchKeySet(getattr(DispatchKey, key))):
                return asked(x)

        def computes(x):
            seen.append(key)
            return torch.empty_like(x)

        return computes if key in ("CPU", "Meta") else passes_on

    def folds(info, in_dims, x):
        seen.append("FuncTorchBatched")
        return asked(x), in_dims[0]

    for key in ("AutocastCPU", "AutogradCPU", "AutogradMeta", "CPU", "Meta"):
        library.impl("asked", kernel(key), key)
    torch.library.register_vmap("test_notebook_who::asked", folds, lib=library)

    def keys(call) -> list[str]:
        seen.clear()
        call()
        return list(seen)

    x, fake = torch.ones(3, 2), FakeTensorMode()
    assert keys(lambda: asked(x)) == ["AutogradCPU", "CPU"], "though nothing needs a gradient"
    with torch.no_grad():
        assert keys(lambda: asked(x)) == ["AutogradCPU", "CPU"]
    with torch.inference_mode():
        assert keys(lambda: asked(x)) == ["CPU"]
    with torch.autocast("cpu", torch.bfloat16):
        assert keys(lambda: asked(x)) == ["AutocastCPU", "AutogradCPU", "CPU"]
    assert keys(lambda: torch.vmap(asked)(x)) == ["FuncTorchBatched", "AutogradCPU", "CPU"]
    assert keys(lambda: asked(x.to("meta"))) == ["AutogradMeta", "Meta"]
    with fake:
        assert keys(lambda: asked(fake.from_tensor(x))) == ["AutogradCPU", "Meta"]


@pytest.mark.syllabus("5.1a")
def test_the_schema_names_and_checks_the_arguments(gated):
    schema = gated.default._schema
    assert [(a.name, str(a.type)) for a in schema.arguments] == [("z", "Tensor"), ("x", "Tensor")]
    assert [str(r.type) for r in schema.returns] == ["Tensor"]
    z, x = samples()
    assert torch.equal(gated(x=x, z=z), gated(z, x))
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        gated(z)
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x' but instead found"):
        gated(z, 3.0)


@pytest.mark.syllabus("5.1b")
def test_a_device_without_a_kernel_is_refused():
    def filled(name: str) -> set[str]:
        keys = ("CPU", "CUDA", "Meta", "AutocastCPU")
        return {key for key in keys if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)}

    lab_library()
    assert filled("lab::forgotten") == {"CPU"}
    operators = modules.load_stage(5, "host").operators
    assert filled(operators.pointwise.default.name()) == {"CPU", "Meta", "AutocastCPU"}
    z, x = (tensor.to("meta") for tensor in samples())
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel registered"):
        torch.ops.lab.forgotten(z, x)


@pytest.mark.syllabus("5.1c")
def test_a_library_without_pybind_is_loaded_but_not_imported():
    path = lab_library()
    script = (
        "import torch, importlib.machinery, importlib.util\n"
        "assert not hasattr(torch.ops.lab, 'gated')\n"
        f"torch.ops.load_library({path!r})\n"
        "print(torch.ops.lab.gated(torch.zeros(1, 2), torch.ones(1, 2)).tolist())\n"
        f"loader = importlib.machinery.ExtensionFileLoader('lab', {path!r})\n"
        f"importlib.util.module_from_spec(importlib.util.spec_from_file_location('lab', {path!r}, loader=loader))\n"
    )
    done = process(script)
    assert done.stdout == "[[0.5, 0.5]]\n"
    assert "ImportError: dynamic module does not define module export function (PyInit_lab)" in done.stderr


@pytest.mark.syllabus("5.1d")
def test_it_is_called_by_its_namespace_and_name(gated):
    z, x = samples(dtype=torch.float64)
    for arguments in ((z, x), (z.t(), x.t()), (z[:, ::2], x[:, 1::2])):
        torch.testing.assert_close(torch.ops.lab.gated(*arguments), formula(*arguments))
        assert torch.ops.lab.gated(*arguments).is_contiguous()
    assert gated.default.name() == "lab::forgotten"


# What each registration makes possible ----------------------------------------------------------------------------


@pytest.mark.syllabus("5.2a", "5.3a")
def test_a_fake_kernel_is_what_compile_needs(gated, make):
    def double(operator):
        return torch.compile(lambda z, x: 2 * operator(z, x), backend="aot_eager", fullgraph=True)

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"unsupported operator: lab\.forgotten\.default"):
        double(gated)(*samples())
    told = make(gated, contiguous)
    torch.testing.assert_close(double(told)(*samples()), 2 * formula(*samples()))
    enormous = torch.empty(10**9, 10**9, device="meta", dtype=torch.float64).t()
    result = told(enormous, enormous)
    assert (result.shape, result.dtype, result.stride()) == (enormous.shape, enormous.dtype, (10**9, 1))


@pytest.mark.syllabus("5.2e")
def test_without_a_gradient_each_way_of_asking_gets_another_answer(gated):
    z, x = samples()
    leaf = z.clone().requires_grad_()
    assert gated(leaf, x).requires_grad
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        gated(leaf, x).sum().backward()
    assert leaf.grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
            torch.autograd.grad(gated(leaf, x).sum(), leaf)
        assert not torch.func.grad(lambda z: gated(z, x).sum())(z).any(), "zeros, without an error"


@pytest.mark.syllabus("5.2b", "5.2f")
def test_a_registered_gradient_and_what_comes_not_with_it(gated, make, monkeypatch):
    told = make(gated, contiguous)
    torch.library.register_autograd(told.default.name(), NOTEBOOK.backward, setup_context=NOTEBOOK.setup_context)
    z, x = samples(dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(told, (z, x))
    assert torch.autograd.gradgradcheck(told, (z, x))
    assert complaints(told, (z, x)) == {}
    with pytest.raises(RuntimeError, match="setup_context"):
        torch.func.grad(lambda z: told(z, x).sum())(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tangent = torch.func.jvp(lambda z: told(z, x).sum(), (z,), (z,))[1]
        assert tangent == 0 != torch.func.jvp(lambda z: formula(z, x).sum(), (z,), (z,))[1]
        with pytest.raises(GradcheckError, match="forward mode mismatch"):
            torch.autograd.gradcheck(told, (z, x), check_forward_ad=True)
        monkeypatch.setattr(NOTEBOOK, "gated", told, raising=False)
        with pytest.raises(RuntimeError, match="gated: there are no forward-mode derivatives"):
            torch.func.jvp(lambda z: NOTEBOOK.gated_or_error(z, x).sum(), (z,), (z,))


@pytest.mark.syllabus("5.4a")
def test_autocast_leaves_a_mixture_without_a_rule(gated, make):
    z, x = samples()
    told = make(gated)
    with torch.autocast("cpu", torch.bfloat16):
        product = torch.mm(torch.eye(3), z)
        with pytest.raises(RuntimeError, match="gated: x has dtype Float, but z has BFloat16"):
            told(product, x)
        torch.library.register_autocast(told.default.name(), "cpu", torch.float32)
        assert told(product, x).dtype == torch.float32
        torch.testing.assert_close(told(product, x), formula(product.float(), x))


@pytest.mark.syllabus("5.2g")
def test_vmap_without_a_rule_is_right_and_says_that_it_is_slow():
    path = lab_library()
    script = (
        "import torch, warnings\n"
        f"torch.ops.load_library({path!r})\n"
        "z, x = torch.randn(5, 3, 4), torch.randn(5, 3, 4)\n"
        "assert torch.allclose(torch.vmap(torch.ops.lab.gated)(z, x), z.sigmoid() * x)\n"
    )
    done = process(script)
    assert done.returncode == 0, done.stderr
    assert "we have not yet implemented the batching rule for lab::gated" in done.stderr


# opcheck, and lies -------------------------------------------------------------------------------------------------

LIES = {
    "shape": lambda z, x: z.new_empty(z.size(1), z.size(0)),
    "strides": lambda z, x: z.new_empty(z.size(1), z.size(0)).t(),
    "dtype": lambda z, x: z.new_empty(z.shape, dtype=torch.float16),
}
LATER = pytest.mark.skipif(
    TorchVersion(torch.__version__) < (2, 15),
    reason="torch 2.11 does not look, 2.15 does, in between nobody has tried",
)


def every_lie(later: str) -> pytest.MarkDecorator:
    """A test of each lie, of `later` only where torch is new enough to notice."""
    lies = [pytest.param(fake, id=name, marks=[LATER] * (name == later)) for name, fake in LIES.items()]
    return pytest.mark.parametrize("fake", lies)


LOUD = r"expected size 3==|expected dtype torch.float16 but got torch.float32"


def like_cell(cell: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return cell.new_empty(cell.shape)


HIDDEN, DECLARED = "(Tensor cell, Tensor z) -> Tensor", "(Tensor(a!) cell, Tensor z) -> Tensor"


@every_lie(later="strides")
@pytest.mark.syllabus("5.2c", "5.3e")
def test_opcheck_finds_a_fake_kernel_that_lies(gated, make, fake):
    assert complaints(make(gated, contiguous), samples()) == {}
    assert set(complaints(make(gated, fake), samples())) == {"test_faketensor"}


@LATER
@pytest.mark.syllabus("5.2c")
def test_opcheck_finds_what_its_samples_show(gated, make):
    like_z = make(gated, lambda z, x: torch.empty_like(z))
    assert complaints(like_z, samples()) == {}
    found = complaints(like_z, tuple(tensor.t() for tensor in samples()))
    assert "Stride mismatch" in found["test_faketensor"]


@pytest.mark.syllabus("5.2c")
def test_opcheck_finds_a_missing_fake_kernel(gated):
    assert set(complaints(gated, samples())) == {"test_faketensor", "test_aot_dispatch_dynamic"}


@pytest.mark.syllabus("5.2c", "5.3e")
def test_opcheck_finds_a_hidden_mutation(make):
    found = complaints(make(NOTEBOOK.advance_cell, like_cell, HIDDEN), samples())
    assert found == {"test_schema": "Argument cell is not defined as mutable but was mutated"}
    assert complaints(make(NOTEBOOK.advance_cell, like_cell, DECLARED), samples()) == {}


@pytest.mark.syllabus("5.2d")
def test_opcheck_does_not_look_at_values(gated, make):
    wrong = make(lambda z, x: 2 * gated(z, x), contiguous)
    torch.library.register_autograd(wrong.default.name(), lambda ctx, grad: (0 * grad, 0 * grad))
    z, x = samples(requires_grad=True)
    assert complaints(wrong, (z, x)) == {}
    assert not torch.allclose(wrong(z, x), formula(z, x))


@pytest.mark.syllabus("5.2d")
def test_opcheck_does_not_miss_a_gradient(make):
    without_gradient = make(lambda z, x: formula(z.detach(), x.detach()), contiguous)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert complaints(without_gradient, samples(requires_grad=True)) == {}


@every_lie(later="dtype")
@pytest.mark.syllabus("5.3b")
def test_a_lie_is_loud_under_inductor(gated, make, fake):
    lie = make(gated, fake)
    with pytest.raises((AssertionError, RuntimeError), match=LOUD) as caught:
        torch.compile(lambda z, x: lie(z, x).sum(1), fullgraph=True)(*samples())
    assert f"Error in op: torch.ops.{lie.default.name().replace('::', '.')}.default" in str(caught.value)


class Sums(torch.nn.Module):
    """The sums of rows of what some operators return."""

    def __init__(self, operators) -> None:
        super().__init__()
        self.operators = operators

    def forward(self, z, x):
        return tuple(operator(z, x).sum(1) for operator in self.operators)


def wrong(got: torch.Tensor, want: torch.Tensor) -> bool:
    return got.shape != want.shape or not torch.allclose(got.float(), want)


@pytest.mark.syllabus("5.3c")
def test_a_lie_is_silent_without_size_asserts(gated, make):
    z, x = samples()
    honest, *lies = [make(gated, fake) for fake in (contiguous, *LIES.values())]
    with torch._inductor.config.patch(size_asserts=False):
        right, *results = torch.compile(Sums([honest, *lies]), fullgraph=True)(z, x)
    want = formula(z, x).sum(1)
    assert not wrong(right, want)
    assert all(wrong(result, want) for result in results)


@pytest.mark.syllabus("5.3c")
def test_a_lie_is_silent_ahead_of_time(gated, make, tmp_path):
    z, x = samples()
    program = torch.export.export(Sums([make(gated, fake) for fake in (contiguous, *LIES.values())]), (z, x))
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "lies.pt2"))
    right, *results = torch._inductor.aoti_load_package(package)(z, x)
    want = formula(z, x).sum(1)
    assert not wrong(right, want)
    assert all(wrong(result, want) for result in results)


@pytest.mark.parametrize("function", [NOTEBOOK.read_before, NOTEBOOK.on_a_copy])
@pytest.mark.syllabus("5.3d")
def test_an_undeclared_mutation_is_silently_wrong_under_compile(make, function):
    def run(schema: str, compiled: bool) -> list[list[float]]:
        advance = make(NOTEBOOK.advance_cell, like_cell, schema)
        call = torch.compile(function, fullgraph=True) if compiled else function
        cell = torch.tensor([0.0, 1.0, 2.0])
        return [tensor.tolist() for tensor in (call(advance, cell, torch.zeros(3)), cell)]

    right = run(HIDDEN, compiled=False)
    assert run(DECLARED, compiled=False) == right
    for got, want in zip(run(DECLARED, compiled=True), right, strict=True):
        assert got == pytest.approx(want)
    assert run(HIDDEN, compiled=True) != [pytest.approx(want) for want in right]


@pytest.mark.syllabus("5.3g")
def test_export_records_the_operator_for_any_batch():
    stage = modules.load_stage(5, "host")
    NOTEBOOK.stage5 = stage
    rows = {0: torch.export.Dim("B", min=1)}
    arguments = [[t.detach() for t in Case(B, 5, 7).inputs().values()] for B in (3, 8)]
    dynamic = (rows, None, None, rows, rows)
    program = torch.export.export(NOTEBOOK.Cell(), tuple(arguments[0]), dynamic_shapes=dynamic)
    targets = [node.target for node in program.graph.nodes]
    assert targets.count(stage.operators.pointwise.default) == 1
    for given in arguments:
        for got, want in zip(program.module()(*given), stage.lltm(*given), strict=True):
            torch.testing.assert_close(got, want, rtol=0, atol=0)


# Low precision -----------------------------------------------------------------------------------------------------

LOW = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


@LOW
@pytest.mark.syllabus("5.4b")
def test_float_inside_rounds_once_and_half_inside_does_not(dtype):
    numbers = torch.Generator().manual_seed(0)
    z, old_cell = ((2 * torch.randn(64, width, generator=numbers)).to(dtype) for width in (3 * 256, 256))
    exact = torch.stack(reference.pointwise_forward(z, old_cell))
    normal = exact.abs() > torch.finfo(dtype).smallest_normal

    def largest_error(new_h: torch.Tensor, new_cell: torch.Tensor) -> float:
        errors = (torch.stack([new_h, new_cell]).double() - exact).abs() / exact.abs()
        return errors[normal].max().item() / torch.finfo(dtype).eps

    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_g) * z_i.sigmoid()  # each operation rounds to dtype
    assert largest_error(*modules.load_stage(5, "host").operators.pointwise(z, old_cell)[:2]) < 0.51
    assert largest_error(new_cell.tanh() * z_o.sigmoid(), new_cell) > 100


@pytest.mark.syllabus("5.4c")
def test_each_dtype_needs_its_own_tolerance():
    dtypes = torch.float32, torch.float16, torch.bfloat16
    cases = {dtype: Case(B=64, I=32, S=128, dtype=dtype) for dtype in dtypes}
    lltm = modules.load_stage(5, "host").lltm
    errors = {}
    for dtype, case in cases.items():
        got, want = outputs(lltm, case), expected(case)
        size = {name: exact.abs() + exact.square().mean().sqrt() for name, exact in want.items()}
        errors[dtype] = max(((got[name] - want[name]).abs() / size[name]).max().item() for name in want)
    for k, (dtype, finer) in enumerate(zip(dtypes[1:], dtypes, strict=False)):
        assert tolerance(cases[finer]) < errors[dtype] <= tolerance(cases[dtype]), k
    assert errors[torch.float32] <= tolerance(cases[torch.float32])


@pytest.mark.syllabus("5.4d")
def test_a_cell_that_is_stored_in_bfloat16_stops_growing():
    pointwise = modules.load_stage(5, "host").operators.pointwise
    cell = torch.zeros(1, 1, dtype=torch.bfloat16)
    for _ in range(300):
        _, cell, _ = pointwise(torch.tensor([[20.0, 0.0, 0.5]], dtype=torch.bfloat16), cell)
    assert cell.item() == 128, "steps of 0.5 to numbers that are 1 apart"
