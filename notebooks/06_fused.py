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
# Stage 5's operator is right, and torch knows all about it. How fast could it be? That has an answer, before any
# kernel is written: the bytes that have to move, at the speed at which memory moves them. You will work out this
# limit, leave out whatever need not be done, see what is between a kernel and the limit, and then, for small sizes,
# where no kernel is to blame, what is between the call and the kernel.
#
# You need notebooks 03 to 05 and a C++ compiler. Without a GPU the emulator counts, the CPU is timed, and what a GPU
# said is read from what was recorded; nvcc, where it is, compiles without one too. About two hours; the first run
# compiles for two minutes in between.

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
import struct
import subprocess
import tempfile

import matplotlib.pyplot as plt
import torch
from IPython.display import Markdown, display
from torch.profiler import ProfilerActivity, profile

from common import load
from common.build.nvcc import find_nvcc
from common.cell import reference
from common.cell.case import Case, difference, outputs
from common.emulator import collect_counts
from common.figures.plots import BLUE, GREEN, INK, ORANGE, SKY, STYLE, VERMILION, colour
from common.inline import device, inline
from common.measure import stage_counts
from common.measure.clock import interleave
from common.results import records, rows
from common.workbench import build_folder

BUILD = build_folder()
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
# The stage, for the CPU and for the emulator. `cell` is the whole cell; `pointwise` is the part behind the matrix
# products, whose result `z` has three numbers for each unit.

# %%
stage5, stage6 = load(5, "host"), load(6, "host")
emulated = load(6, "emulator")
for stage in (stage6, emulated):
    print(stage.TARGET, difference(case := Case(16, 32, 128), outputs(stage.lltm, case)) or "agrees")
print(stage6.operators.cell.default._schema)

# %% [markdown] syllabus="6.1a"
# ## The limit
#
# A computation takes at least as long as its bytes need to move, and as its operations need to be done:
#
# $$t \ge \max\left(\frac{\mathrm{bytes}}{\mathrm{bytes\ per\ second}},
#   \frac{\mathrm{operations}}{\mathrm{operations\ per\ second}}\right)$$
#
# Which of the two it is depends on the *intensity*, operations per byte. Forward, the pointwise part reads four
# numbers for each unit and writes two. How many operations is it? Let the formula be computed by numbers that count:


# %%
class Counting:
    """A number that counts what is done to it and its like; exp and tanh are one operation each."""

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
# Is that much or little? That depends on the machine: how many operations does it do in the time in which it moves a
# byte? A product of large matrices does little but operations, a copy nothing but moving. On this machine:


# %%
def speeds(device, megabytes, n):
    """Bytes per second of a copy, read and written, and operations per second of a matrix product, float32."""
    x, a = torch.ones(megabytes * 2**18, device=device), torch.ones(n, n, device=device)
    y, b = torch.empty_like(x), torch.empty_like(a)
    calls = {"copy": lambda: y.copy_(x), "product": lambda: torch.mm(a, a, out=b)}
    time = microseconds(calls, device, rounds=5)
    return 2 * 4 * x.numel() / time["copy"] * 1e6, 2 * n**3 / time["product"] * 1e6


MACHINES = {"this CPU, one thread": speeds("cpu", megabytes=12, n=1024)}  # in all 24, as the cell below
if on_gpu:
    MACHINES[torch.cuda.get_device_name()] = speeds("cuda", megabytes=512, n=8192)

# %% [markdown]
# And on the H200 that the workbook's results were recorded on: the copy as recorded, and operations from its clock:
# it has 132 multiprocessors of 128 lanes, each of which can multiply and add in a cycle.

# %%
h200 = records.read_result(root / "docs" / "results" / "h200.json")
kernels_of_h200 = [row for row in h200["kernels"] if row["B"] == 8192]
clock = h200["machine"]["gpu_clocks_mhz"]["sm_max"] * 1e6
MACHINES["H200, recorded"] = kernels_of_h200[0]["copy_gb_per_second"] * 1e9, 132 * 128 * 2 * clock
for name, (moved, computed) in MACHINES.items():
    balance = f"{computed / moved:5.1f} operations a byte"
    print(f"{name:22s}{moved / 1e9:8,.0f} GB/s{computed / 1e9:10,.0f} GFLOP/s: {balance}")

