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
# # 03c: threads that work together
#
# In the kernels of notebooks 03 and 03b, no thread needs a result of another thread. A sum does: in this notebook
# the threads of a warp, of a block and of the whole grid combine their results. Such kernels fail in ways that
# ordinary programs do not, so the second half is about tools that find mistakes, about four mistakes that a
# comparison of values can miss, and about the memory accesses of a warp.
#
# You need notebook 03b and a C++ compiler, but no GPU. All kernels run on the emulator, which checks every access.
# The notebook takes about an hour and a quarter.

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

import torch

from common.inline import device, inline

on_gpu = device() == "cuda"
torch.manual_seed(0)


def reported(source, call, *arguments):
    """Calls a kernel on the emulator; prints the report, if there is one, and the lines of the .cu that it names."""
    try:
        result = call(*arguments)
        print("no error")
        return result
    except RuntimeError as error:
        print(str(error).rstrip())
        lines = source.lstrip("\n").splitlines()
        for number in sorted({int(number) for number in re.findall(r"(?<!launched )in \w+\.cu:(\d+)", str(error))}):
            print(f"{number:4d} | {lines[number - 1]}")


# %% [markdown]
# ## Threads that work together
#
# The gradient of the bias is a sum over the batch, `d_bias = d_z.sum(dim=0)`: `d_z` has shape (B, 3S), and `d_bias`
# has one number for each of the 3S columns. Stage 3 leaves this sum to ATen. Stage 6 computes it in its own kernel.
# In this section you write this sum in four ways. They differ in how many threads add up a column: one thread, the
# 32 threads of a warp, 8 threads of a block, or 128 threads in 16 blocks.
#
# The host code is the same for all four kernels: `run` writes into a given tensor, and `make` into a new one.

# %%
LAB_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch(float* out, const float* x, int64_t B, int64_t S, cudaStream_t stream);  // in the .cu

