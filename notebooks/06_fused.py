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
# work out this limit, and leave out all work that is not necessary. Then you find out what prevents a kernel from
# reaching the limit. For small sizes, the kernel is not the problem: notebook 06b is about the time between the call
# and the kernel, about CPUs, and about what each optimisation is worth. A heading with (!) is about a mistake that is
# common in code and in tutorials.
#
# You need notebooks 03 to 05 and a C++ compiler. Without a GPU, the emulator counts memory accesses, the notebook
# measures times on the CPU, and it reads the results of a GPU from recorded measurements. If nvcc is installed, the
# notebook uses it, even without a GPU. The notebook takes about 75 minutes. In its first run, it also compiles for
# a minute and a half.

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
import struct
import subprocess
import tempfile

import matplotlib.pyplot as plt
import torch
from IPython.display import display
from torch.profiler import ProfilerActivity, profile

from common import load
from common.build.nvcc import find_nvcc
from common.cell import reference
from common.cell.case import Case, difference, outputs
from common.emulator import collect_counts
from common.figures.plots import BLUE, GREEN, INK, ORANGE, STYLE, colour
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
# intensity, so its point is further to the right, and higher. On the CPU, stage 5 is far below the slope. There the
# limit is another one, which our count does not show: exp and tanh in stage 5 are calls of the C library, not single
# operations.

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

# %% [markdown] syllabus="6.1c"
# ### When instructions are the limit
#
# The formula has fourteen operations. How many instructions are these? nvcc can show this on any machine. The next
# cell extracts the stage's forward kernel and everything that it needs, without torch:

# %%
CSRC = root / "stages" / "stage6_fused" / "csrc"


def kernel_text():
    """The packs, their loads and stores, and the forward kernel, as stage 6 has them, in one text without torch."""
    text = (CSRC / "lltm_kernel.cu").read_text()
    first = text.rindex("template", 0, text.index("struct alignas(16) Pack"))
    last = text.index("\n}\n", text.index("void forward_kernel(")) + 3
    headers = [(CSRC / f"lltm_{name}.h").read_text() for name in ("math", "gates", "launch", "matrix")]
    joined = "\n".join([*headers, text[first:last]])
    joined = re.sub(r'#pragma once|#include "\w+\.h"', "", joined)
    opmath = "namespace at {\ntemplate <typename T>\nusing opmath_type = T;\n}\n"  # the opmath type of float is float
    return f"#include <cmath>\n#include <cstdint>\n{opmath}{joined}"


KERNEL = kernel_text()
EXACT = KERNEL.replace("fast::sigmoid", "sigmoid").replace("fast::elu", "elu")  # as stages 3 to 5 compute them
print(KERNEL[KERNEL.index("namespace fast") :].partition("}  // namespace fast")[0])

# %% [markdown]
# A `.cubin` contains machine code for a GPU. It is an ELF file, the format that Linux uses for `.o` files. On Volta
# and later GPUs, each machine instruction in it has 16 bytes. So the size of the code gives the number of
# instructions, and the lowest 12 bits of an instruction are its opcode. We leave out the `NOP`s that fill up the
# end. Our count also includes instructions that few threads execute, such as the slow path of a division.

# %%
FLOAT = "template __global__ void forward_kernel<true, float>"
FLOAT += "(float*, float*, const float*, Matrix<float>, int64_t, int64_t);\n"
NOP, SPECIAL, STORE = 0x918, 0x308, 0x986  # MUFU, the unit for 2^x, 1/x and tanh; a store to global memory