# %% [markdown]
# On each of them the pointwise part is far below: bound by memory. So what counts is bytes, and the way to be faster
# is to move fewer. Measured on the CPU: eager, whose seven operations move 17 numbers for each unit; stage 5, which
# writes the gates, too; and stage 6.

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
# The *roofline* is a picture of the formula: how many operations a second a machine can do, over their intensity.
# Under the slope memory is the limit, under the flat part arithmetic.

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
# The recorded kernels of the H200 lie on the slope or near it, each where its bytes put it, and fewer bytes are
# faster. On the CPU stage 5 lies far below. It is under another roof, and our count is to blame: its exp and tanh are
# calls of the C library, not operations.

# %% [markdown] syllabus="6.1b"
# ### A copy is the ceiling
#
# The speed of memory in a data sheet is reached by nobody. What a copy reaches, others can. So the harness lets a
# copy through before each pass that it times, and gives each kernel's speed as a share of that copy's:

# %%
print(f"{'H200, B8192 S4096':20s}{'us':>8s}{'GB/s':>8s}  of a copy")
for row in kernels_of_h200:
    if speed := rows.gb_per_second(row):
        name = f"{row['name']} {row['pass']}"
        print(f"{name:20s}{row['median']:8.1f}{speed:8,.0f}{rows.share_of_copy(row):8.0%}")

# %% [markdown]
# Stages 3 to 5 move 9 numbers for each unit forward and 10 backward, and are near the ceiling, backward more than
# forward: the way on is to move fewer. And a kernel can be a little above 100 %. A copy writes as much as it reads,
# the cell's forward reads four numbers and writes two, and the two are not equally fast. On the H200, beside the
# copy, a sum of two tensors into a third, which reads two numbers for each that it writes:

# %%
print(*(f"{kernels_of_h200[0][f'{what}_gb_per_second']:,.0f} GB/s ({what})" for what in ("copy", "sum")), sep=", ")
x, y = (torch.ones(2**28 if on_gpu else 2**24, device=device()) for _ in "xy")
memory = microseconds({"read": x.sum, "write": lambda: y.fill_(1.0), "copy": lambda: y.copy_(x)}, device(), rounds=5)
print("here:", {name: f"{x.nbytes * (1 + (name == 'copy')) / time / 1e3:,.1f} GB/s" for name, time in memory.items()})

# %% [markdown]
# (On a CPU these say as much about one thread as about memory.) What a share of a copy is good for: to see what is
# left to gain, and to notice what cannot be. A kernel at 150 % does not touch its bytes, or finds them in a cache;
# the harness refuses to record it.

# %% [markdown] syllabus="6.1c"
# ### When instructions are the roof
#
# Fourteen operations on paper; how many instructions? nvcc says, on any machine. Here is the stage's forward kernel
# and what it needs, without torch:

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
    opmath = "namespace at {\ntemplate <typename T>\nusing opmath_type = T;\n}\n"  # of float it is float
    return f"#include <cmath>\n#include <cstdint>\n{opmath}{joined}"


KERNEL = kernel_text()
EXACT = KERNEL.replace("fast::sigmoid", "sigmoid").replace("fast::elu", "elu")  # as stages 3 to 5 compute them
print(KERNEL[KERNEL.index("namespace fast") :].partition("}  // namespace fast")[0])

# %% [markdown]
# A `.cubin` is an ELF file, as a `.o` is, and since Volta each machine instruction in it has 16 bytes. So its size
# tells how many there are, and the lowest 12 bits of each say which. Left out are the `NOP`s that fill up the end;
# what few threads will come to, such as a slow path of a division, is counted.

# %%
FLOAT = "template __global__ void forward_kernel<true, float>"
FLOAT += "(float*, float*, const float*, Matrix<float>, int64_t, int64_t);\n"
NOP, SPECIAL, STORE = 0x918, 0x308, 0x986  # MUFU, the unit for 2^x, 1/x and tanh; a store to global memory


def compiled_by_nvcc(text, *options):
    """What nvcc makes of a text, as bytes, and what it says."""
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
UNITS = 4  # of a pack, which is what one turn of the kernel's loop computes
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
    print("no nvcc here; 13.0 makes of them", per_unit)

# %% [markdown]
# nvcc 13.0 makes 132 of the exact formula, not 14, and 72 of the stage's. Division that rounds right is a dozen
# instructions and a branch, exp some eight, expm1 more. What does it matter, if memory is the limit? Each
# multiprocessor can begin four instructions of a warp in a cycle, whatever they are:

