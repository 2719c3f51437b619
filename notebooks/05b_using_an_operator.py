# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05b: dtypes, wheels, and operators of your own
#
# Notebook 05 registers an operator. This notebook is about using one: in half precision and bfloat16, in a CUDA
# graph, and as a package that others install. Then you measure a step, decide when an operator of your own is worth
# the effort, and make one from a copy of stage 5.
#
# You need notebook 05. Only one cell needs a GPU. The notebook takes about 60 minutes. In its first run, it also
# compiles for two minutes. A heading with (!) is about a mistake that is common in code and in tutorials.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import os
import re
import subprocess
import tempfile
import warnings

import matplotlib.pyplot as plt
import torch

from common import load
from common.cell import reference
from common.cell.case import Case, difference, outputs
from common.figures.plots import BLUE, ORANGE, STYLE, VERMILION
from common.inline import device
from common.workbench import build_folder

BUILD = build_folder()
plt.rcParams.update(STYLE)
on_gpu = device() == "cuda"
torch.manual_seed(0)
torch.set_num_threads(1)
stage5 = load(5, "host")
pointwise = stage5.operators.pointwise
print("torch", torch.__version__, "on Python", sys.version.split()[0])


# %%
def attempt(call, lines=1):
    """What `call()` returns, or the first lines of the error that it raises, and any warning, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
            if result is not None:
                print(result)
        except Exception as error:
            said = [line for line in str(error).splitlines() if line.strip()][:lines]
            print(f"{type(error).__name__}: " + "\n    ".join(line.strip()[:230] for line in said))
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print("    warning:", message.partition("(Triggered")[0][:230])


# %% [markdown] syllabus="5.4b"
# ## Half and bfloat16
#
# Half has 11 bits of precision, and bfloat16 has 8. Both need less memory and make matrix products faster, but they
# are not precise enough for the pointwise computations between the matrix products. Each rounding causes an error of
# up to half an epsilon (the distance from 1 to the next larger number), and a formula rounds a dozen times. For this
# reason, the stage's kernels compute in float, and round only the values that they store:

# %%
loops = (root / "stages" / "stage5_custom_op" / "csrc" / "lltm_rows.h").read_text()
forward_row = loops[loops.index("  using V = Vec") :].partition("\n}\n")[0]
print(loops[loops.index("// Half and") : loops.index("// The functions of")])
print(forward_row)

# %% [markdown]
# `at::opmath_type<scalar_t>` is float for half and bfloat16, and `scalar_t` itself for float and double. A `Vec`
# holds several such numbers: a section below shows why. How much does float improve the results? To find out, we
# build the same sources with all maths in `scalar_t`, under another namespace:

# %%
from torch.utils.cpp_extension import load as build_and_load

SOURCES = ("lltm.cpp", "lltm_cpu.cpp", "lltm_avx2.cpp", "lltm_avx512.cpp", "lltm_rows.h", "operators.h")
folder = BUILD / "maths_in_half"
folder.mkdir(exist_ok=True)
for name in SOURCES:
    text = (root / "stages" / "stage5_custom_op" / "csrc" / name).read_text()
    text = text.replace("Vectorized<at::opmath_type<scalar_t>>;", "Vectorized<scalar_t>;")
    if not (folder / name).exists() or (folder / name).read_text() != text:
        (folder / name).write_text(text)
build_and_load(
    "maths_in_half",
    [str(folder / name) for name in SOURCES if name.endswith(".cpp")],
    extra_cflags=["-O2", "-DLLTM_NAMESPACE=maths_in_half", "-DPy_LIMITED_API=0x030A0000"],
    build_directory=str(folder),
    is_python_module=False,
)
IN = {"float inside": pointwise, "half inside": torch.ops.maths_in_half.pointwise}

# %% [markdown]
# The next cell prints errors against the float64 reference. The errors are relative to the exact value, in units of
# the dtype's epsilon. Rounding the stored value alone gives an error of up to 0.5.


# %%
def forward_errors(operator, dtype, B=64, S=256):
    """The exact results, and each relative error in units of the dtype's epsilon, without subnormal results."""
    numbers = torch.Generator().manual_seed(0)
    z, old_cell = (2 * torch.randn(shape, generator=numbers) for shape in ((B, 3 * S), (B, S)))
    z, old_cell = z.to(dtype), old_cell.to(dtype)
    exact = torch.stack(reference.pointwise_forward(z, old_cell)).flatten()
    got = torch.stack(operator(z, old_cell)[:2]).flatten().double()
    normal = exact.abs() > torch.finfo(dtype).smallest_normal
    exact, got = exact[normal], got[normal]
    return exact, (got - exact).abs() / exact.abs() / torch.finfo(dtype).eps


