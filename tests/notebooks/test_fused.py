"""What notebooks 06, 06b and 06c say of limits, of what nvcc and g++ make of a text, and of autograd in C++."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.library import opcheck
from torch.utils.cpp_extension import get_cxx_compiler, include_paths, load_inline

from common import stages
from common.build import modules
from common.cell import reference
from common.cell.case import Case
from common.emulator import collect_counts
from common.inline import inline
from common.measure import stage_counts
from common.paths import build_dir
from common.results import records
from common.studies import ncu
from support.labs import definitions, texts
from support.proofs.files import notebook_files, stage_files

pytestmark = pytest.mark.proof(
    "claims of notebooks", files=[*notebook_files("06_fused", "06b_speed_of_a_copy", "06c_overhead"), *stage_files()]
)


NOTEBOOK, SPEED, OVERHEAD = map(definitions, ("06_fused", "06b_speed_of_a_copy", "06c_overhead"))
TEXTS = texts("06_fused") | texts("06b_speed_of_a_copy") | texts("06c_overhead")
CSRC = stages.get_stage(6).folder / "csrc"
vars(SPEED).update(TEXTS, CSRC=CSRC, NOP=0x918, LOG2_E=torch.tensor(1.4426950408889634))
vars(OVERHEAD).update(CSRC=CSRC)
KERNEL = SPEED.kernel_text()
EXACT = KERNEL.replace("fast::sigmoid", "sigmoid").replace("fast::elu", "elu")
STORE = 0x986
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX2 is of x86")


def samples(*shapes: tuple[int, ...], **options: object) -> list[torch.Tensor]:
    numbers = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=numbers, **options) for shape in shapes]


# The limit --------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.1a")
@pytest.mark.needs("g++")
def test_the_pointwise_part_is_far_below_the_corner_of_the_roofline():
    NOTEBOOK.Counting.operations = 0
    NOTEBOOK.pointwise_formula(*(NOTEBOOK.Counting() for _ in range(4)))
    counted = stage_counts.count_stage(6, B=8, S=64)
    moved = sum(counted.total("bytes", "forward_kernel", space) for space in ("global load", "global store")) / (
        8 * 64
    )
    assert (NOTEBOOK.Counting.operations, moved) == (14, 24)
    for result in records.read_recorded():
        rows = result["kernels"]
        if rows and "H200" in result["machine"]["gpu"]:
            operations = 132 * 128 * 2 * result["machine"]["gpu_clocks_mhz"]["sm_max"] * 1e6
            corner = operations / (rows[0]["copy_gb_per_second"] * 1e9)
            assert NOTEBOOK.Counting.operations / moved < corner / 10


@pytest.mark.syllabus("6.1c")
@pytest.mark.needs("nvcc")
def test_the_exact_formula_takes_many_more_instructions():
    per_unit = {}
    for name, text in (("exact", EXACT), ("fast", KERNEL)):
        cubin, said = SPEED.compiled_by_nvcc(text + SPEED.FLOAT, "-cubin", "-Xptxas", "-v")
        per_unit[name] = len(SPEED.instructions(cubin)) / 4
        assert re.search(r"Used \d+ registers", said)
    assert 14 * 3 < per_unit["fast"] < 0.7 * per_unit["exact"]


@pytest.mark.syllabus("6.1d")
def test_fast_units_cost_a_few_ulp_and_near_zero_all_digits():
    z = torch.linspace(-20, 10, 20_001)
    exact = torch.sigmoid(z.double())
    worst = {exp: SPEED.in_ulp(1 / (1 + exp(-z)), exact).max() for exp in (torch.exp, SPEED.fast_exp)}
    assert worst[torch.exp] < 2 < worst[SPEED.fast_exp] < 16
    small = -torch.logspace(-6, 1, 20_001)
    exact = torch.expm1(small.double())
    difference = SPEED.fast_exp(small) - 1
    assert SPEED.in_ulp(difference, exact).max() > 1e4
    assert SPEED.in_ulp(torch.exp(small) - 1, exact).max() > 1e4, "not because it is fast"
    stitched = torch.where(small > -0.35, SPEED.series(small), difference)
    assert SPEED.in_ulp(stitched, exact).max() < 8


def test_the_series_is_the_stage_s():
    """The same coefficients, and the same place where it takes over."""
    text = (CSRC / "lltm_gates.h").read_text()
    assert [int(number) for number in re.findall(r"1\.0f / (\d+)", text)] == [6, 24, 120, 720]
    assert "z > -0.35f ? series" in text


# Work left out ----------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.2a")
def test_three_ways_to_the_same_z():
    input, weights, bias, old_h = samples((5, 3), (12, 7), (12,), (5, 4), dtype=torch.float64)
    want = NOTEBOOK.concatenated(input, weights, bias, old_h)
    torch.testing.assert_close(NOTEBOOK.two_products(input, weights, bias, old_h), want)
    assert torch.equal(NOTEBOOK.one_buffer(torch.cat([old_h, input], 1), weights, bias), want)


@pytest.mark.syllabus("6.2b")
def test_a_gradient_that_does_not_come_is_zeros_unless_autograd_is_told(capsys):
    x = torch.ones(3, requires_grad=True)
    for materialize, got in ((True, "a tensor of zeros"), (False, "None")):
        double, _ = NOTEBOOK.two_results(materialize)(x)
        (gradient,) = torch.autograd.grad(double.sum(), x)
        assert gradient.tolist() == [2, 2, 2]
        assert f"backward gets {got}" in capsys.readouterr().out


@pytest.mark.syllabus("6.2b")
@pytest.mark.needs("g++")
def test_a_gradient_that_does_not_come_is_not_read():
    operators = (stage := modules.load_stage(6, "emulator")).operators
    z, grad = samples((8, 3 * 64), (8, 64))
    read = {}
    for grads in ((grad, grad), (grad, None), (None, grad)):
        with collect_counts(stage) as counted:
            operators.pointwise_backward(*grads, z, grad, [False, True])
        read[grads] = counted.total("bytes", "backward_kernel", "global load") / grad.nbytes
    assert list(read.values()) == [6, 5, 5]


@pytest.mark.syllabus("6.2c", "6.2d")
@pytest.mark.needs("g++")
def test_fewer_are_kept_and_fewer_moved():
    case, kept, moved = Case(16, 32, 128), {}, {}
    for number, target in ((2, None), (3, "emulator"), (5, "host"), (6, "host")):
        kept[number] = sum(NOTEBOOK.kept_by(modules.load_stage(number, target).lltm, case)) / (4 * case.B * case.S)
    X = (128 + 32) / 128
    assert kept == {2: 3 + X, 3: 3 + X, 5: 3 + X, 6: 3}
    for number in (3, 5, 6):
        counted = stage_counts.count_stage(number, B=8, S=64)
        for kernel in ("forward_kernel", "backward_kernel"):
            moved[number, kernel] = counted.total("bytes", kernel, "global") / (4 * 8 * 64)
    assert [moved[number, "forward_kernel"] for number in (3, 5, 6)] == [9, 9, 6]
    assert [moved[number, "backward_kernel"] for number in (3, 5, 6)] == [10, 10, 10]


@pytest.mark.syllabus("6.2e")
@pytest.mark.needs("g++")
def test_atomics_add_in_the_order_of_the_blocks_and_the_stage_does_not(monkeypatch):
    sums = inline("sums", TEXTS["SUMS_CPP"], TEXTS["SUMS_CU"], ["atomics"], target="emulator")
    pointwise_backward = modules.load_stage(6, "emulator").operators.pointwise_backward
    z, grad, column = samples((1024, 24), (1024, 8), (1024,))
    by_atomics, by_the_stage = set(), set()
    for seed in range(8):
        monkeypatch.setenv("EMULATOR_SEED", str(seed))
        sums.atomics(total := torch.zeros(1), column)
        by_atomics.add(total.item())
        by_the_stage.add(tuple(pointwise_backward(grad, grad, z, grad, [True, True])[1].tolist()))
    assert len(by_atomics) > 1
    assert len(by_the_stage) == 1
    torch.testing.assert_close(torch.tensor(sorted(by_atomics)), column.sum().expand(len(by_atomics)))


# 16 bytes ---------------------------------------------------------------------------------------------------------


@pytest.mark.syllabus("6.3a")
@pytest.mark.needs("g++")
def test_a_pack_asks_a_quarter_as_often_for_the_same_sectors():
    number_by_number = SPEED.packs_of(
        "number_by_number", KERNEL.replace("if (kAligned || (left", "if (false && (left")
    )
    z, old_cell = samples((8, 3 * 512), (8, 512))
    found = [stage_counts.count_stage(5, B=8, S=512)]
    for module in (SPEED.packs_of("packs", KERNEL), number_by_number):
        with collect_counts(module) as counted:
            got = module.forward(z, old_cell, True)
        for one, want in zip(got, reference.pointwise_forward(z, old_cell), strict=True):
            torch.testing.assert_close(one.double(), want, rtol=1e-5, atol=1e-6)
        found.append(counted)
    of_a_unit, packs, one_by_one = [
        [counted.total(what, "forward_kernel", "global load") for what in ("requests", "sectors")]
        for counted in found
    ]
    assert of_a_unit == [4 * packs[0], packs[1]]
    assert one_by_one == [4 * packs[0], 4 * packs[1]]


@pytest.mark.syllabus("6.3b")
@pytest.mark.needs("g++")
def test_what_is_not_aligned_cannot_be_loaded_at_once():
    packs = SPEED.packs_of("packs", KERNEL)
    z, old_cell = samples((8, 3 * 512), (8, 512))
    with pytest.raises(RuntimeError, match="reads 16 bytes of z at a misaligned address"):
        packs.forward(SPEED.moved(z, 1), old_cell, True)
    assert torch.equal(packs.forward(SPEED.moved(z, 1), old_cell, False)[1], packs.forward(z, old_cell, True)[1])


@pytest.mark.syllabus("6.3c")
@pytest.mark.needs("g++")
def test_a_tail_that_is_taken_for_a_pack_leaves_the_tensor():
    z, old_cell = samples((1, 18), (1, 6))
    careless = SPEED.packs_of("careless", KERNEL.replace("left >= Pack<scalar_t>::size && ", ""))
    with pytest.raises(RuntimeError, match=r"outside of z.*\n.*element \[0, 16\]"):
        careless.forward(z, old_cell, False)
    packs = SPEED.packs_of("packs", KERNEL)
    with collect_counts(packs) as counted:
        packs.forward(z, old_cell, False)
    stores = sorted((row.bytes // row.lanes, row.lanes) for row in counted.of("forward_kernel", "global store"))
    assert stores == [(4, 2 * 2), (16, 2)]


@pytest.mark.syllabus("6.3f")
@pytest.mark.needs("nvcc", "g++")
def test_counts_of_the_source_do_not_show_what_nvcc_made_of_a_store():
    """What it makes of the assignment is its own business; that `__stwb` stays whole is what the stage relies on."""
    order = re.search(r"__stwb\(.*?\);", KERNEL, re.DOTALL)[0]
    assigned = KERNEL.replace(order, "*reinterpret_cast<Pack<scalar_t>*>(to) = pack;")
    z, old_cell = samples((8, 3 * 512), (8, 512))
    counted_stores = []
    for name, text in (("packs", KERNEL), ("assigned", assigned)):
        with collect_counts(module := SPEED.packs_of(name, text)) as counted:
            module.forward(z, old_cell, True)
        counted_stores.append(counted.total("requests", "forward_kernel", "global store"))
    assert counted_stores[0] == counted_stores[1], "the emulator's are the same"
    ptx = {name: SPEED.compiled_by_nvcc(text + SPEED.FLOAT, "-ptx")[0].decode()
           for name, text in (("ordered", KERNEL), ("assigned", assigned))}  # fmt: skip
    assert re.findall(r"st\.global\S*", ptx["ordered"]) == ["st.global.wb.v4.u32"] * 2
    if "release 13.0" in subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout:
        assert set(re.findall(r"st\.global\S*", ptx["assigned"])) == {"st.global.f32"}
    opcodes = SPEED.instructions(SPEED.compiled_by_nvcc(KERNEL + SPEED.FLOAT, "-cubin")[0])
    assert opcodes.count(STORE) == 2


@pytest.mark.syllabus("6.3e")
def test_requests_and_sectors_of_ncu_are_what_the_emulator_counts():
    """Of the stages' kernels; what differs in small ones has its reason beside it."""
    launches = [one for one in ncu.STUDY.read_record()["launches"] if one["stage"] and one["ncu"]]
    assert launches
    for one in launches:
        for space in ("global load", "global store"):
            for what in ("requests", "sectors"):
                assert one["ncu"][space][what] == one["emulator"][space][what], (one["kernel"], one["stage"])


