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
# # 06c: overhead, CPUs, and what each optimisation is worth
#
# Notebook 06b makes the kernels of stage 6 as fast as a copy. At small sizes this is not enough: most of the time
# passes between the call and the kernel. This notebook measures that time, and makes it shorter. Then it shows how a
# loop on a CPU uses vector instructions and several cores, and compares the stage with variants of itself that lack
# one optimisation each, and with the same kernel in Triton.
#
# You need notebook 06b. The notebook takes about 50 minutes. In its first run, it also compiles for a minute. A
# heading with (!) is about a mistake that is common in code and in tutorials.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import ctypes
import hashlib
import os
import re
import subprocess
import tempfile

import matplotlib.pyplot as plt
import torch
from IPython.display import Markdown, display
from torch.profiler import ProfilerActivity, profile

from common import load
from common.cell.case import Case, outputs
from common.emulator import collect_counts
from common.figures.plots import GREEN, SKY, STYLE, VERMILION, colour
from common.inline import device
from common.measure.clock import interleave
from common.results import records
from common.workbench import build_folder

BUILD = build_folder()
CSRC = root / "stages" / "stage6_fused" / "csrc"
plt.rcParams.update(STYLE)
on_gpu = device() == "cuda"
torch.manual_seed(0)
torch.set_num_threads(1)
stage5, stage6, emulated = load(5, "host"), load(6, "host"), load(6, "emulator")
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the CPU and the emulator")


# %%
def microseconds(calls, device="cpu", rounds=11, block_seconds=0.01):
    """The time of each call of a dict, taken in turns: the first quartile, which other programs disturb the least."""
    samples = interleave(list(calls.values()), device, rounds, block_seconds)
    return {name: sample.quartiles()[0] for name, sample in zip(calls, samples, strict=True)}


def operations(call, names=("aten::zeros", "aten::cat")):
    """How often a call runs each of ATen's operations."""
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        call()
    found = [event.name for event in profiler.events()]
    return {name: found.count(name) for name in names if name in found}


def in_ulp(got, exact):
    """Errors in units of float32's epsilon of the exact value."""
    return (got.double() - exact).abs() / (exact.abs() * torch.finfo(torch.float32).eps)


# %% [markdown] syllabus="6.4a"
# ## Overhead: the time outside the kernels
#
# A kernel for 16 rows of 128 units runs for a few microseconds. The rest of a step is overhead: Python, autograd,
# the dispatcher, and launches. We start with autograd. The next cells define one loop, `2 * x`, and four operators
# that call it. `bare` has no gradient, `registered` has a gradient in Python, and the other two have one in C++.

# %%
OVERHEAD = """
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor twice(const Tensor& tensor) {
  const Tensor x = tensor.contiguous();
  Tensor out = at::empty(x.sizes(), x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t k = 0; k < x.numel(); ++k) to[k] = 2 * from[k];
  return out;
}

Tensor shape_of_twice(const Tensor& x) { return at::empty_symint(x.sym_sizes(), x.options()); }
"""

# %% [markdown]
# If the gradient of an operator is in C++, a call reaches the autograd kernel first. From there, the call has to
# continue *below* autograd, with the kernels that come later in the dispatcher's order. There are two ways to do
# this. The operator `redispatching` switches autograd off with a guard (an object that restores the setting when it
# is destroyed) and calls itself again, and the dispatcher selects the next kernel. The operator `straight` directly
# calls the function that computes:

# %%
OVERHEAD += """
Tensor by_the_dispatcher(const Tensor& x) {
  static const auto twice =
      c10::Dispatcher::singleton().findSchemaOrThrow("overhead::redispatching", "").typed<Tensor(const Tensor&)>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return twice.call(x);
}

template <Tensor (*call)(const Tensor&)>
struct Twice : torch::autograd::Function<Twice<call>> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return call(x); }
  static variable_list backward(AutogradContext*, const variable_list& grads) { return {call(grads[0])}; }
};

Tensor straight(const Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return twice(x);
}

template <Tensor (*call)(const Tensor&)>
Tensor with_gradient(const Tensor& x) {
  return Twice<call>::apply(x);
}

TORCH_LIBRARY(overhead, m) {
  m.def("bare(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("registered(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("redispatching(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("straight(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(overhead, CPU, m) {
  for (const char* name : {"bare", "registered", "redispatching", "straight"}) m.impl(name, &twice);
}

TORCH_LIBRARY_IMPL(overhead, Meta, m) {
  for (const char* name : {"bare", "registered", "redispatching", "straight"}) m.impl(name, &shape_of_twice);
}

TORCH_LIBRARY_IMPL(overhead, Autograd, m) {
  m.impl("redispatching", &with_gradient<by_the_dispatcher>);
  m.impl("straight", &with_gradient<straight>);
}
"""