ERRORS = {}
for dtype in (torch.float16, torch.bfloat16):
    for name, operator_ in IN.items():
        exact, errors = ERRORS[dtype, name] = forward_errors(operator_, dtype)
        over = (errors > 1).double().mean()
        print(f"{dtype!s:16s}{name:14s}median {errors.median():5.2f}, largest {errors.max():8.1f} eps", end="")
        print(f"   more than one: {over:6.2%}")

# %% [markdown]
# With float inside, every result is the exact value, rounded: its error is below the line at 0.5 in the next plot.
# With half inside, one result in twenty-five has an error of more than one epsilon, and some are meaningless. Where
# `old_cell` and `candidate_cell * input_gate` nearly cancel, only the rounding error of the product remains.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
for axis, dtype in zip(axes, (torch.float16, torch.bfloat16), strict=True):
    for name, colour in (("half inside", ORANGE), ("float inside", BLUE)):
        exact, errors = ERRORS[dtype, name]
        axis.loglog(exact.abs(), errors.clamp(min=1e-3), ".", color=colour, markersize=2, label=name)
    axis.axhline(0.5, color="#1a1a1a", lw=1)
    axis.set(title=str(dtype), xlabel="size of the exact result")
    axis.grid(axis="y")
axes[0].set_ylabel("error in epsilons of the result")
axes[1].legend(frameon=False, markerscale=6)
plt.show()

# %% [markdown] syllabus="5.4c"
# ### Tolerances
#
# How large an error may a test allow? The forward pass rounds once. The backward pass starts from gates that *were*
# rounded when they were stored. For a gate `s` near one, `1 - s` then has few correct digits, even if it is computed
# in float. If a gradient is a sum, the errors of all its terms add up.
#
# So for half and bfloat16, the workbook's tests allow an error of 8 epsilons of the dtype. (For float32 and float64,
# the tests allow more, because sums are computed in the same type and not in a larger one: see `tolerance` in
# `common/cell/case.py`.) The 8 epsilons are not multiplied by the number alone, but by a sum of three sizes:
#
# $$\mathrm{allowed\ error} = 8\,\varepsilon \cdot (\mathrm{size\ of\ the\ number} +
#   \mathrm{typical\ size\ in\ the\ tensor} + \mathrm{size\ of\ the\ terms})$$
#
# The typical size is the root mean square. The last of the three sizes is only for numbers that are sums, and
# `reference.spread` computes it.

# %%
from common.cell.case import expected, tolerance

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
CASES = {dtype: Case(B=64, I=32, S=128, dtype=dtype) for dtype in DTYPES}
print(f"{'':17s}largest error   within the tolerance of")
for dtype, case in CASES.items():
    got, want = outputs(stage5.lltm, case), expected(case)
    error = max(
        ((got[name].double() - exact).abs() / (exact.abs() + exact.square().mean().sqrt())).max().item()
        for name, exact in want.items()
    )
    within = [str(other) for other in DTYPES if error <= tolerance(CASES[other])]
    print(f"{dtype!s:17s}{error:.1e}         {', '.join(within)}")
    assert difference(case, got) is None

# %% [markdown]
# (The tolerance is 1.7e-5 for float32, 7.8e-3 for half and 6.3e-2 for bfloat16.) Each dtype has its own tolerance,
# so a test finds an intermediate result that has fewer digits than the output's type: bfloat16 inside a half
# computation, or half inside a float computation. But if all the maths of a half computation is done in half,
# instead of in float, the test does not notice. The errors then stay below 8 epsilons times the typical size of the
# numbers in the tensor. To find these errors, compare each number with its own exact value, as above.

# %% [markdown] syllabus="5.4d"
# ### Long sums in bfloat16, which no kernel can fix
#
# The LLTM never forgets: each step only adds to the cell state. In bfloat16, a sum of small steps stops growing when
# a step is no more than half the distance to the next number:

# %%
grown = {}
for dtype in (torch.float32, torch.bfloat16):
    cell = torch.zeros(1, 1, dtype=dtype)
    for _ in range(2000):  # input gate 1, candidate 0.5
        _, cell, _ = pointwise(torch.tensor([[20.0, 0.0, 0.5]], dtype=dtype), cell)
    grown[dtype] = cell.item()
print(grown)

# %% [markdown]
# Under autocast, the stage's cell state is cast as well. On a GPU, autocast also casts the cell state of torch's own
# `lstm_cell`. On a CPU, autocast does not change `lstm_cell`. For long sequences, keep the cell state in float32.