# %%
units = 8192 * 4096
slots = 132 * 4 * 32 * clock  # instructions of threads per second, on the H200
copying = BYTES * units / MACHINES["H200, recorded"][0] * 1e6
print(f"B8192 S4096, memory: {copying:.0f} us")
for name, count in per_unit.items():
    issuing = count * units / slots * 1e6
    print(f"{name:12s} {issuing:4.0f} us to issue: {issuing / copying:.0%} of it")

# %% [markdown]
# Both go on at the same time, if each warp that waits for memory finds another one to step in. At 38 % that works
# out, at 69 % it does not: with the exact formula this kernel moves no byte more, and takes a sixth longer (at B4096
# S1024; the section *Leaving out each optimisation* has the figures). The roofline's corner is round, and
# *operations* on its axis are instructions.

# %% [markdown] syllabus="6.1d"
# ### What the fast units cost
#
# `__expf(x)` is the unit's 2^x of `x` times log2(e), a product that is rounded to float first. How wrong is that? An
# ulp is the distance to the next float. This is the rounding alone; the unit itself adds up to two ulp more:

# %%
LOG2_E = torch.tensor(1.4426950408889634)


def fast_exp(x):
    """float32: the product is rounded, 2^x itself is not until it is stored."""
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
# The larger the product, the larger its rounding error, which 2^x makes a relative one: eight ulp at -20, where
# sigmoid is 2e-9. Nobody will notice. `exp(z) - 1` near zero loses *all* digits, fast or not: hence the series. On a
# GPU, the stage itself:

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
# ## Work left out
#
# ### No `cat`
#
# `z = [old_h, input] @ weights.T` wants the two side by side, and `cat` copies both for that. Two ways around it: two
# products over the two halves of the weights, the second one added to the first; or a buffer that is `[old_h, input]`
# to begin with, into which whoever makes them writes.

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
# All three give the same z; two products round once more. Which is the fastest? The copy reads and writes (B, S+I)
# numbers, the second product reads and writes z, (B, 3S), once more, and either is a call. On a CPU it depends on the
# size, on the threads, and on the library that multiplies. With 16 threads two won at the middle sizes and lost up
# to a tenth at the small one; on a CPU the stage always makes two, and copies nothing. On the H200 at B4096 they
# lost, by two to four percent; there it makes one. A buffer costs nothing, but it belongs to the caller: for one
# cell, whose arguments are anybody's, it is no way out. (A loop over steps owns it. That is stage 7.)

# %% [markdown] syllabus="6.2b"
# ### No zeros
#
# A loss that uses `new_h` alone sends no gradient to `new_cell`. Autograd makes up a tensor of zeros, unless it is
# told not to:


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
    """How often a call comes by each operation of ATen's."""
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
    print(f", {len(zeros)} operations that zero")

# %% [markdown]
# In C++, told the same, what does not come is an undefined tensor. The stage hands the kernel a null pointer, and the
# kernel takes it for zeros. On the emulator, what the backward kernel reads:

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
# Stage 5's operator wants both gradients, and makes up the second one. (Eager has no need to, but joins the gradients
# of the three pieces of z with a second `cat`.) Stage 6 does neither.

# %% [markdown] syllabus="6.2c"
# ### Nothing kept that is cheap to make again
#
# What does autograd keep of a step? `saved_storages` sees every tensor that a stage saves; those that are an input's
# or an output's memory cost nothing, for the caller holds them anyway.

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
# The 1.25 is X = [old_h, input], and stage 2's last 1 is tanh(new_cell). Stages 2 to 5 keep X, and the gates, which
# are the 3. Stage 6's 3 are z, in place of the gates; so what it saves *here* is X, which is put together again where
# one product of it is faster than two of its halves. What making the gates again saves is to write them: some
# instructions in backward, where the kernel waits for memory, for three numbers less in forward. That is the trade:
# *arithmetic is cheap, as long as bytes are the limit*.