def compiled_by_nvcc(text, *options):
    """What nvcc compiles a text to, as bytes, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.cu").write_text(text)
        command = [find_nvcc(), "-std=c++17", "-arch=sm_90", "-w", *options, "kernel.cu", "-o", "result"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return (Path(folder) / "result").read_bytes(), done.stderr


def instructions(cubin):
    """The opcodes of the code in an ELF file of 64 bits, NOPs left out."""
    (sections,) = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    headers = [struct.unpack_from("<IIQQQQ", cubin, sections + 64 * k) for k in range(count)]
    code = [
        cubin[at : at + size] for name, *_, at, size in headers if cubin[headers[names][4] + name :][:5] == b".text"
    ]
    opcodes = [struct.unpack_from("<H", part, k)[0] & 0xFFF for part in code for k in range(0, len(part), 16)]
    return [opcode for opcode in opcodes if opcode != NOP]


# %%
UNITS = 4  # in one Pack: one pass of the kernel's loop computes them
if find_nvcc():
    per_unit = {}
    for name, text in {"exact": EXACT, "the stage's": KERNEL}.items():
        opcodes = instructions(compiled_by_nvcc(text + FLOAT, "-cubin")[0])
        per_unit[name] = len(opcodes) / UNITS
        print(
            f"{name:12s}{len(opcodes) / UNITS:6.1f} instructions a unit, {opcodes.count(SPECIAL) / UNITS:.0f} special"
        )
else:
    per_unit = {"exact": 132.5, "the stage's": 72.25}
    print("no nvcc here; nvcc 13.0 generates", per_unit)

# %% [markdown]
# For each unit, nvcc 13.0 generates 132 instructions for the exact formula, not 14. For the stage's formula, it
# generates 72. A correctly rounded division takes a dozen instructions and a branch, exp takes about eight, and
# expm1 takes more. Does this matter if memory is the limit? A multiprocessor has four schedulers, and in each cycle,
# each scheduler can start at most one instruction of one warp. (Some kinds of instructions can start less often. The
# cell counts only how many have to be started.)

# %%
units = 8192 * 4096
slots = 132 * 4 * 32 * clock  # instructions of threads per second, on the H200
copying = BYTES * units / MACHINES["H200, recorded"][0] * 1e6
print(f"B8192 S4096, memory: {copying:.0f} us")
for name, count in per_unit.items():
    issuing = count * units / slots * 1e6
    print(f"{name:12s} {issuing:4.0f} us to issue: {issuing / copying:.0%} of the time for memory")

# %% [markdown]
# The GPU starts instructions and moves bytes at the same time, as long as it finds another warp to run while one
# waits for memory. With the stage's formula, the instructions need 38 % of the time that memory needs, and they do
# not slow the kernel down. With the exact formula, they need 69 %, and too often no other warp is ready. Then the
# kernel moves the same bytes, but takes a sixth longer (at B4096 S1024; the section *Leaving out each optimisation*
# of notebook 06b has the figures). So in practice, the corner of the roofline is round, and instructions are what you
# have to count as *operations*.

# %% [markdown] syllabus="6.1d"
# ### The errors of the GPU's fast units
#
# `__expf(x)` multiplies `x` by log2(e), and then uses the special unit that computes 2^x. The unit receives the
# product rounded to float. How large is the error? An *ulp* (unit in the last place) is the distance to the next
# float. The next cell computes only the effect of this rounding. The unit itself causes an additional error of at
# most two ulp:

# %%
LOG2_E = torch.tensor(1.4426950408889634)


def fast_exp(x):
    """Rounds the product to float32, computes 2^x in double, and rounds the result."""
    return torch.exp2((x * LOG2_E).double()).float()


def series(z):
    """The first terms of exp(z) - 1 in float32, as `fast::elu` has them."""
    return z * (1 + z * (1 / 2 + z * (1 / 6 + z * (1 / 24 + z * (1 / 120 + z * (1 / 720))))))


def in_ulp(got, exact):
    """Errors in units of float32's epsilon of the exact value."""
    return (got.double() - exact).abs() / (exact.abs() * torch.finfo(torch.float32).eps)


z = torch.linspace(-20, 10, 200_001)
SIGMOID = {"exp": 1 / (1 + torch.exp(-z)), "fast exp": 1 / (1 + fast_exp(-z))}
small = -torch.logspace(-6, 1, 100_001)
ELU = {
    "expm1": torch.expm1(small),
    "fast exp - 1": fast_exp(small) - 1,
    "with the series": torch.where(small > -0.35, series(small), fast_exp(small) - 1),
}
sigmoid_errors = {name: in_ulp(got, torch.sigmoid(z.double())) for name, got in SIGMOID.items()}
elu_errors = {name: in_ulp(got, torch.expm1(small.double())) for name, got in ELU.items()}
for errors in (sigmoid_errors, elu_errors):
    print({name: f"{error.max():.3g} ulp" for name, error in errors.items()})

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
for name, shade in (("fast exp", ORANGE), ("exp", BLUE)):
    axes[0].plot(z, sigmoid_errors[name], ".", markersize=1, color=shade, label=name)