# %% [markdown] tags=["exercise"]
# **Your turn:** `5/autocast` and `5/float_inside`. `show("5/autocast")` in a cell checks it here.

# %% [markdown]
# ## The operator in a CUDA graph
#
# A CUDA graph records the kernel launches of a step once, and replays them without Python or the dispatcher. For
# this, an operator must launch on the current stream (the queue of GPU work that torch uses at that moment), must
# not wait for the GPU, and must allocate its memory through torch. On a GPU, the next cell records and replays the
# stage:

# %%
if on_gpu:
    on_cuda = load(5).lltm
    case = Case(16, 32, 128, device="cuda", requires_grad=())
    inputs = list(case.inputs().values())
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        on_cuda(*inputs)  # a first call, in which libraries allocate their workspaces
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        new_h, new_cell = on_cuda(*inputs)
    graph.replay()
    print(difference(case, {"new_h": new_h, "new_cell": new_cell}) or "the replay agrees with the reference")
else:
    print("no GPU here")

# %% [markdown] syllabus="5.5a"
# ## Packaging the operator as a wheel
#
# A wheel (a `.whl` file) contains the library, ready to be imported. Which versions of Python and torch can import
# the library? Only versions that have all the functions that the library imports can load it. `nm` lists these
# functions. The next cell shows their number for the libraries of two stages, as they were built above:

# %%
from common import stages
from common.build.library import build_stage
from common.studies.wheels import recorder as wheels
from common.studies.wheels import table as wheels_table

BUILT = {number: Path(build_stage(stages.get_stage(number), "host").path) for number in (2, 5)}
ASKED = {number: wheels.undefined_symbols(path) for number, path in BUILT.items()}
for number, path in BUILT.items():
    print(f"stage {number}: {path.name:38s}", {of: len(names) for of, names in ASKED[number].items()})
print("stage 5 asks of Python:", *ASKED[5]["Python"])

# %% [markdown]
# pybind11 uses a hundred functions of Python, and some of them belong to one version of Python, so the file name
# contains that version. The two functions that stage 5 uses are in the *limited API*, which later versions keep.
# `Py_LIMITED_API` in `setup.py` names the oldest supported version, 3.10. So the name of the file contains `abi3`,
# and one wheel works with 3.10 and all later versions.

# %% [markdown] syllabus="5.5d"
# ### The limited API does not make a wheel independent of torch (!)
#
# The library still uses dozens of functions of torch's C++, and each symbol name contains the types of the
# arguments. No version of torch promises to have the symbols of another version. One of stage 5's symbols is missing
# in torch 2.11, where `Tag` is in another namespace. To see what happens then, the next cell makes a copy of the
# library that uses a symbol which this torch does not have:

# %%
import ctypes

name = next(name for name in ASKED[5]["C++"] if name.startswith("_ZNR5torch7Library4_defE"))
from_elsewhere = BUILD / "from_elsewhere.so"
from_elsewhere.write_bytes(BUILT[5].read_bytes().replace(name.encode(), name.replace("_def", "_fed").encode()))
attempt(lambda: ctypes.CDLL(str(from_elsewhere)))

# %% [markdown]
# This is the harmless case. If a symbol exists, but its function expects another memory layout, the library loads,
# and the first call crashes the process. `make wheels` has tried three wheels in environments that contain only
# Python and torch:

# %%
from IPython.display import Markdown

Markdown(wheels_table.wheels_table())

# %% [markdown] syllabus="5.5b 5.5c 5.5e"
# ### One wheel for several versions of torch
#
# The wheel in the last row works in all of these environments. It contains a second version of stage 5, in
# `stable_abi/`, which is written with the headers in `torch/csrc/stable`. These headers call a few C functions that
# torch promises to keep. `TORCH_TARGET_VERSION` sets the oldest supported version of torch, here 2.11. Each of the
# two macros, `Py_LIMITED_API` and `TORCH_TARGET_VERSION`, forbids some code. The next cell compiles seven short
# sources with one of these macros, and prints the compiler's first error:

# %%
from common.workbench import run, torch_compiler