# %% [markdown] syllabus="6.2d"
# ### What each saves
#
# Every kernel's bytes, counted by the emulator, in numbers for each unit:

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
# Forward, six instead of nine: at the speed of a copy a third less time. Backward moves what it did: it reads z in
# place of the gates. What else is left out, for the cell of B4096 I1024 S1024 in float32, as bytes, and as time at
# the recorded copy's speed:

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
# ### The bias's gradient, and why there are no atomics
#
# `d_bias = d_z.sum(0)` reads all of `d_z` right after a kernel has written it. So the kernel adds up what it writes.
# Its blocks run at the same time; the way that comes to mind is `atomicAdd`, by every block, onto one sum. Sums in
# float depend on their order, and blocks end in any. The emulator can shuffle them:

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
# Each block of the stage writes a row of sums of its own, and ATen adds up the rows (up to 64 rows of d_z are one
# block's, and there is nothing to add). Both go in an order that only the sizes and the GPU decide: on one GPU the
# same bits every time. A training run can be repeated, and a test can compare with `==`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/bytes_a_unit`. `make check EX=6/bytes_a_unit` in a terminal hands out the files and checks what
# you wrote; the cell below checks it here. Then `6/leave_it_out` and `6/keep_nothing`.

# %%
from common.exercises import show

show("6/bytes_a_unit")

# %% [markdown] syllabus="6.3a"
# ## Reaching the limit
#
# ### 16 bytes at a time
#
# A thread can load 16 bytes in one instruction. They are four floats, or eight halves, that lie side by side and
# begin at a multiple of 16. The stage calls them a pack. With `KERNEL` from above, its forward kernel in a module of
# its own:

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
# And what would the same threads do without? One replacement: never in one access.

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
# The bytes are the same, and so are the sectors of the first two. But packs ask a quarter as often: a quarter of the
# instructions, and of the requests that the load units have to answer, and each thread has four times as many bytes
# on their way. The last one is the trap. Its lanes are 16 bytes apart, every request moves 16 sectors for the sake
# of 4, and all is well only if a cache keeps the rest until it is asked for.

# %%
from common.figures.access_maps import draw_access_map

display(draw_access_map(COUNTED["4 units, 16 bytes at once"], "z", "forward_kernel"))

# %% [markdown]
# What the first block accesses of z, its first warp by lane: four units to each, and the three gates of the same
# units.

# %% [markdown] syllabus="6.3b"
# ### Aligned, or not
#
# What begins at no multiple of 16 cannot be loaded so. That is no slow load, it is an error. Torch's allocator gives
# out multiples of 16, but a slice begins anywhere. One float further on:


# %%
def moved(tensor, by):
    """The same numbers, so many elements behind an aligned address."""
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
# That was with `kAligned`, the promise that every row begins at a multiple of 16. Without it the kernel looks, row by
# row; and no slice is needed for a row to begin elsewhere, if S is no multiple of four:

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
# Right anywhere, and fast where it can be. The promise is a template parameter, and a second kernel: where it holds,
# the question is not asked. (S=510: every second row begins at a multiple of 8 only; S=509: three of four.)

# %% [markdown] syllabus="6.3c"
# ### The tail
#
# A row of 6 units is a pack and a half. Without the question whether a pack is full:

# %%
careless = packs_of("careless", KERNEL.replace("left >= Pack<scalar_t>::size && ", ""))
z_6, cell_6 = torch.randn(1, 18), torch.randn(1, 6)
reported(lambda: careless.forward(z_6, cell_6, False))

# %% [markdown]
# Lane 1 begins at unit 4 and asks for units 4 to 7. Of the first gate the last two are the next gate's: no error to
# anybody. Of the last gate they lie behind the end of z, if the row is the last one; in any other they are the next
# row's, and there the stores would be a race. The stage takes the last units of a row one by one:

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
# Counts are of the source. Whether the compiler follows it, only PTX or machine code shows. The first version of this
# kernel stored its packs as it loads them, by an assignment, and the emulator counted 16 bytes:

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
# The compiler made two copies of the loop, each with eight stores of one float where there were two of four; one of
# them runs, with four times the stores (nvcc 13.0). It had rewritten each address as a base and an offset. The base
# is no multiple of 16, though every sum is; so it had to assume the worst. It is allowed to: an assignment is a wish.
# The kernel was right, no test failed. `__stwb` of a `uint4` is an instruction of its own, and stays whole.

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
# A multiprocessor holds many warps, and goes on with another one while one waits. How many it holds depends on what
# each takes: of 2,048 threads, 65,536 registers, and 228 KiB of shared memory (an H200's). The share of its warps
# that can be there at once is the occupancy.

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
# Steps, because a block comes as a whole or not at all, and a warp gets registers by the 256. One more than 32 costs
# blocks of 256 threads a quarter, blocks of 1,024 a half; with more than 64 not one of these fits, and a launch is an
# error. And what registers does the kernel take? The assembler says, without a GPU:

# %%
if find_nvcc():
    for name, text in {"exact": EXACT, "the stage's": KERNEL}.items():
        said = compiled_by_nvcc(text + FLOAT, "-cubin", "-Xptxas", "-v")[1]
        taken = int(re.search(r"Used (\d+) registers", said)[1])
        print(f"{name:12s}{taken} registers, occupancy {occupancy(256, taken, 0, *H200):.0%}")
shared = 8 * 3 * 32 * 4 * 4  # of backward_kernel: 8 warps' sums for 3 gates of 32 packs of 4 floats
print(
    f"{shared // 1024} KiB shared by a block of backward_kernel: "
    f"occupancy {occupancy(256, 0, shared, *H200):.0%} by that alone"
)

# %% [markdown]
# More is not always better. What has to be there is *bytes on their way*: the speed of memory times the time that a
# load takes. A kernel of 16-byte loads has four times as many under way with the same number of warps, and half of
# the warps may do: stage 6's backward has half of stage 3's, and is as fast. The peak of the picture is no goal; the
# copy's speed is.

# %% [markdown] syllabus="6.3e"
# ### Reading ncu
#
# Nsight Compute stops a program at a kernel, runs that several times, and reads the GPU's counters. `ncu -k
# regex:forward_kernel -c 1 --set full python script.py` makes a report. Its first part, *Speed of Light*, gives the
# share of memory's speed and of the multiprocessors'. The larger one is the roof that the kernel is under; if both
# are low, it waits: too few warps, or too few bytes under way. Then come the counters. These are what the emulator
# counts:

# %%
from common.studies import ncu, ncu_tool

for (space, what), metric in ncu_tool.METRICS.items():
    if space == "global load":
        print(f"{what:14s}{metric}")