for name, shade in (("fast exp - 1", ORANGE), ("with the series", GREEN), ("expm1", BLUE)):
    axes[1].loglog(-small, elu_errors[name].clamp(min=1e-2), ".", markersize=1, color=shade, label=name)
axes[0].set(title="sigmoid", xlabel="z", ylabel="error in ulp")
axes[1].set(title="elu below zero", xlabel="-z", ylabel="error in ulp")
for axis in axes:
    axis.grid(axis="y")
    axis.legend(frameon=False, markerscale=12)
plt.show()

# %% [markdown]
# The larger the product, the larger its rounding error, and 2^x turns this rounding error into a relative error of
# the result. For z at -20, the error is eight ulp, but there sigmoid is 2e-9, so the error has no practical effect.
# Near zero, the difference `exp(z) - 1` loses *all* digits, with the fast exp or with the exact one. So for small z,
# the stage uses the first terms of the power series of `exp(z) - 1`. On a GPU, the next cell measures the stage
# itself:

# %%
if on_gpu:
    on_cuda = load(6, "cuda").operators
    for name, at, exact in (("sigmoid", z, torch.sigmoid), ("elu", small, torch.nn.functional.elu)):
        at = at.cuda()[None]
        one, off = torch.ones_like(at), torch.full_like(at, 100.0)  # elu(1) and sigmoid(100) are 1
        gates = [at, one, one] if name == "sigmoid" else [off, one, at]
        _, got = on_cuda.pointwise(torch.cat(gates, 1), torch.zeros_like(at))
        print(f"{name}: at most {in_ulp(got, exact(at.double())).max():.1f} ulp")
else:
    print("no GPU here")

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

# %% [markdown] syllabus="6.3a"
# ## Reaching the speed of a copy
#
# ### 16 bytes at a time
#
# A thread can load 16 bytes in one instruction: four floats or eight halves that are next to each other and begin at
# an address that is a multiple of 16. This is an aligned vector, and the stage's code calls it a `Pack`. The next
# cells put the stage's forward kernel, `KERNEL` from above, into a module of its own:

# %%
PACKS_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <tuple>

using at::Tensor;

void launch_forward(float* new_h, float* new_cell, const float* z, const float* old_cell, int64_t B, int64_t S,
                    bool aligned, cudaStream_t stream);