LIMITED, TARGET = "-DPy_LIMITED_API=0x030A0000", "-DTORCH_TARGET_VERSION=0x020B000000000000"
STABLE = "#include <torch/csrc/stable/library.h>\nusing torch::stable::Tensor;\n"
SOURCES_OF = {  # a source, and the macro that makes the promise
    "a macro of CPython": ("#include <Python.h>\nauto f(PyObject* t) { return PyTuple_GET_ITEM(t, 0); }", LIMITED),
    "pybind11": ("#include <pybind11/pybind11.h>", LIMITED),
    "at::Tensor": ("#include <ATen/core/Tensor.h>", TARGET),
    "TORCH_LIBRARY": ("#include <torch/library.h>", TARGET),
    "stable::Tensor, empty": (STABLE + "bool f(Tensor t) { return t.numel() == 0; }", TARGET),
    "stable::Tensor, a sum": (STABLE + "auto f(Tensor t) { return t + t; }", TARGET),
    "newer than 2.11": (STABLE + "auto f(Tensor t) { return t.has_storage(); }", TARGET),
}


def first_error(source, *flags):
    check = ["-fsyntax-only", "-fmax-errors=1", "-x", "c++", "-"]
    _, said = run(*torch_compiler(), *flags, *check, text=source)
    return next((line.partition("error: ")[2] for line in said.splitlines() if "error: " in line), "compiles")


for what, (source, promise) in SOURCES_OF.items():
    print(f"{what:22s}{first_error(source, promise)[:150]}")
print("\nwithout the target:")
print(f"{'newer than 2.11':22s}{first_error(SOURCES_OF['newer than 2.11'][0])[:150]}")

# %% [markdown]
# If you set `TORCH_TARGET_VERSION`, torch's headers do not declare functions that are newer than that version, even
# if your torch has them. (The first two errors are about Python: `PyTuple_GET_ITEM` depends on the memory layout of
# a tuple, and pybind11 depends on many such details.) The price is that you can do less: `torch::stable::Tensor` is
# a handle without arithmetic and without most methods. `stable_abi/README.md` lists the replacements.
#
# To publish a wheel, you also need a tag for other systems and a way to name its CUDA:
# [docs/build.md](../docs/build.md#a-wheel-for-other-machines). It also says what a Python without the GIL requires.

# %% [markdown] tags=["exercise"]
# **Your turn:** `5/one_wheel` and `5/stable_abi`. `show("5/one_wheel")` in a cell checks it here.

# %% [markdown]
# ## What changed from stage 4 to stage 5
#
# `make diff-4-5` shows what changed. The next two cells show the number of changed lines in each file, and the lines
# that were removed from `lltm.py`:

# %%
from common import stages
from common.commands import diff

for part in diff.diff_text(stages.get_stage(4), stages.get_stage(5)).split("diff --git ")[1:]:
    lines = part.splitlines()
    added, removed = ([line[1:] for line in lines if re.match(rf"[{sign}](?![{sign}])", line)] for sign in "+-")
    print(f"{lines[0].rpartition('/')[2]:16s} +{len(added):3d} -{len(removed):3d}")
    if "lltm.py" in lines[0]:
        gone = removed

# %%
print("\n".join(gone))

# %% [markdown]
# `LLTMFunction` is gone. The concatenation and the product are torch's own operations again, and torch knows their
# gradients, shapes and casts. Only the pointwise part is our own operator, so we described only that part to torch.
# In the kernels, only the types have changed.

# %% [markdown]
# ## The time of one step
#
# The next cell measures one step on the CPU at a small size, where the cost of every call is visible. The
# implementations take turns:

# %%
from common.measure.clock import interleave

implementations = {"eager": load(1).equations, **{f"stage {k}": load(k).lltm for k in (1, 2)}, "stage 5": stage5.lltm}
case = Case(B=16, I=32, S=128)
inputs = list(case.inputs().values())


def passes(lltm):
    """Two calls without arguments: forward alone, and forward with backward."""
    return lambda: lltm(*inputs), lambda: torch.autograd.grad(lltm(*inputs), inputs, case.gradients())


both = [passes(lltm) for lltm in implementations.values()]
forward, forward_backward = (interleave([pair[k] for pair in both], "cpu", 11, 0.02) for k in (0, 1))
for name, *samples in zip(implementations, forward, forward_backward, strict=True):
    print(f"{name:10s}" + "".join(f"{sample.quartiles()[1]:8.1f} us" for sample in samples))

# %%
from common.figures.plots import colour

figure, axis = plt.subplots(figsize=(10, 2.6), layout="constrained")
for row, (name, first, whole) in enumerate(zip(implementations, forward, forward_backward, strict=True)):
    low, middle, high = whole.quartiles()
    axis.barh(row, middle, color=colour(name), alpha=0.5)
    axis.barh(row, first.quartiles()[1], color=colour(name))
    axis.errorbar(middle, row, xerr=[[middle - low], [high - middle]], color="#1a1a1a", lw=1, capsize=3)
    axis.text(high, row, f"  {first.quartiles()[1]:.0f} / {middle:.0f}", va="center")
