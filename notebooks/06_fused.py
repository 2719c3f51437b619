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
# # 06: the fused cell
#
# Stage 5's operator computes the right values and works with all of PyTorch. How fast could it be? You can answer
# this before you write any kernel: divide the bytes that have to move by the speed of memory. In this notebook, you
# work out this limit, and leave out all work that is not necessary. Notebook 06b then shows what prevents a kernel
# from reaching the limit. For small sizes, the kernel is not the problem: notebook 06c is about the time between the
# call and the kernel, about CPUs, and about what each optimisation is worth.
#
# You need notebooks 03 to 05 and a C++ compiler. Without a GPU, the emulator counts memory accesses, the notebook
# measures times on the CPU, and it reads the results of a GPU from recorded measurements. The notebook takes about
# 45 minutes. In its first run, it also compiles for a minute.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import os

import matplotlib.pyplot as plt
import torch
from torch.profiler import ProfilerActivity, profile

from common import load
from common.cell.case import Case, difference, outputs
from common.emulator import collect_counts
from common.figures.plots import INK, STYLE, colour
from common.inline import device, inline
from common.measure import stage_counts
from common.measure.clock import interleave
from common.results import records, rows

plt.rcParams.update(STYLE)
on_gpu = device() == "cuda"
torch.manual_seed(0)
torch.set_num_threads(1)
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the CPU and the emulator")


# %%
def microseconds(calls, device="cpu", rounds=11, block_seconds=0.01):
    """The time of each call of a dict, taken in turns: the first quartile, which other programs disturb the least."""
    samples = interleave(list(calls.values()), device, rounds, block_seconds)
    return {name: sample.quartiles()[0] for name, sample in zip(calls, samples, strict=True)}


# %% [markdown]
# The next cell loads the stage for the CPU and for the emulator. `cell` is the whole cell. `pointwise` is the part
# after the matrix products, whose result `z` has three numbers for each unit.

# %%
stage5, stage6 = load(5, "host"), load(6, "host")
emulated = load(6, "emulator")
for stage in (stage6, emulated):
    print(stage.TARGET, difference(case := Case(16, 32, 128), outputs(stage.lltm, case)) or "agrees")
print(stage6.operators.cell.default._schema)

# %% [markdown] syllabus="6.1a"
# ## The shortest possible time
#
# A computation takes at least the time that its bytes need to move, and at least the time that its operations need:
#
# $$t \ge \max\left(\frac{\mathrm{bytes}}{\mathrm{bytes\ per\ second}},
#   \frac{\mathrm{operations}}{\mathrm{operations\ per\ second}}\right)$$
#
# Which of the two is larger depends on the *intensity*, the number of operations per byte. In forward, the pointwise
# part reads four numbers for each unit and writes two. To find the number of operations, we evaluate the formula
# with objects that count the operations on them:


# %%
class Counting:
    """A number that counts the operations on all numbers of this class; exp and tanh count as one each."""

    operations = 0

    def _one_more(self, *_):
        Counting.operations += 1
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rtruediv__ = __neg__ = exp = tanh = _one_more


def pointwise_formula(z_i, z_o, z_g, old_cell):
    input_gate, output_gate = 1 / (1 + (-z_i).exp()), 1 / (1 + (-z_o).exp())
    candidate_cell = z_g.exp() - 1
    new_cell = old_cell + candidate_cell * input_gate
    return new_cell.tanh() * output_gate, new_cell


pointwise_formula(*(Counting() for _ in range(4)))
FLOPS, BYTES = Counting.operations, 4 * (4 + 2)
print(f"{FLOPS} operations and {BYTES} bytes for each unit: {FLOPS / BYTES:.2f} operations a byte")

# %% [markdown]
# Is this intensity high or low? This depends on the machine: how many operations can it do in the time in which it
# moves one byte? A product of large matrices consists almost only of operations, and a copy only moves bytes. The
# next cell measures both on this machine:


# %%
def speeds(device, megabytes, n):
    """Bytes per second of a copy, read and written, and operations per second of a matrix product, float32."""
    x, a = torch.ones(megabytes * 2**18, device=device), torch.ones(n, n, device=device)
    y, b = torch.empty_like(x), torch.empty_like(a)
    calls = {"copy": lambda: y.copy_(x), "product": lambda: torch.mm(a, a, out=b)}
    time = microseconds(calls, device, rounds=5)
    return 2 * 4 * x.numel() / time["copy"] * 1e6, 2 * n**3 / time["product"] * 1e6