# %%
from torch.utils.cpp_extension import get_cxx_compiler, include_paths, library_paths, load_inline

load_inline(
    "overhead", OVERHEAD, functions=None, is_python_module=False, no_implicit_headers=True, extra_cflags=["-O2"]
)
overhead = torch.ops.overhead
torch.library.register_autograd("overhead::registered", lambda ctx, grad: overhead.bare(grad))


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return overhead.bare(x)

    @staticmethod
    def backward(ctx, grad):
        return overhead.bare(grad)


# %%
x, grad = torch.ones(1, requires_grad=True), torch.ones(1)
WAYS = {
    "autograd.Function": Twice.apply,
    "register_autograd": overhead.registered,
    "C++": overhead.redispatching,
    "C++, straight": overhead.straight,
    "torch's own 2 * x": lambda x: 2 * x,
}
both = microseconds(
    {name: lambda call=call: torch.autograd.grad(call(x), x, grad) for name, call in WAYS.items()},
    rounds=31,
    block_seconds=0.004,
)
alone = microseconds({name: lambda call=call: call(x) for name, call in WAYS.items()}, rounds=31, block_seconds=0.004)
for name, time in both.items():
    print(f"{name:20s}forward {alone[name]:5.1f} us, with backward {time:5.1f} us")

# %% [markdown]
# With a gradient in C++, a call of the operator takes about as long as a call of one of torch's own operators.
# `register_autograd` takes the most time: in each call, torch's Python code inspects the arguments and builds an
# autograd function around yours. A cell has more arguments, so the difference for a whole step is larger. The next
# cell measures two cells: one with a single unit, where only the cost of the calls remains, and a small one:

# %%
CELLS = {"eager": load(1).equations, "stage 2": load(2).lltm, "stage 5": stage5.lltm, "stage 6": stage6.lltm}
if on_gpu:
    CELLS = dict(sorted((CELLS | {f"stage {number}": load(number, "cuda").lltm for number in (3, 5, 6)}).items()))


def step(lltm, case):
    """A call without arguments that goes forward and backward."""
    inputs, gradients = list(case.inputs().values()), case.gradients()
    return lambda: torch.autograd.grad(lltm(*inputs), inputs, gradients)


STEPS = {
    size: microseconds({name: step(lltm, Case(*size, device=device())) for name, lltm in CELLS.items()}, device())
    for size in ((1, 1, 1), (16, 32, 128))
}
for size, times in STEPS.items():
    print("B{} I{} S{}:".format(*size), ", ".join(f"{name} {time:.0f} us" for name, time in times.items()))

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 2.4), layout="constrained", sharey=True)
for axis, (size, times) in zip(axes, STEPS.items(), strict=True):
    for row, (name, time) in enumerate(times.items()):
        axis.barh(row, time, color=colour(name))
        axis.text(time, row, f" {time:.0f}", va="center")
    axis.set(title="B{} I{} S{}".format(*size), xlabel="microseconds, forward and backward")
    axis.margins(x=0.12)
axes[0].set_yticks(range(len(CELLS)), list(CELLS))
axes[0].set_ylim(len(CELLS) - 0.5, -0.5)
plt.show()

# %% [markdown] syllabus="6.4b"
# ### One graph under `torch.compile`, or an error
#
# A direct call of the function, as in `straight`, avoids one call of the dispatcher. In eager mode, the results of
# both operators are right:

# %%
for name in ("redispatching", "straight"):
    twice = getattr(overhead, name)
    y = torch.arange(3.0).requires_grad_()
    (gradient,) = torch.autograd.grad(twice(y).sum(), y)
    print(f"{name:14s}{twice(y).tolist()}, gradient {gradient.tolist()}")


# %%
def compiled(twice):
    return torch.compile(lambda x: twice(x) + 1, fullgraph=True, backend="aot_eager")