axis.set_yticks(range(len(implementations)), list(implementations))
axis.set(ylim=(len(implementations) - 0.5, -0.5))
axis.set_xlabel("microseconds of one step: forward, and with backward (pale)")
axis.margins(x=0.12)
plt.show()

# %% [markdown]
# Where does this time go? The next cell measures the operators alone: for the 16 · 128 units of the step, and for a
# single unit, where only the cost of the calls remains:


# %%
def parts(B, S):
    """Calls without arguments of the operators alone, and of forward and backward through autograd."""
    z, cell, grad = torch.randn(B, 3 * S), torch.randn(B, S), torch.ones(B, S)
    needed, (_, new_cell, gates) = z.clone().requires_grad_(), pointwise(z, cell)
    return {
        "forward operator": lambda: pointwise(z, cell),
        "backward operator": lambda: stage5.operators.pointwise_backward(grad, grad, gates, new_cell),
        "both, by autograd": lambda: torch.autograd.grad(pointwise(needed, cell)[:2], needed, (grad, grad)),
    }


columns = [interleave(list(parts(*size).values()), "cpu", 11, 0.01) for size in ((16, 128), (1, 1))]
print(f"{'':20s}{'16 x 128':>11s}{'1 x 1':>11s}")
for name, *samples in zip(parts(1, 1), *columns, strict=True):
    print(f"{name:20s}" + "".join(f"{sample.quartiles()[1]:8.1f} us" for sample in samples))

# %% [markdown]
# Look at the last column first. Each of the two operators takes about 10 us. When autograd calls both, the time is
# far longer than the sum of the two. The reason is that the functions of `register_autograd` are Python, and so is
# the code that torch runs around them in each call. Stage 6 moves this part to C++. The difference between the two
# columns is the time of the loop.

# %% [markdown] syllabus="5.5h"
# ### One number at a time, or a vector
#
# The most obvious loop computes one number at a time, with `std::exp` and `std::tanh`. It looks like a CUDA kernel,
# without the threads:

# %%
NAIVE = """
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "lltm_math.h"

using at::Tensor;

std::tuple<Tensor, Tensor, Tensor> pointwise(const Tensor& z, const Tensor& old_cell) {  // [B,3S], [B,S]
  const int64_t B = old_cell.size(0), S = old_cell.size(1);
  Tensor new_h = at::empty({B, S}, z.options()), new_cell = at::empty({B, S}, z.options());
  Tensor gates = at::empty({B, 3, S}, z.options());
  auto h_out = new_h.accessor<float, 2>(), cell_out = new_cell.accessor<float, 2>();
  auto gates_out = gates.accessor<float, 3>();
  const Tensor z_of_gates = z.unflatten(1, {3, S});  // [B,3,S]
  auto z_in = z_of_gates.accessor<const float, 3>();
  auto cell_in = old_cell.accessor<const float, 2>();
  for (int64_t row = 0; row < B; ++row) {
    for (int64_t unit = 0; unit < S; ++unit) {
      const float input_gate = sigmoid(z_in[row][0][unit]);
      const float output_gate = sigmoid(z_in[row][1][unit]);
      const float candidate_cell = elu(z_in[row][2][unit]);
      gates_out[row][0][unit] = input_gate;
      gates_out[row][1][unit] = output_gate;
      gates_out[row][2][unit] = candidate_cell;

      const float cell = cell_in[row][unit] + candidate_cell * input_gate;
      cell_out[row][unit] = cell;
      h_out[row][unit] = std::tanh(cell) * output_gate;
    }
  }
  return {new_h, new_cell, gates};
}

TORCH_LIBRARY(naive, m) { m.def("pointwise(Tensor z, Tensor old_cell) -> (Tensor, Tensor, Tensor)"); }
TORCH_LIBRARY_IMPL(naive, CPU, m) { m.impl("pointwise", &pointwise); }
"""

# %% [markdown]
# The stage computes a *vector* of numbers at a time, with `at::vec::Vectorized`, the class of torch's own kernels:
# `forward_row` above does for `V::size()` units what the naive loop does for one. `at::parallel_for` distributes
# the rows over torch's threads. The next cell measures both loops and torch's operations at three sizes:

# %%
from torch.utils.cpp_extension import load_inline

CSRC = root / "stages" / "stage5_custom_op" / "csrc"
options = {"is_python_module": False, "no_implicit_headers": True, "extra_cflags": ["-O3"]}
load_inline("naive", NAIVE, functions=None, extra_include_paths=[str(CSRC)], **options)