void run(const Tensor& out, const Tensor& x) {  // x: [B,S]
  launch(out.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.size(0), x.size(1),
         c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

Tensor make(const Tensor& x, int64_t rows, int64_t columns) {
  Tensor out = at::empty({rows, columns}, x.options());
  run(out, x);
  return out;
}
"""


def lab(name, cuda_source):
    return inline(name, LAB_CPP, cuda_source, ["run", "make"], target="emulator")


# %% [markdown]
# The first version needs nothing new. Each column has a thread, which loops over the rows. In the kernels, C is the
# number of columns, 3S. Here B = 200 and S = 70, so the number of columns, 210, is not a multiple of the block size.

# %%
COLUMN_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void column_kernel(float* d_bias, const float* d_z, int64_t B, int64_t C) {  // [C], [B,C]
  const int64_t column = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (column >= C) return;
  float sum = 0;
  for (int64_t row = 0; row < B; ++row) sum += d_z[row * C + column];
  d_bias[column] = sum;
}

void launch(float* d_bias, const float* d_z, int64_t B, int64_t C, cudaStream_t stream) {
  column_kernel<<<(C + 127) / 128, 128, 0, stream>>>(d_bias, d_z, B, C);
}
"""


def compare(d_bias, d_z):
    """Prints how far a result is from torch's, which adds in another order."""
    print(f"largest difference to torch: {(d_bias[0] - d_z.sum(dim=0)).abs().max().item():.1e}")


d_z = torch.randn(200, 3 * 70)
by_column = lab("by_column", COLUMN_CU)
compare(by_column.make(d_z, 1, 210), d_z)

# %% [markdown]
# The result is right, and neighbouring threads read neighbouring numbers. But a cell with S = 128 has 384 columns,
# so this launch has only 384 threads, although an H200 can run 270,336 threads at a time. Each thread adds up B
# numbers, one after another. To use more threads, several of them have to share a column and then combine their
# sums. How threads can combine their sums depends on whether they are in the same warp, in the same block, or only
# in the same grid:

# %%
from common.figures.diagrams import thread_cooperation

thread_cooperation.draw_levels()

# %% [markdown] syllabus="3.10a"
# ### In a warp: shuffles
#
# A warp is 32 consecutive threads of a block. These threads are the *lanes* of the warp. An instruction is issued
# for the whole warp. So a lane can read another lane's copy of a variable directly from that lane's register.
# `__shfl_down_sync(mask, value, apart)` is a *shuffle*. In lane k it returns the `value` of lane k + `apart`. The
# mask has a bit for each lane that takes part. Usually all lanes run together, but in different branches of an `if`
# some lanes may be behind others. `_sync` means that the function first waits for all lanes of the mask.
#
# Five shuffles add up 32 lanes. The picture shows a warp of only 8 lanes, and three shuffles. The values of the grey
# lanes are no longer needed.

# %%
thread_cooperation.draw_shuffle_sum()

# %% [markdown]
# In this kernel each column has a warp. Lane k adds up the rows k, k + 32, k + 64 and so on. After the shuffles,
# lane 0 writes the result.

# %%
WARP_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void warp_kernel(float* d_bias, const float* d_z, int64_t B, int64_t C) {  // [C], [B,C]
  const int64_t column = blockIdx.x;
  const int lane = threadIdx.x;
  float sum = 0;
  for (int64_t row = lane; row < B; row += 32) sum += d_z[row * C + column];
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffff, sum, apart);
  if (lane == 0) d_bias[column] = sum;
}

void launch(float* d_bias, const float* d_z, int64_t B, int64_t C, cudaStream_t stream) {
  warp_kernel<<<C, 32, 0, stream>>>(d_bias, d_z, B, C);
}
"""
by_warp = lab("by_warp", WARP_CU)
compare(by_warp.make(d_z, 1, 210), d_z)

# %% [markdown]
# Now we add a guard that looks as harmless as those in the earlier kernels: lanes without a row return at once. With
# 20 rows, these are lanes 20 to 31.

# %%
returning = WARP_CU.replace("  float sum = 0;\n", "  if (lane >= B) return;\n  float sum = 0;\n")
reported(returning, lab("by_warp", returning).make, d_z[:20], 1, 210)

# %% [markdown]
# Lane 4 reads the value of lane 20, which has returned, so the result of this shuffle is undefined. All lanes of the
# mask have to reach the shuffle. In the right kernel a lane without a row skips the loop and takes part with a sum
# of 0:

# %%
compare(by_warp.make(d_z[:20], 1, 210), d_z[:20])

# %% [markdown] syllabus="3.10b"
# ### In a block: shared memory
#
# In the kernel with a warp for each column, two neighbouring lanes read numbers that are a whole row apart. A GPU
# reads memory in pieces of 32 bytes, called *sectors*. So one read by the warp needs 32 sectors. Four sectors would
# be enough if the numbers were next to each other. It is better if a warp reads 32 neighbouring columns of a row,
# and the *rows* are divided among the warps of a block. But then the partial sums of a column are in different
# warps, which cannot read each other's registers.
#
# The warps of a block can use *shared memory*: a small, fast memory that belongs to the block and that no other
# block can access. The keyword `__shared__` places an array in shared memory. The array is uninitialised when the
# block begins, and does not exist any more when the block ends.
#
# In the picture a block has 4 warps of 8 lanes. In the kernel a block has 8 warps of 32 lanes. The block is
# two-dimensional: `threadIdx.x` is the lane, and `threadIdx.y` is the warp.

# %%
thread_cooperation.draw_block_sum()

# %%
BLOCK_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void block_kernel(float* d_bias, const float* d_z, int64_t B, int64_t C) {  // [C], [B,C]
  __shared__ float partial[8][32];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int64_t column = blockIdx.x * int64_t(32) + lane;
  float sum = 0;
  if (column < C) {
    for (int64_t row = warp; row < B; row += 8) sum += d_z[row * C + column];
  }
  partial[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= C) return;
  float total = 0;
  for (int k = 0; k < 8; ++k) total += partial[k][lane];
  d_bias[column] = total;
}

void launch(float* d_bias, const float* d_z, int64_t B, int64_t C, cudaStream_t stream) {
  block_kernel<<<(C + 31) / 32, dim3(32, 8), 0, stream>>>(d_bias, d_z, B, C);
}
"""
by_block = lab("by_block", BLOCK_CU)
compare(by_block.make(d_z, 1, 210), d_z)

# %% [markdown]
# If you forget `__shared__`, each thread has its own array. In this version the array is also initialised with
# zeros, so that the wrong result is the same in every run:

# %%
private = BLOCK_CU.replace("__shared__ float partial[8][32];", "float partial[8][32] = {};")
d_bias = reported(private, lab("by_block", private).make, d_z, 1, 210)
compare(d_bias, d_z)
print("the sum of every eighth row:", torch.allclose(d_bias[0], d_z[::8].sum(dim=0), atol=1e-4))

# %% [markdown]
# The emulator has no error to report, because no access is wrong. The arrays of warp 0 contain only what warp 0
# itself wrote, the sums of rows 0, 8, 16 and so on. Only the comparison with torch finds the mistake.

# %% [markdown] syllabus="3.10c"
# ### The barrier
#
# `__syncthreads()` is a *barrier*: a thread waits there until all other threads of its block have arrived, too (or
# have exited). The kernel needs a barrier between the writes to `partial` and the reads of what other warps wrote.
# Without a barrier, a warp may read an element of `partial` before another warp has written it:

# %%
thread_cooperation.draw_barrier()

# %% [markdown]
# This is the kernel without its barrier:

# %%
unordered = BLOCK_CU.replace("  __syncthreads();\n", "")
without_barrier = lab("by_block", unordered)
reported(unordered, without_barrier.make, d_z, 1, 210)

# %% [markdown]
# If two threads access the same element, at least one of them writes, and nothing orders the two accesses, this is a
# *race*. The report names the element, both threads and both lines, and says that a barrier is missing.
#
# With its checks off, the emulator returns a result, as a GPU does. The result depends on the order of the threads,
# and each value of `EMULATOR_SEED` shuffles the threads into another order. The emulator fills shared memory with
# NaN at the start, so a total is NaN if it was computed from a partial sum that was read too early. On a GPU, such a
# total would be an ordinary number.

# %%
os.environ["EMULATOR_CHECKS"] = "none"
for seed in ("1", "2", "3"):
    os.environ["EMULATOR_SEED"] = seed
    d_bias = without_barrier.make(d_z, 1, 210)
    print(f"seed {seed}: {int(d_bias.isnan().sum())} of 210 sums are NaN")
del os.environ["EMULATOR_SEED"]
os.environ["EMULATOR_CHECKS"] = "all"

# %% [markdown]
# *All* threads of the block should reach the barrier. That is why the guard `column < C` is around the loop, and is
# not a `return` at the top of the kernel: in the last block, the threads without a column would return before they
# reach the barrier. Current GPUs do not wait for threads that have exited, so such a kernel can still be right. But
# a barrier that all threads reach is right in every case.

# %% [markdown] syllabus="3.10d"
# ### Between blocks: races and atomics
#
# 384 columns need only 12 of these blocks. But an H200 consists of 132 *multiprocessors*, units that can each run
# several blocks at a time, so most of the GPU has nothing to do. To get more blocks, we add a y dimension to the
# grid. The rows are then divided among the blocks, too, and several blocks have partial sums of the same column. In
# an ordinary launch, different blocks have no common shared memory and no common barrier. They run in any order, and
# some may have ended before others begin. But all blocks can access *global memory*, the large memory of the GPU
# that contains all tensors. `d_bias` is there, too.
#
# `d_bias[column] += total` reads, adds and writes. If two blocks do this at the same time, both may read the same
# number, and then one of the two updates is lost. `atomicAdd` reads, adds and writes in one operation, which no
# other thread can interrupt:

# %%
thread_cooperation.draw_lost_update()

# %%
GRID_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void grid_kernel(float* d_bias, const float* d_z, int64_t B, int64_t C) {  // [C], [B,C]
  __shared__ float partial[8][32];
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int64_t column = blockIdx.x * int64_t(32) + lane;
  float sum = 0;
  if (column < C) {
    for (int64_t row = blockIdx.y * 8 + warp; row < B; row += gridDim.y * 8) sum += d_z[row * C + column];
  }
  partial[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= C) return;
  float total = 0;
  for (int k = 0; k < 8; ++k) total += partial[k][lane];
  atomicAdd(&d_bias[column], total);
}

void launch(float* d_bias, const float* d_z, int64_t B, int64_t C, cudaStream_t stream) {
  grid_kernel<<<dim3((C + 31) / 32, 16), dim3(32, 8), 0, stream>>>(d_bias, d_z, B, C);
}
"""
by_grid = lab("by_grid", GRID_CU)
d_bias = torch.zeros(1, 210)  # what the blocks add to
by_grid.run(d_bias, d_z)
compare(d_bias, d_z)

# %% [markdown]
# With `+=` instead of `atomicAdd`, the emulator reports a race and names the two blocks:

# %%
lossy = GRID_CU.replace("atomicAdd(&d_bias[column], total)", "d_bias[column] += total")
reported(lossy, lab("by_grid", lossy).run, torch.zeros(1, 210), d_z)

# %% [markdown]
# One drawback remains. The blocks add in any order, and because of rounding, the last digits of a sum of floats
# depend on the order. So two runs may differ. Notebook 06 shows such differences, and how stage 6 avoids atomics:
# each block writes its sums into its own row of a tensor, and a second step adds up the rows.

# %% [markdown]
# ### The four versions compared
#
# The cell compares the versions for B = 256 and S = 128. It prints the number of threads, how many rows each thread
# adds up, and the number of sectors (pieces of 32 bytes) that the kernel accesses. The emulator counts the sectors.
# The section "The memory accesses of a warp" below explains more about sectors.

# %%
from common.emulator import collect_counts

d_z = torch.randn(256, 384)
print(f"{'':12s}{'threads':>8s}{'rows of each':>14s}{'sectors':>9s}")
for name, version in (("by column", by_column), ("by warp", by_warp), ("by block", by_block), ("by grid", by_grid)):
    with collect_counts(version) as counted:
        version.run(torch.zeros(1, 384), d_z)
    (launch,) = counted.launches
    threads = torch.tensor([*launch.grid, *launch.block]).prod().item()
    print(f"{name:12s}{threads:8,d}{256 * 384 // threads:14d}{counted.total('sectors'):9,d}")

# %% [markdown]
# In the version "by warp", each number that a warp reads is in a different sector, so the kernel needs eight times
# as many sectors as necessary. The versions "by block" and "by grid" have many threads, and each warp reads
# neighbouring numbers, as in the first version. The backward kernel of stage 6 has blocks of the same shape: 8
# warps, each with its own row.

# %% [markdown] syllabus="3.8a 3.8b"
# ## Finding errors
#
# Most mistakes in kernels give no error, or an error far from their cause. Two tools check every access while a
# kernel runs. With a GPU, use `compute-sanitizer` from the CUDA Toolkit. It consists of four tools: `memcheck` finds
# invalid accesses, `racecheck` finds races in shared memory, `initcheck` finds reads of uninitialised memory, and
# `synccheck` finds invalid uses of barriers. Without a GPU, use the emulator. All of its checks are on by default.
#
# To compare the two, the workbook has small wrong programs in `common/emulator/programs/mistakes`. They are ordinary
# programs with a `main`. In the program below, each of four blocks adds up 64 numbers, which is right. Then each
# block adds its sum to the total without an atomic, which is wrong.

# %%
PROGRAMS = root / "common" / "emulator" / "programs" / "mistakes"
name = "wrong_total_without_atomics"
program = PROGRAMS / "races_grid.cu"
print(re.search(rf"__global__ void sum\(.*?{name}.*?\n", program.read_text(), re.DOTALL)[0])

# %% [markdown]
# `make emulate FILE=...` compiles such a program with g++ and runs it. This cell runs the command that `make
# emulate` runs:

# %%
command = [sys.executable, "-m", "common", "emulate", str(program.relative_to(root)), name]
done = subprocess.run(command, cwd=root, capture_output=True, text=True)
print(done.stderr)
print("exit status", done.returncode)

# %% [markdown]
# If two blocks read the total before either of them writes it back, one of the two sums is lost. This happens only
# in some runs. What does `compute-sanitizer` report? On a machine with a GPU, this cell runs it. The cell compiles
# with nvcc's flag `-lineinfo`, so the reports name source lines.

# %%
from common.gpu_tools import sanitizer
from common.studies.compare_tools import recorder as tool_comparison

if on_gpu and (tool := sanitizer.compute_sanitizer()):
    compiled = str(sanitizer.compile_program(program))
    for option in tool_comparison.SANITIZER_OPTIONS:
        output, _ = tool_comparison.run_command([tool, "--tool", option, compiled, name])
        print(f"--- {option}", output, sep="\n")
else:
    print("no GPU with compute-sanitizer here")

# %% [markdown]
# The next cell shows what both tools reported on a machine with a GPU, for four of the programs. "Right line" means
# that the report named the line of the mistake.

# %%
from common.studies.compare_tools import STUDY

recorded = (STUDY.read_record() or {"rows": []})["rows"]
for case in tool_comparison.SHOWN_CASES:
    print(case)
    for row in (row for row in recorded if row["case"] == case):
        print(f"    {row['tool']:9s}  {row['outcome']:10s}  {row['message'][:80]}")
if not recorded:
    print("not recorded yet: make compare-tools, on a machine with a GPU")

# %% [markdown]
# These are the full reports of both tools for the first of the four programs, whose guard is wrong by one:

# %%
for row in recorded:
    if (row["case"], row["tool"]) == (tool_comparison.SHOWN_CASES[0], "memcheck"):
        print(row["said"])
source = PROGRAMS / "memory_global.cu"
command = [sys.executable, "-m", "common", "emulate", str(source.relative_to(root)), tool_comparison.SHOWN_CASES[0]]
print(subprocess.run(command, cwd=root, capture_output=True, text=True).stderr)

# %% [markdown]
# `racecheck` checks shared memory only, so it does not find the race on the total, which is in global memory. And
# `synccheck` does not report a barrier that some threads never reach. On the other hand, `compute-sanitizer` checks
# the machine code that really runs, including that of libraries. [docs/emulator.md](../docs/emulator.md) has the
# whole comparison, and says what the emulator cannot show. If you have a GPU, use both tools.

# %% [markdown]
# ### `printf` and `assert` in a kernel
#
# `printf` and `assert` also work in kernels. It is best to call `printf` from one thread only. On a GPU, the text
# appears the next time the host waits for the GPU. If an assertion fails, CUDA reports the error "device-side assert
# triggered". After this error, the process can no longer use the GPU.

# %%
LOOK_CU = """
#include <cassert>
#include <cstdio>
__global__ void look_kernel(int S) {
  const int col = threadIdx.x;
  if (col == 3) printf("thread %d of %d, S = %d\\n", col, blockDim.x, S);
  assert(col < S);
}
int main() { look_kernel<<<1, 8>>>(5); return cudaDeviceSynchronize(); }
"""
source = root / "build" / "notebooks" / "look.cu"
_ = source.write_text(LOOK_CU.lstrip())
command = [sys.executable, "-m", "common", "emulate", str(source.relative_to(root))]
done = subprocess.run(command, cwd=root, capture_output=True, text=True)
print(done.stdout, done.stderr, sep="\n")

# %% [markdown]
# nvcc's flag `-DNDEBUG` removes every `assert`, but not torch's `CUDA_KERNEL_ASSERT` (from `c10/macros/Macros.h`).
# Under its CUDA errors, torch writes "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions". This line
# does not apply to your code. It applies only to kernels that take two extra arguments and call
# `CUDA_KERNEL_ASSERT2`, in a torch that was itself built with this flag. The `assert` in your kernel works without
# this flag.

# %% [markdown] syllabus="3.8c"
# ### A kernel that does not end
#
# A thread that waits in a loop for another thread may wait forever. On a GPU, there is no error: the next call that
# waits for the GPU does not return, and Ctrl-C does not end it. Here, thread 0 waits for a flag that no thread sets.
# The emulator stops such a kernel after `EMULATOR_TIMEOUT` seconds, and names the line:

# %%
WAITING_CU = """
#include <cuda_runtime.h>
__global__ void wait_kernel(volatile int* flag) {
  while (threadIdx.x == 0 && *flag == 0) {
  }
}
int main() {
  int* flag;
  cudaMalloc(&flag, sizeof(int));
  cudaMemset(flag, 0, sizeof(int));
  wait_kernel<<<1, 32>>>(flag);
  return cudaDeviceSynchronize();
}
"""
source = root / "build" / "notebooks" / "waiting.cu"
_ = source.write_text(WAITING_CU.lstrip())
command = [sys.executable, "-m", "common", "emulate", str(source.relative_to(root))]
done = subprocess.run(command, cwd=root, env={**os.environ, "EMULATOR_TIMEOUT": "3"}, capture_output=True, text=True)
print(done.stderr)

# %% [markdown]
# On a GPU, cuda-gdb, the CUDA Toolkit's debugger, finds the line of a kernel that was compiled with `-lineinfo`. (We
# have not run these commands: this section was written without a GPU.)
#
# - `cuda-gdb -p PID` attaches to the process. `info cuda kernels` lists the kernels that run, `info cuda threads`
#   the lines at which their threads are, and `cuda block 0 thread 0` followed by `bt` shows one thread.
# - On a cluster, start the program with `CUDA_ENABLE_USER_TRIGGERED_COREDUMP=1`, `CUDA_COREDUMP_PIPE=/tmp/pipe_%p`
#   and `CUDA_COREDUMP_FILE=/tmp/core_%p`, where `%p` becomes the process's number. When it hangs, write to the pipe:
#   `echo 1 > /tmp/pipe_PID`. The driver writes the state of the GPU to the file. Open it with `cuda-gdb` and the
#   command `target cudacore /tmp/core_PID`.
# - `CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1` writes such a file when a kernel fails, for example with an illegal access.

# %% [markdown]
# ## Four mistakes that a comparison of values can miss
#
# `lab` builds the kernels, as in "Threads that work together".

# %% [markdown]
# ### A missing barrier
#
# Here one block adds up a row in shared memory. In each iteration of the loop, the first half of the threads adds
# the second half's numbers to its own. There is a barrier between the writes before the loop and the first reads,
# but there is no barrier between one iteration and the next.

# %%
SUM_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void sum_kernel(float* total, const float* x, int S) {  // [1], [S]; S is a power of two
  __shared__ float partial[256];
  const int t = threadIdx.x;
  partial[t] = x[t];
  __syncthreads();
  for (int half = S / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) *total = partial[0];
}

void launch(float* out, const float* x, int64_t, int64_t S, cudaStream_t stream) {
  sum_kernel<<<1, S, 0, stream>>>(out, x, S);
}
"""
x = torch.arange(64.0).view(1, 64)
reported(SUM_CU, lab("sum", SUM_CU).make, x, 1, 1)

# %% [markdown]
# With a barrier after the `if`, each iteration begins only when all threads have finished the one before:

# %%
fixed = SUM_CU.replace("[t + half];\n", "[t + half];\n    __syncthreads();\n")
reported(fixed, lab("sum", fixed).make, x, 1, 1)

# %% [markdown]
# Why is the barrier not inside the `if`? There, at least half of the threads do not reach it. These threads leave
# the loop and exit soon, and a barrier does not wait for threads that have exited, so the sum is right here. But
# CUDA does not define what a barrier does if only some threads of a block reach it. The emulator prints a warning
# and does not fail.

# %%
inside = SUM_CU.replace("partial[t] += partial[t + half];", "{ partial[t] += partial[t + half]; __syncthreads(); }")
reported(inside, lab("sum", inside).make, x, 1, 1)

# %% [markdown]
# ### Rows that overlap
#
# There are three gates for each unit, so a row has 3S elements. This kernel uses S as the row length:

# %%
SPLIT_CU = """
#include <cuda_runtime.h>
#include <cstdint>

// One thread per (row, unit), three writes each.
__global__ void split_kernel(float* gates, const float* x, int64_t S) {  // [B,3S], [B,S]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  for (int gate = 0; gate < 3; ++gate) gates[row * S + gate * S + unit] = x[row * S + unit];
}

void launch(float* out, const float* x, int64_t B, int64_t S, cudaStream_t stream) {
  split_kernel<<<dim3((S + 63) / 64, B), 64, 0, stream>>>(out, x, S);
}
"""
x = torch.randn(3, 40)
reported(SPLIT_CU, lab("split", SPLIT_CU).make, x, 3, 120)

# %% [markdown]
# Every write is inside the tensor. The emulator finds the mistake because two blocks write to one element. (A wrong
# stride in a *read* does not cause a race: the thread reads a valid value from the wrong element, and only a
# comparison of values finds the mistake.)

# %%
fixed = SPLIT_CU.replace("row * S + gate", "row * 3 * S + gate")
torch.equal(reported(fixed, lab("split", fixed).make, x, 3, 120), x.repeat(1, 3))

# %% [markdown]
# ### A sum that starts from uninitialised memory
#
# This is the gradient of the bias once more, in a few lines: each number has a thread, and all threads of a column
# add to one element with `atomicAdd`. The additions are right. But what is in this element before the first
# addition?

# %%
D_BIAS_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void d_bias_kernel(float* d_bias, const float* d_z, int64_t S) {  // [S], [B,S]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit < S) atomicAdd(&d_bias[unit], d_z[row * S + unit]);
}

void launch(float* out, const float* x, int64_t B, int64_t S, cudaStream_t stream) {
  d_bias_kernel<<<dim3((S + 63) / 64, B), 64, 0, stream>>>(out, x, S);
}
"""
d_bias = lab("d_bias", D_BIAS_CU)
reported(D_BIAS_CU, d_bias.make, x, 1, 40)

# %% [markdown]
# `make` allocates its memory with `at::empty`, which does not initialise it. On a GPU, such memory often contains
# zeros from an earlier use, and then every test passes in spite of the mistake. The kernel itself is right, so we
# change the call, and pass a tensor of zeros:

# %%
zeros = torch.zeros(1, 40)
reported(D_BIAS_CU, d_bias.run, zeros, x)
print("agrees:", torch.allclose(zeros, x.sum(dim=0)))

# %% [markdown]
# ### Elements that no thread wrote
#
# The number of blocks is rounded *down* here, so the last 56 of 120 elements get no thread.

# %%
SQUARE_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void square_kernel(float* out, const float* x, int64_t count) {  // both [count]
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = x[k] * x[k];
}

void launch(float* out, const float* x, int64_t B, int64_t S, cudaStream_t stream) {
  square_kernel<<<B * S / 64, 64, 0, stream>>>(out, x, B * S);
}
"""
square = lab("square", SQUARE_CU)
out = x * x  # the results that a correct kernel wrote here earlier
square.run(out, x)
print("agrees:", torch.equal(out, x * x))

# %% [markdown]
# The values agree, but the launch is wrong: the last 56 values were in `out` before this kernel ran. In this
# example, the notebook put them there. In a real program, an allocator often returns the same memory again, so
# uninitialised memory may contain the right results of an earlier call. On the emulator, memory from `at::empty` in
# C++ is filled with NaN, and NaN is not equal to any number. If a kernel reads an element of this memory that was
# never written, the emulator reports an error. To show this, a second call gets the last 64 elements of the
# incomplete result as its input. 56 of these elements were never written:

# %%
made = square.make(x, 3, 40)
print("NaN:", int(made.isnan().sum()), "of", made.numel())
reported(SQUARE_CU, square.run, out, made.view(1, 120)[:, 56:])

# %%
fixed = SQUARE_CU.replace("B * S / 64", "(B * S + 63) / 64")
torch.equal(reported(fixed, lab("square", fixed).make, x, 3, 40), x * x)

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/missing_barrier` and `3/unwritten`. The cell below checks the first of them.

# %%
from common.exercises import show

show("3/missing_barrier")

# %% [markdown]
# ## The memory accesses of a warp
#
# A GPU accesses memory for a whole warp at once, not for single threads. A read by the 32 threads of a warp is one
# request, and a request transfers whole sectors of 32 bytes. If neighbouring threads read neighbouring elements, the
# 32 floats are in 4 sectors. If the elements are far apart, they are in 32 sectors, and most of the transferred
# bytes are not used. Pointwise kernels do little besides accessing memory, so the number of sectors determines their
# speed. You can count sectors without a GPU, because the emulator records every access:

# %%
from common.figures import access_maps, source_heatmap
from common.measure import stage_counts

counted = stage_counts.count_stage(3, B=64, S=512, block=0)
source_heatmap.draw_heatmap(counted, "forward_kernel")

# %% [markdown]
# Each request needs four sectors, the smallest number for 32 floats, and all 32 lanes are active. The number of
# sectors cannot be smaller. Which thread accesses which elements of `gates`? In the next picture, each colour is a
# thread of the first warp. The accesses of the other warps of the block are grey:

# %%
small = stage_counts.count_stage(3, B=4, S=40, block=0)
access_maps.draw_access_map(small, "gates", "forward_kernel")

# %% [markdown]
# The first block computes row 0. Its threads write the three gates one after another, and neighbouring threads
# always write neighbouring elements. For comparison, we now make a second version, "by column", in which
# neighbouring threads have neighbouring *rows*. The results are the same. The cell makes this version with four
# replacements in the text of stage 3's `.cu`:

# %%
csrc = root / "stages" / "stage3_cuda_pointers" / "csrc"
kernels = (csrc / "lltm_kernel.cu").read_text()
BY_ROW_CU = kernels.replace('#include "lltm_math.h"', (csrc / "lltm_math.h").read_text())
BY_COLUMN_CU = BY_ROW_CU
for before, after in (
    ("const int64_t unit = blockIdx.x", "const int64_t row = blockIdx.x"),
    ("if (unit >= state_size) return;", "if (row >= batch_size) return;"),
    (
        "for (int64_t row = blockIdx.y; row < batch_size; row += gridDim.y)",
        "for (int64_t unit = blockIdx.y; unit < state_size; unit += gridDim.y)",
    ),
    ("<<<grid_for(batch_size, state_size)", "<<<grid_for(state_size, batch_size)"),
):
    BY_COLUMN_CU = BY_COLUMN_CU.replace(before, after, 1)

# %%
FORWARD_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

template <typename scalar_t>
cudaError_t launch_forward(scalar_t* new_h, scalar_t* new_cell, scalar_t* gates, const scalar_t* z,
                           const scalar_t* old_cell, int64_t batch_size, int64_t state_size, cudaStream_t stream);

void forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
             const Tensor& old_cell) {
  C10_CUDA_CHECK(launch_forward(new_h.mutable_data_ptr<float>(), new_cell.mutable_data_ptr<float>(),
                                gates.mutable_data_ptr<float>(), z.const_data_ptr<float>(),
                                old_cell.const_data_ptr<float>(), z.size(0), z.size(1) / 3,
                                c10::cuda::getCurrentCUDAStream()));
}
"""
B, S = 64, 64
z, old_cell = torch.randn(B, 3 * S), torch.randn(B, S)
versions, found = {}, {}
for name, source in (("by row", BY_ROW_CU), ("by column", BY_COLUMN_CU)):
    module = inline(name.replace(" ", "_"), FORWARD_CPP, source, ["forward"], target="emulator")
    found[name] = torch.empty(B, S), torch.empty(B, S), torch.empty(B, 3 * S)
    with collect_counts(module, block=0) as versions[name]:
        module.forward(*found[name], z, old_cell)
print("the same results:", all(map(torch.equal, found["by row"], found["by column"])))
for name, version in versions.items():
    print(f"{name:10s}{version.total('sectors', 'forward_kernel'):7,d} sectors")

# %%
source_heatmap.draw_heatmap(versions["by column"], "forward_kernel")

# %%
access_maps.draw_versions(versions, "forward_kernel", "z")

# %% [markdown]
# The second version needs eight times as many sectors for the same numbers. (On a GPU, a cache keeps some of the
# unused bytes for the next request. So the kernel is not eight times slower, but it is still slower.)
# [docs/emulator.md](../docs/emulator.md) compares such counts with those of Nsight Compute, NVIDIA's profiler for
# kernels.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/coalesce` and `3/fewer_launches`. `show("3/coalesce")` in a cell checks the first of them here.

# %% [markdown]
# ## Summary
#
# - The lanes of a warp can combine results by shuffles. The threads of a block can use shared memory, with a
#   barrier. Different blocks can use atomics on global memory.
# - Right values do not prove that a kernel is right. Run a new kernel once with a tool that checks every access: the
#   emulator or compute-sanitizer.
# - If neighbouring threads access neighbouring elements, a warp needs 4 sectors for 32 floats. If not, the warp may
#   need 32.
#
# Next: run `make diff-2-3` to see the stage as a diff. Then read notebook 03d, about kernels in files of your own,
# or notebook 04, where the same kernels use `gates[row][1][unit]` instead of index arithmetic.