std::tuple<Tensor, Tensor> forward(const Tensor& z, const Tensor& old_cell, bool aligned) {  // [B,3S], [B,S]
  Tensor new_h = at::empty_like(old_cell), new_cell = at::empty_like(old_cell);
  launch_forward(new_h.mutable_data_ptr<float>(), new_cell.mutable_data_ptr<float>(), z.const_data_ptr<float>(),
                 old_cell.const_data_ptr<float>(), old_cell.size(0), old_cell.size(1), aligned,
                 c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {new_h, new_cell};
}
"""
LAUNCH = """
void launch_forward(float* new_h, float* new_cell, const float* z, const float* old_cell, int64_t B, int64_t S,
                    bool aligned, cudaStream_t stream) {
  const dim3 grid((S + 4 * kWarp - 1) / (4 * kWarp), (B + kRows - 1) / kRows), block(kWarp, kRows);
  const Matrix<float> cell = {old_cell, S, 1};
  if (aligned)
    forward_kernel<true, float><<<grid, block, 0, stream>>>(new_h, new_cell, z, cell, B, S);
  else
    forward_kernel<false, float><<<grid, block, 0, stream>>>(new_h, new_cell, z, cell, B, S);
}
"""


def packs_of(name, text):
    return inline(name, PACKS_CPP, "#include <cuda_runtime.h>\n" + text + LAUNCH, ["forward"], target="emulator")


# %% [markdown]
# For comparison, we also build a kernel in which the same threads load single numbers. For this, one replacement in
# the source is enough:

# %%
NUMBER_BY_NUMBER = KERNEL.replace("if (kAligned || (left", "if (false && (left")
packs, number_by_number = packs_of("packs", KERNEL), packs_of("number_by_number", NUMBER_BY_NUMBER)
B, S = 8, 512
z, old_cell = torch.randn(B, 3 * S), torch.randn(B, S)
COUNTED = {"stage 5, a unit a thread": stage_counts.count_stage(5, B, S)}
for name, module in {"4 units, 16 bytes at once": packs, "4 units, one by one": number_by_number}.items():
    with collect_counts(module, block=0) as COUNTED[name]:
        module.forward(z, old_cell, True)
print(f"{'global loads of forward_kernel':32s}requests  sectors  sectors a request")
for name, counted in COUNTED.items():
    requests, sectors = (counted.total(what, "forward_kernel", "global load") for what in ("requests", "sectors"))
    print(f"{name:32s}{requests:8d}{sectors:9d}{sectors / requests:12.0f}")

# %% [markdown]
# The bytes are the same, and the first two kernels also move the same sectors. But with vectors of 16 bytes, there
# are a quarter as many load instructions, and a quarter as many requests for the load units. Each thread also has
# four times as many bytes *in flight*, which means requested, but not arrived yet. The last kernel shows the trap.
# The lanes of that kernel read at addresses 16 bytes apart, so every request moves 16 sectors where 4 would be
# enough. This is only fast if a cache keeps the rest of these sectors until the next loads need them.

# %%
from common.figures.access_maps import draw_access_map

display(draw_access_map(COUNTED["4 units, 16 bytes at once"], "z", "forward_kernel"))

# %% [markdown]
# The picture shows the elements of z that the first block accesses. For the first warp of this block, the picture
# also shows the lane that accesses each element. Each lane accesses the three gates of four units.

# %% [markdown] syllabus="6.3b"
# ### Aligned and unaligned addresses
#
# A load of 16 bytes needs an address that is a multiple of 16. With any other address, the load is not slow: it is
# an error. torch's allocator returns addresses that are multiples of 16, but a slice can begin anywhere. The next
# call passes a `z` that begins one float later:


# %%
def moved(tensor, by):
    """The same numbers, starting `by` elements after an aligned address."""
    storage = torch.empty(tensor.numel() + by)
    return storage[by:].view(tensor.shape).copy_(tensor)


def reported(call):
    try:
        call()
        print("no error")
    except RuntimeError as error:
        print(str(error).rstrip())


reported(lambda: packs.forward(moved(z, 1), old_cell, True))

# %% [markdown]
# That call set `kAligned`, which promises that every row begins at an address that is a multiple of 16. Without this
# promise, the kernel checks each row. A row can begin elsewhere even without a slice, if S is not a multiple of
# four:

# %%
exact = reference.pointwise_forward(z, old_cell)
for name, given in {"aligned": (z, old_cell), "z one float further": (moved(z, 1), old_cell)}.items():
    with collect_counts(packs) as counted:
        got = packs.forward(*given, False)
    right = all(torch.allclose(a.double(), b, atol=1e-6) for a, b in zip(got, exact, strict=True))
    print(f"{name:20s}right: {right}, {counted.total('requests', 'forward_kernel', 'global load')} requests")
for S_odd in (512, 510, 509):
    counted = stage_counts.count_stage(6, B=8, S=S_odd)
    accesses, numbers = (
        sum(getattr(row, what) for row in counted.of("forward_kernel", "global load")) for what in ("lanes", "bytes")
    )
    print(f"S={S_odd}: {numbers / accesses:4.1f} bytes an access")

# %% [markdown]
# The results are right for every address, and the kernel is fast where the alignment allows it. The promise is a
# template parameter, so there are two kernels. The one with the promise contains no check. (For S=510, every second
# row begins at a multiple of 8 bytes that is not a multiple of 16. For S=509, three rows out of four do not begin at
# a multiple of 16.)

# %% [markdown] syllabus="6.3c"
# ### The last units of a row
#
# A row of 6 units is one and a half vectors. The next kernel does not check whether a vector is complete:

# %%
careless = packs_of("careless", KERNEL.replace("left >= Pack<scalar_t>::size && ", ""))
z_6, cell_6 = torch.randn(1, 18), torch.randn(1, 6)
reported(lambda: careless.forward(z_6, cell_6, False))

# %% [markdown]
# Lane 1 begins at unit 4 and loads units 4 to 7. For the first gate, the last two of these belong to the next gate,
# and no tool reports an error. For the last gate, they are past the end of z if the row is the last one. The lane
# also stores units 4 to 7 of `new_h` and `new_cell`. In any row but the last, units 6 and 7 are the beginning of the
# next row, which another warp writes: a race. So the stage processes the last units of a row one by one:

# %%
with collect_counts(packs) as counted:
    got = packs.forward(z_6, cell_6, False)
exact = reference.pointwise_forward(z_6, cell_6)
print("right:", all(torch.allclose(a.double(), b, atol=1e-6) for a, b in zip(got, exact, strict=True)))
written = counted.of("forward_kernel", "global store")
print("stores:", *(f"{row.lanes} of {row.bytes // row.lanes} bytes;" for row in written))

# %% [markdown] syllabus="6.3f"
# ### The store that was not 16 bytes wide (!)
#
# The emulator counts the accesses in the source code. Only PTX (nvcc's portable assembly language) or machine code
# shows whether the compiler generates the same accesses. The first version of this kernel stored its vectors by an
# assignment, in the same way as it loads them, and the emulator counted 16 bytes:

# %%
ORDER = re.search(r"__stwb\(.*?\);", KERNEL, re.DOTALL)[0]
ASSIGNED = KERNEL.replace(ORDER, "*reinterpret_cast<Pack<scalar_t>*>(to) = pack;")
print(ORDER)
if find_nvcc():
    for name, text in {"assigned": ASSIGNED, "__stwb": KERNEL}.items():
        ptx = compiled_by_nvcc(text + FLOAT, "-ptx")[0].decode()
        found = re.findall(r"\b(?:ld|st)\.global\S*", ptx)
        print(f"{name:9s}", {access: found.count(access) for access in dict.fromkeys(found)})
else:
    print("no nvcc here: PTX would show the stores")

# %% [markdown]
# The compiler made two copies of the loop. In each copy, eight stores of one float replace two stores of four
# floats. Only one of the copies runs, so a thread executes four times as many stores as necessary (nvcc 13.0). The
# compiler had split each address into a base and an offset. Each address (base + offset) is a multiple of 16, but
# the base alone is not. So the compiler could not rely on the alignment. This is allowed, because an assignment does
# not guarantee one instruction. The kernel computed the right values, and no test failed. `__stwb` of a `uint4` is
# always one instruction.

# %%
if find_nvcc():
    lines = compiled_by_nvcc(ASSIGNED + FLOAT, "-ptx")[0].decode().splitlines()
    print("\n".join([line.strip() for line in lines if "st.global" in line][:4]))
    for name, text in {"assigned": ASSIGNED, "__stwb": KERNEL}.items():
        opcodes = instructions(compiled_by_nvcc(text + FLOAT, "-cubin")[0])
        print(f"{name:9s}{opcodes.count(STORE)} stores in the machine code, of {len(opcodes)} instructions")

# %% [markdown] syllabus="6.3d"
# ### Occupancy
#
# A multiprocessor holds many warps, and while one warp waits, the multiprocessor runs another one. On an H200, a
# multiprocessor has room for 2,048 threads, 65,536 registers (which hold the threads' variables), and 228 KiB of
# shared memory. How many warps fit depends on how much of these each warp uses. *Occupancy* is the number of warps
# that fit, as a share of the largest possible number.

# %%
from common.measure.gpu_trace import occupancy

H200 = 2048, 65536, 228 * 1024
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained", sharey=True)
for threads, shade in ((256, BLUE), (1024, ORANGE)):
    registers = range(16, 129)
    axes[0].step(
        registers, [occupancy(threads, r, 0, *H200) for r in registers], color=shade, label=f"{threads} threads"
    )
    kib = range(0, 101)
    axes[1].step(kib, [occupancy(threads, 32, k * 1024, *H200) for k in kib], color=shade, label=f"{threads} threads")
of_stages = [row for row in kernels_of_h200 if row["registers"] and row["stage"] and row["pass"] == "backward"]
for k, row in enumerate(of_stages):
    style = {"color": colour(row["name"]), "label": row["name"], "markersize": 12 * 0.75**k}
    axes[0].plot(row["registers"], row["occupancy"], "o", **style)
axes[0].set(xlabel="registers of a thread", ylabel="occupancy", title="no shared memory; recorded: backward kernels")
axes[1].set(xlabel="KiB of shared memory of a block", ylim=(0, 1.08), title="32 registers")
for axis in axes:
    axis.grid(axis="y")
    axis.legend(frameon=False)
plt.show()

# %% [markdown]
# The curves have steps, because only whole blocks fit, and because a warp gets its registers in units of 256. With
# 33 registers instead of 32, blocks of 256 threads lose a quarter of the occupancy, and blocks of 1,024 threads lose
# half. With more than 64 registers, not one block of 1,024 threads fits, and a launch fails. How many registers does
# our kernel use? The assembler prints this, without a GPU:

# %%
if find_nvcc():
    for name, text in {"exact": EXACT, "the stage's": KERNEL}.items():
        said = compiled_by_nvcc(text + FLOAT, "-cubin", "-Xptxas", "-v")[1]
        taken = int(re.search(r"Used (\d+) registers", said)[1])
        print(f"{name:12s}{taken} registers, occupancy {occupancy(256, taken, 0, *H200):.0%}")
shared = 8 * 3 * 32 * 4 * 4  # backward_kernel: 8 warps' sums, 3 gates, 32 Packs of 4 floats
print(
    f"{shared // 1024} KiB shared by a block of backward_kernel: "
    f"occupancy {occupancy(256, 0, shared, *H200):.0%} by that alone"
)

# %% [markdown]
# Higher occupancy is not always better. A kernel needs enough bytes in flight: the speed of memory times the
# duration of one load. With 16-byte loads, the same number of warps has four times as many bytes in flight, so half
# of the warps can be enough. Stage 6's backward has half the occupancy of stage 3's, and is as fast. The goal is the
# speed of a copy, not the highest occupancy.

# %% [markdown] syllabus="6.3e"
# ### Reading a report of Nsight Compute (ncu)
#
# Nsight Compute stops a program at a kernel, runs this kernel several times, and reads the GPU's counters. The
# command `ncu -k regex:forward_kernel -c 1 --set full python script.py` writes a report. Its first part, *Speed of
# Light*, shows which percentage of the speed of memory and of the multiprocessors the kernel reaches. The larger
# percentage shows the limit of the kernel. If both are low, the kernel waits, because there are too few warps or too
# few bytes in flight. Then the report shows the counters. The next cell prints the counters that correspond to those
# of the emulator:

# %%
from common.studies import ncu, ncu_tool

for (space, what), metric in ncu_tool.METRICS.items():
    if space == "global load":
        print(f"{what:14s}{metric}")

# %% [markdown]
# These are the recorded values for stage 6's kernels, with the number of sectors per request:

# %%
for one in ncu.read_ncu_record()["launches"]:
    if one["stage"] == 6 and one["dtype"] == "float32" and one["B"] == 64 and one["ncu"]:
        print(f"{one['kernel']}, B{one['B']} S{one['S']}")
        for space in ("global load", "global store"):
            for what in ("requests", "sectors"):
                ours, theirs = (one[who][space][what] for who in ("emulator", "ncu"))
                print(f"  {space:13s}{what:9s}emulator {ours:7,d}   ncu {theirs:7,d}")
            print(f"  {space:13s}sectors a request, by ncu {theirs / one['ncu'][space]['requests']:.0f}")

# %% [markdown]
# Look at the sectors per request first. A warp that reads 32 floats next to each other needs 4 sectors, and with
# vectors of 16 bytes it needs 16 sectors. If each lane reads only one float, 16 sectors are a sign of gaps, the trap
# from above. `sectors * 32` should be the number of bytes that you worked out.
#
# Be careful with the times. ncu fixes the clocks, and empties the caches before each of its runs. You can use its
# durations to compare kernels, but they are not the durations in your program. If ncu prints `ERR_NVGPUCTRPERM`, an
# administrator has to permit access to the counters.

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/sixteen_bytes` and `6/sum_of_a_block`.

# %% [markdown]
# ## Summary
#
# - Work out the bytes and measure a copy. Then you know what you can still gain before you write a line.
# - First leave out unnecessary work: copies, zeros, tensors kept for backward. Then count accesses, and use 16
#   bytes at a time. Then look at the instructions and the stores that the compiler generated.
# - Arithmetic is cheap while bytes are the limit. But if you add many instructions, they soon become the limit.
#
# Next: notebook 06b, about the time outside the kernels.