def operations(z, old_cell):
    """The pointwise part in torch's operations."""
    z_i, z_o, z_g = z.chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_g) * z_i.sigmoid()
    return new_cell.tanh() * z_o.sigmoid(), new_cell


WAYS = {"torch's operations": operations, "naive": torch.ops.naive.pointwise, "stage 5": pointwise}
CELLS = {size: [torch.randn(size[0], k * size[1]) for k in (3, 1)] for size in ((16, 128), (64, 128), (256, 512))}
before = torch.get_num_threads()
print(f"{'':22s}" + "".join(f"{f'B{B} S{S}':>13s}" for B, S in CELLS) + "   (microseconds)")
with torch.no_grad():
    for threads in dict.fromkeys((1, os.cpu_count())):
        torch.set_num_threads(threads)
        calls = [[lambda way=way, given=given: way(*given) for way in WAYS.values()] for given in CELLS.values()]
        taken = [[samples.quartiles()[1] for samples in interleave(row, "cpu", 11, 0.01)] for row in calls]
        print(f"{threads} thread{'s' * (threads > 1)}")
        for name, times in zip(WAYS, zip(*taken, strict=True), strict=True):
            print(f"  {name:20s}" + "".join(f"{time:13.1f}" for time in times))
torch.set_num_threads(before)
for got, want in zip(pointwise(*CELLS[64, 128]), torch.ops.naive.pointwise(*CELLS[64, 128]), strict=True):
    torch.testing.assert_close(got, want)

# %% [markdown]
# The naive loop takes several times as long as torch's operations, although it needs only one pass over memory.
# With vectors, one pass is also the fastest. Threads help only at the large size: for fewer than about 8192 units,
# starting another thread would take longer than the work.
#
# A compiler flag alone is not enough for this. `Vectorized<float>` is a register of eight floats only if two
# conditions are met: the compiler may use the instructions (AVX2), and the macro `CPU_CAPABILITY_AVX2` is set.
# (Notebook 06c shows what happens if only one of them is.) But pip installs a wheel on any x86-64 CPU, and a CPU
# without AVX2 ends a process at the first such instruction. So a wheel may not use these instructions everywhere. The
# stage compiles its loops three times, and chooses one version at run time, as torch does for its own kernels. This
# file is for CPUs with AVX2. Another one is for AVX-512, whose registers have 16 floats:

# %%
print((CSRC / "lltm_avx2.cpp").read_text())

# %% [markdown]
# The pragma switches on AVX2 for the rest of the file. The headers above the pragma contain inline functions that
# other files contain, too. A linker keeps only one copy of such a function, so none of the copies may use AVX2. Code
# that is compiled once for each kind of CPU is in a namespace of its own, whose name is `CPU_CAPABILITY`. With the
# environment variable `ATEN_CPU_CAPABILITY`, you can make torch, and this stage, choose the version for any CPU:

# %%
ASK = """
import torch
from common import load
from torch.utils.benchmark import Timer
z = torch.linspace(-3, 3, 3 * 4096).reshape(1, -1)
names = {"pointwise": load(5, "host").operators.pointwise, "z": z, "old_cell": z[:, :4096]}
taken = Timer("pointwise(z, old_cell)", globals=names).blocked_autorange(min_run_time=0.1).median
print(f"{torch.backends.cpu.get_cpu_capability():10s}{taken * 1e6:7.1f} us")
"""
here = torch.backends.cpu.get_cpu_capability()
for capability in dict.fromkeys(("default", "avx2" if "AVX" in here else "default", here.lower())):
    environment = {**os.environ, "PYTHONPATH": str(root), "ATEN_CPU_CAPABILITY": capability}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    print(done.stdout.strip() or done.stderr.splitlines()[-1])

# %% [markdown] syllabus="5.6a"
# ## When not to write CUDA
#
# In most cases, do not write CUDA. To judge a kernel of your own, compare it with the fastest implementation for
# which you write no C++ and no CUDA:
#
# $$\mathrm{gain} = \frac{\min(t_\mathrm{eager}, t_\mathrm{compile}, t_\mathrm{graph}, t_\mathrm{Triton})}
#   {\min(t_\mathrm{stages})}$$
#
# (`graph` means eager or `torch.compile` under a CUDA graph.) If the gain is above one, C++ or CUDA was faster.
# `docs/results/` contains measurements from other machines, in
# which all implementations took turns. The next cell prints these times in microseconds, with a dash where an
# implementation was not measured:

# %%
from common.results import records
from common.results.rows import is_peer