MACHINES = {"this CPU, one thread": speeds("cpu", megabytes=12, n=1024)}  # as many bytes as stage 6 moves below
if on_gpu:
    MACHINES[torch.cuda.get_device_name()] = speeds("cuda", megabytes=512, n=8192)

# %% [markdown]
# The workbook's results were recorded on an H200. The speed of a copy on that GPU is recorded, too. The number of
# operations follows from its clock: it has 132 multiprocessors with 128 lanes each, and a lane can do a
# multiplication and an addition in each cycle.

# %%
h200 = records.read_result(root / "docs" / "results" / "h200.json")
kernels_of_h200 = [row for row in h200["kernels"] if row["B"] == 8192]
clock = h200["machine"]["gpu_clocks_mhz"]["sm_max"] * 1e6
MACHINES["H200, recorded"] = kernels_of_h200[0]["copy_gb_per_second"] * 1e9, 132 * 128 * 2 * clock
for name, (moved, computed) in MACHINES.items():
    balance = f"{computed / moved:5.1f} operations a byte"
    print(f"{name:22s}{moved / 1e9:8,.0f} GB/s{computed / 1e9:10,.0f} GFLOP/s: {balance}")

# %% [markdown]
# On each of these machines, the intensity of the pointwise part is far below this number of operations per byte. So
# memory limits its speed, not arithmetic: the pointwise part is *memory-bound*. To make it faster, move fewer bytes.
# The next cell measures three implementations on the CPU: eager, whose seven operations move 17 numbers for each
# unit; stage 5, which also writes the gates; and stage 6.

# %%
from common.measure.pointwise import pointwise_equations as equations

NUMBERS = {"eager": 17, "stage 5": 4 + 5, "stage 6": 4 + 2}
B, S = 1024, 1024
z, old_cell = torch.randn(B, 3 * S), torch.randn(B, S)
with torch.no_grad():
    TIMES = microseconds(
        {
            "eager": lambda: equations(z, old_cell),
            "stage 5": lambda: stage5.operators.pointwise(z, old_cell),
            "stage 6": lambda: stage6.operators.pointwise(z, old_cell),
        },
        rounds=3,
    )
copied = MACHINES["this CPU, one thread"][0]
for name, time in TIMES.items():
    moved = 4 * NUMBERS[name] * B * S
    floor = moved / copied * 1e3
    print(f"{name}: {time / 1e3:6.1f} ms, {moved / time / 1e3:4.1f} GB/s; at a copy's speed {floor:.1f} ms")

# %% [markdown]
# The *roofline* is a plot of the first formula of this section, written as a speed. For each intensity, it shows how
# many operations a machine can do in a second. Under the sloped part, memory is the limit. Under the flat part,
# arithmetic is the limit.

# %%
RECORDED = {row["name"]: row["median"] for row in kernels_of_h200 if row["pass"] == "forward"}
NUMBERS |= {"stage 3": 9, "stage 4": 9, "torch.compile": 6, "Triton": 6}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
panels = {"this CPU, one thread": (TIMES, B * S), "H200, recorded": (RECORDED, 8192 * 4096)}
for axis, (name, (times, units)) in zip(axes, panels.items(), strict=True):
    moved, computed = MACHINES[name]
    corner = computed / moved
    axis.loglog([1 / 16, corner, 64 * corner], [moved / 16, computed, computed], color=INK)
    for k, (implementation, time) in enumerate(times.items()):  # smaller discs on larger ones
        intensity, speed = FLOPS / (4 * NUMBERS[implementation]), FLOPS * units / time * 1e6
        axis.plot(intensity, speed, "o", color=colour(implementation), label=implementation, markersize=14 * 0.8**k)
    axis.set(title=name, xlabel="operations a byte", ylabel="operations a second")
    axis.legend(frameon=False, loc="lower right")
plt.show()

# %% [markdown]
# The recorded kernels of the H200 are on the slope or near it. A kernel that moves fewer bytes has a higher
# intensity, so its point is further to the right, and higher. On the CPU, the stages are below the slope. There the
# limit is another one, which our count does not show: each exp and tanh is one operation in the count, but dozens of
# instructions for the CPU.

# %% [markdown] syllabus="6.1b"
# ### The speed of a copy as the limit
#
# A data sheet gives a speed for the memory, but no program reaches that speed. A kernel can reach the speed of a
# copy, however. So the harness (the workbook's program for measurements) times a copy before each pass that it
# measures, and gives the speed of each kernel as a percentage of that copy's speed:

# %%
print(f"{'H200, B8192 S4096':20s}{'us':>8s}{'GB/s':>8s}  of a copy")
for row in kernels_of_h200:
    if speed := rows.gb_per_second(row):
        name = f"{row['name']} {row['pass']}"
        print(f"{name:20s}{row['median']:8.1f}{speed:8,.0f}{rows.share_of_copy(row):8.0%}")