for name in ("redispatching", "straight"):
    try:
        print(f"{name:14s}{compiled(getattr(overhead, name))(torch.arange(3.0).requires_grad_()).tolist()}")
    except Exception as error:
        said = re.search(r"The tensor has .*?allocated yet\.|Cannot access data pointer[^.]*\.", str(error))
        print(f"{name:14s}{type(error).__name__}: {said[0] if said else str(error)[:200]}")

# %% [markdown]
# The compiler runs an autograd kernel in C++ as it is, with fake tensors, which have no data. A kernel that calls
# the operator again reaches the fake kernel through the dispatcher. A kernel that calls the function directly
# requests a pointer to data, and torch raises an error. So the rule is: *an autograd or autocast kernel in C++ calls
# only operators, never the function that computes*. `opcheck` would have found the mistake:

# %%
from torch.library import opcheck

for name in ("redispatching", "straight"):
    found = opcheck(getattr(overhead, name), (torch.ones(3, requires_grad=True),), raise_exception=False)
    print(f"{name:14s}", {test: "failed" for test, result in found.items() if result != "SUCCESS"} or "all pass")

# %% [markdown]
# ### An operator without a derivative
#
# Of the stage's four operators, only `cell` has a derivative. Its backward calls `cell_backward`. If a caller
# differentiates the gradient, the call of `cell_backward` must be a node that raises an error, and this node must be
# connected with all arguments of the cell (notebook 00b). An autograd kernel for the key `Autograd` does this. One
# function handles the three operators without a derivative:

# %%
autograd_cpp = (root / "stages" / "stage6_fused" / "csrc" / "lltm_autograd.cpp").read_text()
start, end = (
    autograd_cpp.index("// A call of an operator that has no"),
    autograd_cpp.index("EXPAND_TORCH_LIBRARY_IMPL"),
)
print(autograd_cpp[start:end])

# %% [markdown]
# The arguments of any operator are on a *stack*, a vector of values, and `callBoxed` calls the operator with them.
# `Function::apply` connects the node with all tensors among its own arguments, also with those in a list. So
# `Refusal::apply` gets all tensors of the operator as one list, and calls the operator in its `forward`.
#
# It would not be enough to call the operator first and to attach the error to each result, by a Function that
# returns its argument unchanged. Its node would be connected only with the result of the operator, which has no
# history. Then `backward()` would raise the error, but `torch.autograd.grad` would silently omit a part of the
# derivative, as in notebook 00b. The next cell computes the gradient for the bias of a loss that contains the
# gradient for the old cell:

# %%
penalised = Case(2, 3, 4).inputs()
value = sum(result.sum() for result in stage6.lltm(*penalised.values()))
(first,) = torch.autograd.grad(value, penalised["old_cell"], create_graph=True)
try:
    torch.autograd.grad(value + first.square().sum(), penalised["bias"])
except RuntimeError as error:
    print("RuntimeError:", str(error).splitlines()[0])

# %% [markdown]
# ### Which thread runs backward
#
# Which thread calls a backward function? On a CPU, it is the thread that requested it. For tensors on a GPU, torch's
# autograd engine has one thread for each device, and passes the work to that thread:

# %%
import threading