KINDS = ("eager", "torch.compile", "CUDA graph", "Triton", "C++, CUDA")


def kind_of(row):
    """One of KINDS, whatever the mode or the stage; None for stage 1, which is Python, and for a graph of a stage."""
    if is_peer(row):
        return next(kind for kind in KINDS if row["name"].startswith(kind))
    return "C++, CUDA" if row["stage"] and row["stage"] > 1 else None


def by_kind(rows, *facts):
    """For each case, a combination of the facts, the shortest median of each kind."""
    table = {}
    for row in rows:
        case = " ".join(f"{fact}{row[fact]}" if fact in "BIS" else row[fact] for fact in facts)
        times, kind = table.setdefault(case, {}), kind_of(row)
        times[kind] = min(row["median"], times.get(kind, row["median"]))
    return table


GAINS = {}
for result in records.read_recorded():
    rows = [row for row in result["rows"] if row["grads"] == "all"]
    parts_of = {
        "cell": by_kind(rows, "device", "B", "I", "S", "pass"),
        "pointwise part": by_kind(result.get("kernels", []), "B", "S", "pass"),
    }
    print(f"{result['name']}, {result['date'][:10]}".ljust(46) + "".join(f"{kind:>14s}" for kind in KINDS) + "  gain")
    for part, table in parts_of.items():
        for case, times in table.items():
            gain = min(times[kind] for kind in KINDS[:4] if kind in times) / times["C++, CUDA"]
            shown = [f"{times[kind]:,.0f}" if kind in times else "-" for kind in KINDS]
            print(f"{part} {case}".ljust(46) + "".join(f"{time:>14s}" for time in shown) + f"{gain:6.2f}")
            GAINS[result["name"], f"{part} {case}"] = gain

# %%
figure, axis = plt.subplots(figsize=(10, 0.8 + 0.26 * len(GAINS)), layout="constrained")
for row, gain in enumerate(GAINS.values()):
    axis.plot([1, gain], [row, row], color=BLUE if gain > 1 else VERMILION, lw=5, solid_capstyle="butt")
axis.axvline(1, color="#1a1a1a", lw=1)
axis.set_yticks(range(len(GAINS)), [f"{name}: {case}" for name, case in GAINS])
axis.set_xscale("log", base=2)
axis.set_xticks([0.5, 1, 2, 4], ["half", "1", "twice", "4 times"])
axis.set(ylim=(len(GAINS) - 0.5, -0.5), xlabel="gain: left of the line, the existing kernel was faster")
plt.show()

# %% [markdown]
# The gain is largest for small sizes, but not because of the kernels: at small sizes, most of the time is spent in
# Python and in the dispatcher. A CUDA graph avoids most of this time, too, without any C++. If the matrix products
# take nearly all of the time, no implementation of the other operations can gain anything. And for the pointwise part
# alone, `torch.compile` generates a forward kernel that is faster than the kernel of stage 3. So profile first.
# `docs/when-not-to-write-cuda.md` lists the questions to answer, in order.

# %% [markdown] tags=["exercise"]
# **Your turn:** In `5/what_it_could_gain`, you calculate how much a kernel could gain before you write it.
# `show("5/what_it_could_gain")` in a cell checks it here.

# %% [markdown] syllabus="5.6b"
# ## An operator of your own
#
# If you need an operator of your own, you do not have to start from an empty file. `make new NAME=mycell` copies
# this stage into a folder of your own, and adds the other files of a project. The next cell does the same from
# Python, in a temporary folder:

# %%
from common.new import new

temporary = tempfile.TemporaryDirectory()
new("mycell", temporary.name)
mine = Path(temporary.name, "mycell")
for path in sorted(path for path in mine.rglob("*") if path.is_file()):
    print(f"{len(path.read_text().splitlines()):5d} lines  {path.relative_to(mine)}")

# %% [markdown]
# The copied files differ from those of the stage only in the name:

# %%
stage = root / "stages" / "stage5_custom_op"
for original in sorted([stage / "lltm.py", *(stage / "csrc").iterdir()]):
    copied = next(mine.rglob(original.name.replace("lltm", "mycell")))
    renamed_back = copied.read_text().replace("mycell", "lltm").replace("MYCELL_", "LLTM_")
    said = "the same but for the name" if renamed_back == original.read_text() else "differs"
    print(f"{copied.relative_to(mine)!s:24s}", said)

# %% [markdown]
# The `README.md` of the copy says which lines you change for another cell, file by file, with a GRU as the example.
# The next cell counts these lines:

# %%
page = (mine / "README.md").read_text()
named = {}
for path, first, last in re.findall(r"\[[\d to]+\]\(([\w./]+)#L(\d+)(?:-L(\d+))?\)", page):
    named.setdefault(path, set()).update(range(int(first), int(last or first) + 1))
for path, lines in named.items():
    print(f"{len(lines):4d} of {len((mine / path).read_text().splitlines()):4d} lines of {path}")

# %% [markdown]
# About half of the lines change. The other half was the most difficult to write, and you can keep it: registrations,
# dispatch, launches, build and tests do not depend on the cell. If a test fails, the `README.md` also names the most
# likely cause:

# %%
tests = re.findall(r"^def (test_\w+)", (mine / "tests" / "test_mycell.py").read_text(), re.MULTILINE)
likely = dict(re.findall(r"^\| `(test_\w+)` \| (.*) \|$", page, re.MULTILINE))
for test in tests:
    print(f"{test:45s}", likely.get(test, "(what its name says)").partition(". ")[0])

# %% [markdown]
# Run `python setup.py build_ext --inplace && python -m pytest` in that folder. All tests pass from the start. After
# each change, the tests show what is missing.

# %% [markdown] syllabus="5.1g"
# ### One static object for two libraries (!)
#
# What happens if one process loads the stage and a copy of it? The stage's autocast kernel looks up its operator
# once, and keeps the result in a `static` variable inside a function template. The next cell contains such a
# template without torch, so it compiles quickly. There are two versions: the template as it is, and the template in
# an unnamed namespace.

# %%
LOOKS_UP = """
const char* look_up(const char* name) { return name; }  // in the stage: what the dispatcher has under this name

%s
template <int device>
const char* found() {
  static const char* const pointwise = look_up(NAMESPACE "::pointwise");  // in the first call only
  return pointwise;
}
%s

extern "C" const char* ask() { return found<0>(); }
"""
AS_IT_STANDS, WITHOUT_A_NAME = LOOKS_UP % ("", ""), LOOKS_UP % ("namespace {", "}")

# %% [markdown]
# Each version is built for two namespaces, because the copies that `make new` makes have their own. Then one process
# calls the function of both libraries. `ctypes` loads the libraries in the way that `import` does: the symbols of
# one library are not visible to the other.

# %%
from common.emulator import compiler_command

ASK_BOTH = f"""
import ctypes
for namespace in ("lltm", "mycell"):
    library = ctypes.CDLL({str(BUILD)!r} + "/" + namespace + ".so")
    library.ask.restype = ctypes.c_char_p
    print(" ", namespace, "calls", library.ask().decode())
"""


def ask_both(source):
    """Builds the two libraries and asks them; then asks `nm` what kind of symbol the static object is."""
    for namespace in ("lltm", "mycell"):
        options = ["-shared", "-fPIC", f'-DNAMESPACE="{namespace}"', "-x", "c++", "-", "-o", f"{namespace}.so"]
        subprocess.run([*compiler_command(), *options], cwd=BUILD, input=source, text=True, check=True)
    printed = subprocess.run([sys.executable, "-c", ASK_BOTH], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(["nm", "--demangle", "lltm.so"], cwd=BUILD, capture_output=True, text=True, check=True)
    [kind] = re.findall(r" (\w) (?!guard).*::pointwise", symbols.stdout)
    print(f"{printed}  nm says {kind}")


print("As it stands:")
ask_both(AS_IT_STANDS)
print("In a namespace without a name:")
ask_both(WITHOUT_A_NAME)

# %% [markdown]
# In the first version, `mycell` called the operator of `lltm`, without any message. C++ requires that a static
# object of a template, or of an inline function, exists once in the whole program. So g++ marks this object as
# *unique* (`u`). The dynamic loader keeps one unique symbol of each name for the process, even if the libraries
# cannot otherwise see each other's symbols. The first call determines the value of the object. In an unnamed
# namespace, each library has its own object (`b`), so the stage's kernel is in an unnamed namespace. The flag
# `-fvisibility=hidden` has this effect for a whole library, except for symbols that are marked as visible.

# %% [markdown] tags=["exercise"]
# **Your turn:** In `5/another_operator`, you write the operator of another cell with the same structure. Then run
# `make new` with a name of your choice.

# %% [markdown]
# ## Summary
#
# - Use half and bfloat16 for memory, and float for maths.
# - A wheel can be imported only where Python and torch have all functions that its library asks for.
# - Measure what an operator could gain before you write it, and start from an operator that has everything.
#
# Next: `make diff-4-5` shows the stage as a diff. Notebook 05c is about operators that write to their arguments.
# Stage 6 makes the operator fast.