# %% [markdown]
# Stages 3 to 5 move 9 numbers for each unit in forward and 10 in backward. Their speed is near the speed of a copy,
# and in backward it is nearer than in forward. So the only way to be faster is to move fewer bytes. A kernel can
# also be a little above 100 %. A copy writes as many bytes as it reads, but the cell's forward reads four numbers
# and writes two, and reading and writing are not equally fast. On the H200, the harness also recorded a sum of two
# tensors into a third, which reads two numbers for each number that it writes:

# %%
print(*(f"{kernels_of_h200[0][f'{what}_gb_per_second']:,.0f} GB/s ({what})" for what in ("copy", "sum")), sep=", ")
x, y = (torch.ones(2**28 if on_gpu else 2**24, device=device()) for _ in "xy")
memory = microseconds({"read": x.sum, "write": lambda: y.fill_(1.0), "copy": lambda: y.copy_(x)}, device(), rounds=5)
print("here:", {name: f"{x.nbytes * (1 + (name == 'copy')) / time / 1e3:,.1f} GB/s" for name, time in memory.items()})

# %% [markdown]
# (On a CPU, only one thread runs here. So these numbers depend on the speed of that thread, too, and not only on
# memory.) The percentage of a copy's speed shows how much a kernel could still gain. This percentage also shows
# wrong measurements: a kernel at 150 % does not access all of its bytes, or finds them in a cache. The harness
# refuses to record such a result.

# %% [markdown] syllabus="6.2a"
# ## Leaving out unnecessary work
#
# ### No concatenation with `cat`
#
# `z = [old_h, input] @ weights.T` needs the two matrices side by side, so `cat` copies both. There are two ways to
# avoid this copy. You can compute two products with the two halves of the weights, and add the second one to the
# first. Or you can use a buffer that already has the layout `[old_h, input]`, and let the code that produces the two
# matrices write into it.

# %%
import torch.nn.functional as F


def concatenated(input, weights, bias, old_h):
    return F.linear(torch.cat([old_h, input], 1), weights, bias)


def two_products(input, weights, bias, old_h):
    S = old_h.size(1)
    z = torch.addmm(bias, old_h, weights[:, :S].t())  # the halves are views
    return z.addmm_(input, weights[:, S:].t())


def one_buffer(X, weights, bias):
    return F.linear(X, weights, bias)


SIZES = {"B16 I32 S128": Case(16, 32, 128), "B64 I1024 S128": Case(64, 1024, 128)}
for size, case in SIZES.items():
    *given, _ = (tensor.detach() for tensor in case.inputs().values())
    input, weights, bias, old_h = given
    X = torch.cat([old_h, input], 1)
    want = concatenated(*given)
    assert torch.allclose(two_products(*given), want, atol=1e-4)
    assert torch.equal(one_buffer(X, *given[1:3]), want)
    ways = {
        "cat": lambda given=given: concatenated(*given),
        "two products": lambda given=given: two_products(*given),
        "one buffer": lambda X=X, given=given: one_buffer(X, *given[1:3]),
    }
    print(size, {name: f"{time:.1f} us" for name, time in microseconds(ways).items()})

# %% [markdown]
# All three give the same z, but with two products, each number of z is rounded once more. Which is the fastest? The
# copy reads and writes (B, S+I) numbers. The second product reads and writes z, (B, 3S), once more. The copy costs
# one more call, and so does the second product. On a CPU, the result depends on the size, on the threads, and on the
# library that multiplies. With 16 threads, two products were faster at the middle sizes, and slower by up to a tenth
# at the small size. So on a CPU the stage always computes two products, and copies nothing. On the H200 at B4096,
# two products were slower by two to four percent, so there the stage copies with `cat` and computes one product.
#
# With a buffer, nothing has to be copied, but the buffer belongs to the caller. A single cell has to accept any
# arguments, so it cannot rely on such a buffer. (A loop over time steps could own the buffer.)

# %% [markdown] syllabus="6.2b"
# ### No zeros for a missing gradient
#
# If a loss uses only `new_h`, no gradient arrives for `new_cell`. Autograd then creates a tensor of zeros, unless
# you switch this off:


# %%
def two_results(materialize):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grad_double, grad_triple):
            print(f"  backward gets {'None' if grad_triple is None else 'a tensor of zeros'}", end="")
            return 2 * grad_double if grad_triple is None else 2 * grad_double + 3 * grad_triple

    return Both.apply