class Who(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        Who.thread = threading.get_ident()
        return grad


x = torch.ones(1, device=device(), requires_grad=True)
grad = torch.ones_like(x)
torch.autograd.grad(Who.apply(x), x, grad)
print("backward ran on", "this thread" if Who.thread == threading.get_ident() else "another thread")
if on_gpu:
    identity = {"as it is": lambda: torch.autograd.grad(x.view_as(x), x, grad)}
    print(microseconds(identity))
    with torch.autograd.set_multithreading_enabled(False):
        print("without its thread:", microseconds(identity))

# %% [markdown]
# Waking a thread and waiting for it takes tens of microseconds, in every stage and in eager. On one machine with an
# H200, forward and backward of stage 6 at B16 I32 S128 took 199 us. The same step took 146 us when the engine stayed
# on the calling thread (`torch.autograd.set_multithreading_enabled(False)`). The time for waking a thread depends on
# the machine, on the core that the thread was on, and on what else runs. Two recorded runs show how much: the same
# step took 194 us in one run (`docs/results/studies/ablation.json`) and 130 us in the other (`h200.json`), which kept
# all threads on one core. No kernel can change the time for waking a thread. But a kernel can change the number of
# launches, and each launch costs the CPU a few microseconds. The next cell lists the launches of one step, on the
# emulator:

# %%
for size in ((4, 8, 32), (300, 8, 32)):
    with collect_counts(emulated) as counted:
        outputs(emulated.lltm, Case(*size))
    own = [launch.kernel.partition("<")[0] for launch in counted.launches for _ in range(launch.launches)]
    products = operations(step(emulated.lltm, Case(*size)), ("aten::addmm", "aten::mm", "aten::cat", "aten::sum"))
    print("B{} I{} S{}:".format(*size), own, "and of ATen's", products)

# %% [markdown]
# A small cell needs one launch in forward, which also computes the matrix products, and two launches in backward.
# For a large cell, the stage uses ATen's products, which are much faster at large sizes. We measured the size at
# which to switch.

# %% [markdown] syllabus="6.4c"
# ## Vector instructions and threads on a CPU
#
# A vector register of a current core holds 8 or 16 floats (4 on most Arm cores), and a CPU has several cores. Stage 5
# uses both by torch's own means. The following sections show which flags these need, and a simpler way, which stage 6
# uses. The example is `tanh` of 16,384 numbers. We start with ATen's class for one such register,
# `at::vec::Vectorized`:

# %%
VEC = """
#include <ATen/cpu/vec/vec.h>
#include <cstdint>
#include <typeinfo>

using Vec = at::vec::Vectorized<float>;

extern "C" void tanh_all(float* out, const float* x, int64_t count) {  // a multiple of Vec::size()
  for (int64_t k = 0; k < count; k += Vec::size()) Vec::loadu(x + k).tanh().store(out + k);
}

extern "C" const char* type() { return typeid(Vec).name(); }
"""


def built(source, *flags):
    """A C++ text as a loaded library; what was built before is found by text and flags."""
    torch_flags = [*(f"-isystem{path}" for path in include_paths()), *(f"-L{path}" for path in library_paths())]
    command = [get_cxx_compiler(), "-std=c++20", "-shared", "-fPIC", *flags, f"-I{CSRC}", *torch_flags]
    name = hashlib.sha256(" ".join([source, *command]).encode()).hexdigest()[:16]
    folder = BUILD / "loops"
    folder.mkdir(exist_ok=True)
    library = folder / f"{name}.so"
    if not library.exists():
        (folder / f"{name}.cpp").write_text(source)
        made = [*command, str(folder / f"{name}.cpp"), "-o", str(library), "-lc10", "-ltorch_cpu"]
        subprocess.run(made, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library))


def tanh_of(library):
    """A call of the library's loop over `NUMBERS_IN`, without arguments."""
    library.tanh_all.argtypes, library.tanh_all.restype = [ctypes.c_void_p] * 2 + [ctypes.c_int64], None
    return lambda: library.tanh_all(RESULT.data_ptr(), NUMBERS_IN.data_ptr(), NUMBERS_IN.numel())


NUMBERS_IN = 2 * torch.randn(16384)
RESULT = torch.empty_like(NUMBERS_IN)
HAS_AVX2 = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
AVX2 = ["-mavx2", "-mfma"] if HAS_AVX2 else []
print("this CPU:", torch.backends.cpu.get_cpu_capability())

# %% [markdown] syllabus="6.4d"
# ### Compiler flags that you have to set (!)
#
# torch's own files that use `Vectorized` are compiled with certain flags. For an extension, these flags are not set
# by default. Without them, the code is slow, and there is no warning:

# %%
from torch._C import _demangle

FLAGS = {
    "-O2": [],
    "-mavx2 -mfma": AVX2,
    "and -DCPU_CAPABILITY=AVX2": [*AVX2, "-DCPU_CAPABILITY=AVX2"],
    "and -DCPU_CAPABILITY_AVX2": [*AVX2, "-DCPU_CAPABILITY_AVX2"],
    "and both": [*AVX2, "-DCPU_CAPABILITY=AVX2", "-DCPU_CAPABILITY_AVX2"],
}
FLAGS = FLAGS if HAS_AVX2 else {"-O2": []}
LIBRARIES = {name: built(VEC, "-O2", *flags) for name, flags in FLAGS.items()}
AT_VEC = microseconds({name: tanh_of(library) for name, library in LIBRARIES.items()})
exact = torch.tanh(NUMBERS_IN.double())
for name, library in LIBRARIES.items():
    library.type.restype = ctypes.c_char_p
    tanh_of(library)()
    worst = in_ulp(RESULT, exact).max()
    print(f"{name:28s}{AT_VEC[name]:7.1f} us, at most {worst:.2f} ulp   {_demangle(library.type().decode())}")

