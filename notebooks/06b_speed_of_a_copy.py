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
# # 06b: a kernel at the speed of a copy
#
# Notebook 06 found the limit of the pointwise part: the bytes that it has to move, at the speed of a copy. This
# notebook is about what prevents a kernel from reaching the limit: too many instructions, loads that are too narrow,
# stores that the compiler splits, and too few bytes in flight. You count the instructions in the machine code, see
# how large the errors of the GPU's fast units are, load and store 16 bytes at a time, and read a report of the
# profiler Nsight Compute. A heading with (!) is about a mistake that is common in code and in tutorials.
#
# You need notebook 06 and a C++ compiler. Without a GPU, the emulator counts memory accesses, and the notebook reads
# the times of a GPU from recorded measurements. If nvcc is installed, the notebook uses it, even without a GPU. The
# notebook takes about 45 minutes. In its first run, it also compiles for a minute.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import re
import struct
import subprocess
import tempfile

import matplotlib.pyplot as plt
import torch
from IPython.display import display

from common import load
from common.build.nvcc import find_nvcc
from common.cell import reference
from common.emulator import collect_counts
from common.figures.plots import BLUE, GREEN, ORANGE, STYLE, colour
from common.inline import device, inline
from common.measure import stage_counts
from common.results import records

plt.rcParams.update(STYLE)
on_gpu = device() == "cuda"
torch.manual_seed(0)
torch.set_num_threads(1)
h200 = records.read_result(root / "docs" / "results" / "h200.json")
kernels_of_h200 = [row for row in h200["kernels"] if row["B"] == 8192]  # recorded at B8192 S4096
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the CPU and the emulator")

# %% [markdown] syllabus="6.1c"
# ## When instructions are the limit
#
# The formula of the pointwise part has fourteen operations. How many instructions are these? nvcc can show this on
# any machine. The next cell extracts the stage's forward kernel and everything that it needs, without torch:

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
slots = 132 * 4 * 32 * h200["machine"]["gpu_clocks_mhz"]["sm_max"] * 1e6  # instructions of threads per second
copying = 4 * (4 + 2) * units / (kernels_of_h200[0]["copy_gb_per_second"] * 1e9) * 1e6
print(f"B8192 S4096, memory: {copying:.0f} us")
for name, count in per_unit.items():
    issuing = count * units / slots * 1e6
    print(f"{name:12s} {issuing:4.0f} us to issue: {issuing / copying:.0%} of the time for memory")

# %% [markdown]
# The GPU starts instructions and moves bytes at the same time, as long as it finds another warp to run while one
# waits for memory. With the stage's formula, the instructions need 38 % of the time that memory needs, and they do
# not slow the kernel down. With the exact formula, they need 69 %, and too often no other warp is ready. Then the
# kernel moves the same bytes, but takes a sixth longer (at B4096 S1024; the section *Leaving out each optimisation*
# of notebook 06c has the figures). So in practice, the corner of the roofline is round, and instructions are what you
# have to count as *operations*.

# %% [markdown] syllabus="6.1d"
# ## The errors of the GPU's fast units
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
from common.gpu_tools import ncu_tool
from common.studies.ncu import recorder as ncu

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
# **Your turn:** `6/sixteen_bytes`. In a terminal, `make check EX=6/sixteen_bytes` gives you the files and checks what
# you wrote. The next cell runs the check here. Then do `6/sum_of_a_block`.

# %%
from common.exercises import show

show("6/sixteen_bytes")

# %% [markdown]
# ## Summary
#
# - Count what nvcc generates, not what the source says: instructions, and the widths of loads and stores.
# - Arithmetic is cheap while bytes are the limit. But if you add many instructions, they soon become the limit.
# - Load and store 16 bytes at a time where addresses are aligned, and the last units of a row one by one.
# - What counts is the number of bytes in flight. Occupancy is one way to get them, and wide loads are another.
#
# Next: notebook 06c, about the time outside the kernels.