def operations(call, names=("aten::zeros", "aten::cat")):
    """How often a call runs each of ATen's operations."""
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        call()
    found = [event.name for event in profiler.events()]
    return {name: found.count(name) for name in names if name in found}


x = torch.ones(3, requires_grad=True)
for materialize in (True, False):
    print(f"materialize={materialize}:", end="")
    double, _ = two_results(materialize)(x)
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        torch.autograd.grad(double.sum(), x)
    zeros = [event.name for event in profiler.events() if "zero" in event.name]
    print(f", {len(zeros)} operations that fill with zeros")

# %% [markdown]
# In C++ you can switch this off, too, and a missing gradient is then an undefined tensor. For such a tensor, the
# stage passes a null pointer to the kernel, and the kernel uses zeros. The emulator counts what the backward kernel
# reads:

# %%
z, grad = torch.randn(64, 3 * 512), torch.randn(64, 512)
for name, grads in {"both": (grad, grad), "of new_h only": (grad, None)}.items():
    with collect_counts(emulated) as counted:
        emulated.operators.pointwise_backward(*grads, z, grad, [False, True])
    read = counted.total("bytes", "backward_kernel", "global load")
    print(f"gradients: {name:14s}{read / (4 * 64 * 512):.0f} numbers a unit")


# %%
def only_h(lltm):
    inputs, (grad_h, _) = Case(16, 32, 128).inputs(), Case(16, 32, 128).gradients()

    def call():
        new_h, _ = lltm(*inputs.values())
        torch.autograd.grad(new_h, list(inputs.values()), grad_h)

    return call


for name, lltm in {"eager": load(1).equations, "stage 5": stage5.lltm, "stage 6": stage6.lltm}.items():
    print(f"{name:9s}", operations(only_h(lltm)) or "neither cat nor zeros")

# %% [markdown]
# Stage 5's operator needs both gradients, so a tensor of zeros is created for the second one. (Eager does not need
# these zeros, but concatenates the gradients of the three pieces of z with a second `cat`.) Here stage 6 creates no
# zeros and concatenates nothing.

# %% [markdown] syllabus="6.2c"
# ### Computing the gates again instead of storing them
#
# What does autograd store for backward in one step? `saved_storages` finds every tensor that an implementation
# stores for backward. A tensor that shares the memory of an input or an output needs no additional memory, because
# the caller holds that memory anyway.

# %%
from common.cell.memory import saved_storages


def kept_by(lltm, case):
    """The bytes of each storage that a forward pass keeps for its backward, without inputs and outputs."""
    inputs = list(case.inputs().values())
    results, storages = saved_storages(lambda: lltm(*inputs))
    there_anyway = {tensor.untyped_storage().data_ptr() for tensor in (*inputs, *results)}
    return [storage.nbytes() for at, storage in storages.items() if at not in there_anyway]


CELLS = {
    "eager": load(1).equations,
    "stage 2": load(2).lltm,
    "stage 3": load(3, "emulator").lltm,
    "stage 5": stage5.lltm,
    "stage 6": stage6.lltm,
}
case = Case(16, 32, 128)
unit = 4 * case.B * case.S  # bytes of a (B, S)
KEPT = {}
for name, lltm in CELLS.items():
    KEPT[name] = sorted((size / unit for size in kept_by(lltm, case)), reverse=True)
    print(f"{name:9s}{sum(KEPT[name]) * unit:8,.0f} bytes; each in (B, S):", *(f"{size:.2f}" for size in KEPT[name]))

# %%
figure, axis = plt.subplots(figsize=(10, 2.6), layout="constrained")
for row, (name, sizes) in enumerate(KEPT.items()):
    left = 0
    for size in sizes:
        axis.barh(row, size, left=left, color=colour(name), edgecolor="white")
        left += size
    axis.text(left, row, f"  {left:.2f}", va="center")
axis.set_yticks(range(len(KEPT)), list(KEPT))
axis.set(
    ylim=(len(KEPT) - 0.5, -0.5),
    xlabel="kept for backward besides inputs and outputs, in sizes of (B, S); B16 I32 S128",
)
axis.margins(x=0.1)
plt.show()

# %% [markdown]
# In the chart, the piece of size 1.25 is X = [old_h, input]. Stages 2 to 5 store X and the three gates (a piece of
# size 3). For the gates, stage 6 needs the same memory: it stores z instead, which has the same size. Stage 6 needs
# less memory *here* only because it does not store X. For a large cell on a GPU, one product of X is faster than two
# products of its halves, so there backward of stage 6 concatenates X again.
#
# So computing the gates again in backward does not reduce this memory. The gain is time in forward: the forward
# kernel does not have to write the gates, which are three numbers for each unit. The backward kernel executes more
# instructions, but it waits for memory anyway. So *arithmetic is cheap, as long as bytes are the limit*.