# %% [markdown]
# The flags `-mavx2 -mfma` alone change nothing: without `CPU_CAPABILITY_AVX2`, `Vectorized` is an array of eight
# floats, and its `tanh` is a loop over calls of the C library. The other macro, `CPU_CAPABILITY`, does not change
# the machine code. It is the name of a namespace. Without this macro, the classes have *the same* name in a file
# that is compiled with AVX2 and in a file that is compiled without. If a linker finds two functions with one name,
# it keeps only the first one. So set both macros.
#
# And how do you use several cores? `at::parallel_for` cuts a range into pieces:

# %%
PARALLEL = """
#include <ATen/Parallel.h>
#include <atomic>

extern "C" int pieces(int64_t count) {
  std::atomic<int> found = 0;
  at::parallel_for(0, count, 1, [&](int64_t, int64_t) { ++found; });
  return found;
}
"""
torch.set_num_threads(max(2, os.cpu_count()))
print("threads that torch has:", torch.get_num_threads())
for flags in ([], ["-fopenmp"]):
    library = built(PARALLEL, "-O2", *flags)
    print(f"{' '.join(flags) or 'without -fopenmp':18s}{library.pieces(ctypes.c_int64(1000))} pieces")
torch.set_num_threads(1)

# %% [markdown]
# `at::parallel_for` is a function in a header, with `#pragma omp` in it. Without the flag for OpenMP, the compiler
# ignores the pragma. The result is one piece on one core, without a warning.

# %% [markdown] syllabus="6.4e"
# ### Loops that the compiler vectorises
#
# A compiler can turn a loop into vector instructions by itself, if the loop contains only arithmetic and choices,
# and no calls. Stage 6's gate functions are written in this way. With a flag, the compiler reports which loops it
# vectorised:

# %%
PLAIN = """
#include "lltm_simd.h"

extern "C" void tanh_all(float* __restrict__ out, const float* __restrict__ x, int64_t count) {
  for (int64_t k = 0; k < count; ++k) out[k] = simd::tanh(x[k]);
}
"""


def vectorised(source, *flags):
    """What g++ says of the loops of a text."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "loop.cpp").write_text(source)
        command = [get_cxx_compiler(), "-std=c++20", "-c", "-fPIC", f"-I{CSRC}", *flags, "-fopt-info-vec-all"]
        done = subprocess.run([*command, "loop.cpp", "-o", "loop.o"], cwd=folder, capture_output=True, text=True)
    said = re.findall(r"^loop\.cpp:\d+:\d+: (?:optimized|missed): (.*vectorized.*)", done.stderr, re.MULTILINE)
    return said[0] if said else "nothing"


for flags in (["-O3"], ["-O3", "-fno-trapping-math"]):
    print(f"{' '.join(flags):24s}{vectorised(PLAIN, *AVX2, *flags)}")

# %% [markdown]
# *Control flow in loop* means a choice, such as `z > 0 ? z : e`. Vectorised code computes both sides for all
# numbers, and keeps one of the two results for each number. So it also computes `e` for numbers that do not need it.
# For such a number, `e` might overflow, and raise a floating-point exception that the program would not have raised.
# `-fno-trapping-math` tells the compiler that the program does not use these exceptions.
#
# What about `std::tanh`? It is a call, but glibc has versions of it for vector registers, and g++ uses them under
# `-ffast-math`:

# %%
STD = """
#include <cmath>
#include <cstdint>