# Autograd in C++ --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def overhead():
    """Notebook 06c's library of one operator with four kinds of gradient."""
    folder = build_dir() / "notebooks" / f"torch-{torch.__version__}" / "overhead"  # the notebook's own
    folder.mkdir(parents=True, exist_ok=True)
    options = {"is_python_module": False, "no_implicit_headers": True, "extra_cflags": ["-O2"]}
    load_inline("overhead", TEXTS["OVERHEAD"], functions=None, build_directory=str(folder), **options)
    torch.library.register_autograd("overhead::registered", lambda ctx, grad: torch.ops.overhead.bare(grad))
    return torch.ops.overhead


@pytest.mark.syllabus("6.4b")
@pytest.mark.needs("g++", "ninja")
def test_whole_under_compile_only_by_the_dispatcher(overhead):
    x = torch.ones(3, requires_grad=True)
    for twice in (overhead.registered, overhead.redispatching, overhead.straight):
        (gradient,) = torch.autograd.grad(twice(x).sum(), x)
        assert (twice(x).tolist(), gradient.tolist()) == ([2, 2, 2], [2, 2, 2])
    torch._dynamo.reset()
    assert OVERHEAD.compiled(overhead.redispatching)(x).tolist() == [3, 3, 3]
    with pytest.raises(Exception, match="data is not allocated yet"):
        OVERHEAD.compiled(overhead.straight)(x)
    opcheck(overhead.redispatching, (x,))
    found = opcheck(overhead.straight, (x,), raise_exception=False)
    assert {test for test, result in found.items() if result != "SUCCESS"} == {"test_aot_dispatch_dynamic"}