# %% [markdown] syllabus="6.2d"
# ### How many bytes each stage moves
#
# The next cell prints how many numbers every kernel reads and writes for each unit. These numbers come from the
# bytes that the emulator counted:

# %%
B, S = 64, 512
MOVED = {}
for number in (3, 5, 6):
    counted = stage_counts.count_stage(number, B, S)
    for kernel in ("forward_kernel", "backward_kernel"):
        read, written = (counted.total("bytes", kernel, f"global {way}") / (4 * B * S) for way in ("load", "store"))
        MOVED[number, kernel] = read + written
        print(f"stage {number} {kernel:16s}reads {read:.0f}, writes {written:.0f}")

# %% [markdown]
# Forward moves six numbers instead of nine. At the speed of a copy, it takes a third less time. Backward moves as
# many bytes as before, because it reads z in place of the gates. The next cell shows what else the stage leaves out,
# for the cell of B4096 I1024 S1024 in float32, in bytes and in time at the recorded speed of a copy:

# %%
B, I, S = 4096, 1024, 1024
LEFT_OUT = {
    "gates written in forward": 3 * B * S,
    "X kept (memory, not time)": B * (S + I),
    "zeros for one gradient: filled, read": 2 * B * S,
    "d_z read again for the bias": 3 * B * S,
}
for name, numbers in LEFT_OUT.items():
    time = 4 * numbers / MACHINES["H200, recorded"][0] * 1e6
    print(f"{name:38s}{4 * numbers / 2**20:6.0f} MiB{'' if 'not time' in name else f'{time:8.1f} us'}")

# %% [markdown] syllabus="6.2e"
# ### The gradient of the bias, without atomics
#
# `d_bias = d_z.sum(0)` reads all of `d_z` right after a kernel has written it. So in stage 6, the kernel itself adds
# up the values that it writes. The kernel's blocks run at the same time. The obvious solution is an `atomicAdd` from
# every block to one sum. But a float sum depends on the order of its terms, and blocks end in any order. The
# emulator can shuffle this order:

# %%
SUMS_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void atomics_kernel(float* sum, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) atomicAdd(sum, x[k]);
}

void launch_atomics(float* sum, const float* x, int64_t count, cudaStream_t stream) {
  atomics_kernel<<<(count + 31) / 32, 32, 0, stream>>>(sum, x, count);
}
"""
SUMS_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_atomics(float* sum, const float* x, int64_t count, cudaStream_t stream);

void atomics(const at::Tensor& sum, const at::Tensor& x) {
  launch_atomics(sum.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel(),
                 c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
sums = inline("sums", SUMS_CPP, SUMS_CU, ["atomics"], target="emulator")

# %%
z, grad, column = torch.randn(1024, 3 * 8), torch.randn(1024, 8), torch.randn(1024)
by_atomics, by_the_stage = set(), set()
for seed in range(8):
    os.environ["EMULATOR_SEED"] = str(seed)
    total = torch.zeros(1)
    sums.atomics(total, column)
    by_atomics.add(total.item())
    _, d_bias, _ = emulated.operators.pointwise_backward(grad, grad, z, grad, [True, True])
    by_the_stage.add(tuple(d_bias.tolist()))
del os.environ["EMULATOR_SEED"]
print("atomics:  ", sorted(by_atomics))
print("the stage:", len(by_the_stage), "result of 8 runs")

# %% [markdown]
# In the stage, each block writes its own row of sums, and ATen adds up the rows. (If d_z has up to 64 rows, one
# block processes all of them, and there is nothing to add.) Only the sizes and the GPU determine the order of both
# sums. So on one GPU, the result has the same bits every time. You can repeat a training run exactly, and a test can
# compare with `==`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/bytes_a_unit`. In a terminal, `make check EX=6/bytes_a_unit` gives you the files and checks what
# you wrote. The next cell runs the check here. Then do `6/leave_it_out` and `6/keep_nothing`.

# %%
from common.exercises import show

show("6/bytes_a_unit")

# %% [markdown]
# ## Summary
#
# - Work out the bytes and measure a copy. Then you know what you can still gain before you write a line.
# - Leave out unnecessary work first: copies, zeros, and tensors that are kept for backward.
# - Sums in a fixed order give the same bits every time; atomics do not.
#
# Next: notebook 06b, about what prevents a kernel from reaching the speed of a copy.