# %% [markdown]
# And recorded for stage 6's kernels, with sectors a request:

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
# Sectors a request is the number to look at first: a warp that reads 32 floats side by side needs 4, and with packs
# of 16 bytes 16. The same 16 for one float a lane are the trap from above: gaps. `sectors * 32` should be the bytes
# that you worked out. A warning about times: ncu fixes the clocks, and empties the caches before each of its runs.
# Its durations compare kernels, and are not those of your program. Where it says `ERR_NVGPUCTRPERM`, an administrator
# has to allow the counters.

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/sixteen_bytes` and `6/sum_of_a_block`.

# %% [markdown] syllabus="6.4a"
# ## Overhead
#
# A kernel for 16 rows of 128 units runs for a few microseconds. The rest of a step is what happens around it: Python,
# autograd, the dispatcher, launches. First autograd. One loop, `2 * x`, and four operators that call it: `bare` has
# no gradient, `registered` gets one from Python, and two have one in C++.

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
# An operator whose gradient is in C++ meets autograd first, and has to go on from there, below it. There are two
# ways. `redispatching` calls the operator again, and the dispatcher, with autograd switched off by a guard, asks who
# is next; `straight` calls the function that computes:

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
# With a gradient in C++, the operator costs what one of torch's own does. `register_autograd` costs the most: at each
# call it looks at the arguments, in Python, and builds an autograd function around yours. A cell has more arguments,
# and so the difference in a whole step is larger. First a single unit, so that there is nothing but calls; then a
# small cell:

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
# ### Whole under compile, or not
#
# Going straight to the function saves a call of the dispatcher. It looks as if nothing were lost:

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
# The compiler runs an autograd kernel in C++ as it is, with fake tensors, which have no data. One that asks the
# dispatcher again is led to the fake kernel. One that does not, asks for a pointer to data, and torch refuses. So the
# rule: *above the kernels nobody calls a function, only operators*. `opcheck` would have found it:

# %%
from torch.library import opcheck

for name in ("redispatching", "straight"):
    found = opcheck(getattr(overhead, name), (torch.ones(3, requires_grad=True),), raise_exception=False)
    print(f"{name:14s}", {test: "failed" for test, result in found.items() if result != "SUCCESS"} or "all pass")

# %% [markdown]
# ### On whose thread
#
# Who calls a backward? On a CPU the thread that asked for it. For tensors on a GPU, torch's engine has a thread for
# each device, and hands over:

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
# Waking a thread and waiting for it is some tens of microseconds, in any stage and in eager too. On an H200 where a
# small step took 199 us, it took 146 when the engine was told to stay on this thread
# (`torch.autograd.set_multithreading_enabled(False)`). No kernel changes that. What a kernel can change is how many
# launches there are, for each costs the CPU a few microseconds. The launches of one step, on the emulator:

# %%
for size in ((4, 8, 32), (300, 8, 32)):
    with collect_counts(emulated) as counted:
        outputs(emulated.lltm, Case(*size))
    own = [launch.kernel.partition("<")[0] for launch in counted.launches for _ in range(launch.launches)]
    products = operations(step(emulated.lltm, Case(*size)), ("aten::addmm", "aten::mm", "aten::cat", "aten::sum"))
    print("B{} I{} S{}:".format(*size), own, "and of ATen's", products)

# %% [markdown]
# A small cell is one launch, with its products in it, and two backward. For a large one the products are ATen's,
# which are far better at large ones. Where to change over was measured.

# %% [markdown] syllabus="6.4c"
# ## The CPU
#
# Stage 5's loop computes one unit after another. A core of today has registers of 8 or 16 floats (4 on most Arm
# cores), and there are several cores. How to use them, in turn: `tanh` of 16,384 numbers. First with ATen's own
# class for a register full of numbers, `at::vec::Vectorized`:

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
# ### Flags (!)
#
# torch compiles such files with flags that an extension does not get by itself, and without them nothing warns:

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
# The instructions alone change nothing: without `CPU_CAPABILITY_AVX2`, `Vectorized` is an array of eight floats, and
# its `tanh` a loop over the C library's. The other macro makes no difference to the machine code. It is the name of a
# namespace: in its absence the class of a fast file and that of a slow one have *the same* name, and a linker that
# finds two functions of one name keeps one of them, whichever it meets first. So give both.
#
# And the cores? `at::parallel_for` cuts a range into pieces:

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
# It is a header with `#pragma omp` in it, and a compiler that was not told of OpenMP skips the pragma. One piece, on
# one core, no warning.

# %% [markdown] syllabus="6.4e"
# ### A plain loop
#
# A compiler turns a loop into vector instructions by itself, if it can: with arithmetic and choices in it, and no
# calls. Stage 6 wrote its gate functions so. It says what it did, if asked:

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
# *Control flow in loop* is a choice, such as `z > 0 ? z : e`. A vector does both sides for all its numbers and keeps
# one of each pair. So `e` is computed for numbers that never asked for it, where it might overflow, and raise a
# floating-point exception that the program would not have raised. `-fno-trapping-math` says that nobody looks. What
# of `std::tanh`? It is a call, but glibc has versions of it for whole registers, which g++ takes under `-ffast-math`:

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
# With its flags, either plain loop is faster here than `at::vec`, and about as exact. Measure on yours: an older
# glibc or another compiler has no vector `tanh`, and says nothing either. And `-ffast-math` buys its speed with a
# promise that there is no NaN and no infinity. The training run that has one asks in vain:

# %%
for name in ("std::tanh", "std::tanh, -ffast-math"):
    LOOPS[name].is_nan.argtypes, LOOPS[name].is_nan.restype = [ctypes.c_float], ctypes.c_bool
    print(f"{name:24s}isnan(nan): {LOOPS[name].is_nan(float('nan'))}")

# %% [markdown]
# So the stage has gate functions of its own, NaN stays NaN in them, and three flags: `-O3`, `-fno-trapping-math`, and
# `-fopenmp` for the threads. It compiles its loops three times, for AVX-512, for AVX2 and for any CPU, and asks at
# run time which one to take:

# %%
text = (CSRC / "lltm_simd.h").read_text()
print(text[text.index("template <typename Work>\nvoid run") : text.index("}  // namespace simd")])

# %% [markdown] tags=["exercise"]
# **Your turn:** `6/products`, `6/autograd_in_cpp` and `6/flags_that_count`.

# %% [markdown] syllabus="6.2d"
# ## Leaving out each optimisation
#
# `make ablation` builds the stage without each of these optimisations in turn, and with each alone, and measures them
# all in one run. What is recorded:

# %%
from common.pages.tables.ablation_table import ablation_table
from common.studies import ablation

display(Markdown(ablation_table(ablation.read_recorded_ablation())))

# %% [markdown]
# How much does a multiple like 0.96 mean? The table says it itself. Forward without `bias` is the stage's program,
# instruction for instruction, and a small cell without `joined` is as well; whatever they show beside 1.00 is chance.
# At the small sizes that is a few percent, in another run it was ten, and so only `small` and `autograd` have shown
# anything there (and `joined`, where it has no other beside it). At the large size it is less than one percent. There
# the cell is a matrix product: all optimisations together are worth six percent forward, four with backward.
#
# The kernel alone tells them apart, and one thing more: *optimisations need each other*. `packs` and `units` by
# themselves win six percent and two, because a kernel that writes all gates waits for memory anyway. Taken from the
# whole, one costs a fifth and the other a sixth. Who tries optimisations one at a time, and keeps those that help,
# stops too early.
#
# And at B64 S128 the pointwise kernel shows a price. With few rows, packs leave a quarter of the threads, and a block
# that sums up for the bias does several rows one after another: backward takes 10 us instead of 5. But it saves the
# launch of a sum, which costs a program about as much.

# %% [markdown] syllabus="6.4f"
# ## The same kernel in Triton
#
# Was it worth it? Triton is Python that is compiled for a GPU. The same forward kernel in it:

# %%
triton_text = (root / "stages" / "stage6_fused" / "lltm_triton.py").read_text()
forward = triton_text[triton_text.index("@triton.jit\ndef forward_kernel") :].partition("\n\n\n")[0]
print(forward)

# %%
of_cuda = KERNEL[KERNEL.index("struct alignas(16) Pack") :]
code = {"CUDA": of_cuda, "Triton": forward}
for name, text in code.items():
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("//", "#pragma"))]
    print(f"{name}: {len(lines)} lines")

# %% [markdown]
# Line by line it is nearly the same: a row, some units, three loads, the gates, two stores. What is not there, Triton
# does: `inside` is the mask of the tail; which thread has which units, loads of 16 bytes and their alignment are the
# compiler's business. (Its `elu` and `tanh`, written above the kernel, are `exp(z) - 1` and `2 * sigmoid(2 * x) - 1`:
# near zero both lose digits that ours keep.) What it does not give: a say in what a single thread does, and a kernel
# for the CPU. Times on the H200, as recorded:

# %%
print(f"{'':16s}{'forward':>10s}{'backward':>10s}   (B8192 S4096, us; B4096 S1024)")
for implementation in dict.fromkeys(row["name"] for row in h200["kernels"]):
    cells = {(row["B"], row["pass"]): row["median"] for row in h200["kernels"] if row["name"] == implementation}
    both = [f"{cells[8192, which]:10.1f}" for which in ("forward", "backward")]
    print(f"{implementation:16s}{''.join(both)}   {cells[4096, 'forward']:8.1f}{cells[4096, 'backward']:8.1f}")

# %% [markdown]
# torch.compile's forward is as fast as any, and nobody wrote it; its backward keeps more than it has to, and is two
# kernels. Triton's backward writes what the stage's writes, and is as fast or nearly. Is it right? Without a GPU
# Triton's interpreter runs it, in a process of its own, for it has to be asked for before Triton is imported:

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
# For a kernel that waits for memory, on GPUs alone, Triton is the better bargain by far. [When not to write
# CUDA](../docs/when-not-to-write-cuda.md) has the table. What the stage has beyond it: the sums for the bias in the
# same kernel, small cells in one launch, no Python in a call, and the CPU.

# %% [markdown]
# ## What to take along
#
# - Work out the bytes, measure a copy, and you know what is left to gain before you write a line.
# - Leave out first: copies, zeros, what is kept. Then count accesses: 16 bytes at a time. Then look at what the
#   compiler made of it: instructions and stores.
# - Arithmetic is cheap while bytes are the limit. The roof of instructions is not far above.
# - At small sizes no kernel decides, but the calls around it. Autograd in C++, and only operators above the kernels.
# - On a CPU: flags. Ask the compiler what it did.
#
# Next: `make diff-5-6` for the stage as a diff, and the exercises, `make next`.