def python_functions(call: Callable[[], object]) -> set[str]:
    """The names of the Python functions that a call runs."""
    found: set[str] = set()
    call()
    sys.setprofile(lambda frame, event, _: found.add(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.syllabus("6.4a")
@pytest.mark.needs("g++")
def test_a_backward_in_cpp_runs_no_python():
    case = Case(2, 3, 4)

    def of_backward(lltm) -> set[str]:
        inputs, gradients = list(case.inputs().values()), case.gradients()
        made = lltm(*inputs)
        return python_functions(lambda: torch.autograd.grad(made, inputs, gradients, retain_graph=True))

    eager, registered, in_cpp = (
        of_backward(lltm)
        for lltm in (modules.load_stage(1).equations, *(modules.load_stage(n, "host").lltm for n in (5, 6)))
    )
    assert in_cpp == eager, "nothing but torch.autograd.grad itself"
    assert in_cpp < registered


@pytest.mark.syllabus("6.4a")
def test_a_backward_on_a_cpu_runs_on_the_thread_that_asked():
    x = torch.ones(1, requires_grad=True)
    torch.autograd.grad(OVERHEAD.Who.apply(x), x, torch.ones(1))
    assert OVERHEAD.Who.thread == OVERHEAD.threading.get_ident()


# The flags of a CPU ------------------------------------------------------------------------------------------------


def assembly(source: str, *flags: str) -> str:
    """What the C++ compiler makes of a text."""
    paths = [f"-isystem{path}" for path in include_paths()]
    command = [get_cxx_compiler(), "-std=c++20", "-fPIC", "-S", "-xc++", "-", "-o-", *paths, *flags]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


@x86
@pytest.mark.syllabus("6.4c", "6.4d")
@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("macros", "function", "namespace"),
    [
        ([], "tanhf", "CPU_CAPABILITY"),
        (["-DCPU_CAPABILITY=AVX2"], "tanhf", "AVX2"),
        (["-DCPU_CAPABILITY_AVX2"], "Sleef_tanhf8_u10", "CPU_CAPABILITY"),
        (["-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"], "Sleef_tanhf8_u10", "AVX2"),
    ],
    ids=["neither", "the name", "the instructions", "both"],
)
def test_one_macro_brings_the_instructions_and_the_other_the_name(macros, function, namespace):
    found = assembly(TEXTS["VEC"], "-O2", "-mavx2", "-mfma", *macros)
    assert set(re.findall(r"call\s+(\w*tanh\w*)", found)) == {function}
    assert f"N2at3vec{len(namespace)}{namespace}10VectorizedIfEE" in found


@pytest.mark.syllabus("6.4d")
@pytest.mark.needs("g++")
def test_parallel_for_is_one_piece_without_openmp():
    calls = [re.findall(r"GOMP_parallel", assembly(TEXTS["PARALLEL"], "-O2", *flags)) for flags in ([], ["-fopenmp"])]
    assert not calls[0]
    assert calls[1]


@x86
@pytest.mark.syllabus("6.4e")
@pytest.mark.needs("g++")
def test_a_choice_stops_a_loop_until_nobody_looks_at_exceptions():
    flags = ["-O3", "-mavx2", "-mfma"]
    assert OVERHEAD.vectorised(TEXTS["PLAIN"], *flags).startswith("not vectorized")
    assert OVERHEAD.vectorised(TEXTS["PLAIN"], *flags, "-fno-trapping-math").startswith("loop vectorized")


@x86
@pytest.mark.syllabus("6.4e")
@pytest.mark.needs("g++")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="vector tanh is glibc's")
def test_fast_math_takes_the_c_library_s_vector_tanh_and_loses_nan():
    slow, fast = (assembly(TEXTS["STD"], "-O3", "-mavx2", "-mfma", *more) for more in ([], ["-ffast-math"]))
    assert "_ZGVdN8v_tanhf" not in slow
    if tuple(map(int, platform.libc_ver()[1].split("."))) >= (2, 35):
        assert "_ZGVdN8v_tanhf" in fast
    of_fast = fast[fast.index("is_nan:") :].partition(".size")[0]
    assert not re.search(r"comiss", of_fast), "it does not look at its argument"
    assert re.search(r"comiss", slow[slow.index("is_nan:") :].partition(".size")[0])