extern "C" void tanh_all(float* out, const float* x, int64_t count) {
  for (int64_t k = 0; k < count; ++k) out[k] = std::tanh(x[k]);
}
extern "C" bool is_nan(float x) { return std::isnan(x); }
"""
LOOPS = {
    "std::tanh": built(STD, "-O3", *AVX2),
    "std::tanh, -ffast-math": built(STD, "-O3", *AVX2, "-ffast-math"),
    "the stage's": built(PLAIN, "-O3", *AVX2),
    "the stage's, -fno-trapping-math": built(PLAIN, "-O3", "-fno-trapping-math", *AVX2),
}
calls = {name: tanh_of(library) for name, library in LOOPS.items()}
LOOP_TIMES = microseconds(calls | {"torch.tanh": lambda: torch.tanh(NUMBERS_IN, out=RESULT)})
for name, call in calls.items():
    call()
    print(f"{name:34s}{LOOP_TIMES[name]:7.1f} us, at most {in_ulp(RESULT, exact).max():.2f} ulp")
print(f"{'torch.tanh':34s}{LOOP_TIMES['torch.tanh']:7.1f} us")

# %%
times = {f"at::vec, {name}": time for name, time in AT_VEC.items()} | LOOP_TIMES
figure, axis = plt.subplots(figsize=(10, 3.4), layout="constrained")
for row, (name, time) in enumerate(times.items()):
    axis.barh(row, time, color=GREEN if "at::vec" in name else VERMILION if "stage" in name else SKY)
    axis.text(time, row, f" {time:.0f}", va="center")
axis.set_yticks(range(len(times)), list(times))
axis.set(xscale="log", xlim=(1, 3 * max(times.values())), ylim=(len(times) - 0.5, -0.5))
axis.set_xlabel("microseconds for tanh of 16,384 floats, one core")
plt.show()

# %% [markdown]
# With the right flags, both plain loops (`std::tanh` and the stage's) are faster here than `at::vec`, and about as
# exact. Measure this on your machine, too: an older glibc or another compiler does not have a vector `tanh`, and
# does not warn either. And `-ffast-math` has a price: it promises the compiler that there is no NaN and no infinity.
# If a training run does produce a NaN, `isnan` does not find it:

# %%
for name in ("std::tanh", "std::tanh, -ffast-math"):
    LOOPS[name].is_nan.argtypes, LOOPS[name].is_nan.restype = [ctypes.c_float], ctypes.c_bool
    print(f"{name:24s}isnan(nan): {LOOPS[name].is_nan(float('nan'))}")

# %% [markdown]
# So the stage has its own gate functions, in which NaN stays NaN, and uses three flags: `-O3`, `-fno-trapping-math`,
# and `-fopenmp` for the threads. Its loops are compiled three times, for AVX-512, for AVX2 and for any CPU. At run
# time, the stage selects the version for the CPU:

# %%
text = (CSRC / "lltm_simd.h").read_text()
print(text[text.index("template <typename Work>\nvoid run") : text.index("}  // namespace simd")])

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/products`, `6/autograd_in_cpp` and `6/flags_that_count`.

# %% [markdown] syllabus="6.2d"
# ## Leaving out each optimisation
#
# `make ablation` builds the stage without each of its optimisations in turn, and also with each one alone, and
# measures all of these variants in one run. The next cell shows the recorded results. The list above the tables
# explains the name of each optimisation:

# %%
from common.studies.ablation import recorder as ablation
from common.studies.ablation.table import ablation_table

display(Markdown(ablation_table(ablation.read_recorded_ablation())))

# %% [markdown]
# What does a ratio like 1.04 mean? You can read the noise from the table itself. On a GPU, `bias` (the sums for the
# bias) changes only backward, so forward without it is the same program as the stage, instruction for instruction.
# Also, `joined` (one matrix product instead of two) changes nothing in a small cell, whose own kernels compute the
# products. So where these two ratios differ from 1.00, the difference is noise. At the small sizes on the H200, the
# noise is a few percent, and in another run it was ten percent. So at these sizes, only two optimisations have shown
# an effect in the complete stage: `small` (one kernel for a small cell) and `autograd` (the gradient in C++). At
# these sizes, `joined` has an effect only in variants without `small`, because only there does ATen compute the
# products: for example, in the variant with `joined` alone. At the large size, the noise is less than one percent.
# At that size, most of the time of the cell is a matrix product, and all optimisations together gain six percent in
# forward, and four percent in forward and backward together.
#
# The times of the pointwise kernel alone show the differences. They also show that *optimisations need each other*.
# On its own, `packs` (16 bytes at a time) gains six percent, and `units` (the GPU's fast units) gains two percent,
# because a kernel that writes all gates waits for memory anyway. But if you remove one of them from the complete
# stage, the kernel takes a fifth longer (`packs`) or a sixth longer (`units`). If you try optimisations one at a
# time, and keep only those that help, you stop too early.
#
# At B64 S128, two of the optimisations make the pointwise kernel slower. With 16 bytes per thread, only a quarter as
# many threads run, and with few rows these are too few to keep the GPU busy. Also, a block that sums for the bias
# processes several rows one after another. So backward takes 10 us instead of 5. But no separate sum has to be
# launched. That launch would cost a program about the same 5 us.

# %% [markdown] syllabus="6.4f"
# ## The same kernel in Triton
#
# Was a kernel in CUDA worth the effort? Triton is a compiler for GPU kernels that are written in Python. This is the
# same forward kernel in Triton:

# %%
triton_text = (root / "stages" / "stage6_fused" / "lltm_triton.py").read_text()
forward = triton_text[triton_text.index("@triton.jit\ndef forward_kernel") :].partition("\n\n\n")[0]
print(forward)

# %%
kernels = (CSRC / "lltm_kernel.cu").read_text()
of_cuda = kernels[kernels.index("struct alignas(16) Pack") :]
of_cuda = of_cuda[: of_cuda.index("\n}\n", of_cuda.index("void forward_kernel(")) + 3]
code = {"CUDA": of_cuda, "Triton": forward}
for name, text in code.items():
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("//", "#pragma"))]
    print(f"{name}: {len(lines)} lines")

# %% [markdown]
# Line by line, the Triton kernel does nearly the same as the CUDA kernel: it selects a row and some units, loads
# their numbers, computes the gates, and stores two results. Triton does the rest. `inside` is a mask that excludes
# units past the end of a row. The compiler decides which thread computes which units, and generates loads of 16
# bytes with the right alignment. (Triton's `elu` and `tanh`, written above the kernel, are `exp(z) - 1` and
# `2 * sigmoid(2 * x) - 1`. Near zero, both lose digits that the stage's functions keep.) In Triton, you cannot
# control what a single thread does, and there is no kernel for the CPU. These are the recorded times on the H200:

# %%
print(f"{'':16s}{'forward':>10s}{'backward':>10s}   (B8192 S4096, us; B4096 S1024)")
h200 = records.read_result(root / "docs" / "results" / "h200.json")
for implementation in dict.fromkeys(row["name"] for row in h200["kernels"]):
    cells = {(row["B"], row["pass"]): row["median"] for row in h200["kernels"] if row["name"] == implementation}
    both = [f"{cells[8192, which]:10.1f}" for which in ("forward", "backward")]
    print(f"{implementation:16s}{''.join(both)}   {cells[4096, 'forward']:8.1f}{cells[4096, 'backward']:8.1f}")

# %% [markdown]
# torch.compile's forward is as fast as any other, and you do not have to write it. The backward of torch.compile
# keeps more tensors than necessary, and consists of two kernels. Triton's backward writes the same tensors as the
# stage's backward, and is as fast or nearly as fast. Does the Triton version compute the right values? Without a
# GPU, Triton's interpreter can run it. You have to select the interpreter before you import Triton, so the next cell
# starts a new process:

# %%
CHECK = """
import torch
from common.cell.case import Case, difference, outputs
from common.measure.implementations import load_triton_module
case = Case(3, 5, 70, device="cuda" if torch.cuda.is_available() else "cpu")
print(difference(case, outputs(load_triton_module().lltm, case)) or "agrees with the reference")
"""
environment = {**os.environ, "PYTHONPATH": str(root)} | (
    {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
)
done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True)
print(done.stdout.strip() or done.stderr.splitlines()[-1])

# %% [markdown]
# For a kernel that waits for memory, and that you need only on GPUs, Triton is by far the better choice. [When not
# to write CUDA](../docs/when-not-to-write-cuda.md) has the times. Compared with the Triton version, the stage adds
# four features: the sums for the bias are in the same kernel, a small cell needs only one launch in forward, a call
# does not run Python, and the cell also runs on the CPU.

# %% [markdown]
# ## Summary
#
# - At small sizes, the time is not in the kernels, but in the calls around them. Write autograd in C++, and in an
#   autograd or autocast kernel, call only operators.
# - On a CPU, set the right flags, and let the compiler report what it did.
# - Optimisations need each other: measure the complete code without each of them, not each one alone.
#
# Next: `make diff-5-6` shows the stage as a diff, in steps that you can read one at a time. `make next` shows the
# next exercise.
