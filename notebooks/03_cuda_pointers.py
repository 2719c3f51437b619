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
# # 03: CUDA kernels over raw pointers
#
# In stage 2 the cell is written in C++, but on a GPU each of its operations is still a separate *kernel*, a function
# that runs on the GPU. In this notebook you write the kernels yourself. You will see what a launch is, how it
# distributes work over threads, and what a kernel needs from the C++ code around it. You will also see the most
# common mistakes: at the edges of a grid, with the types of numbers, in mathematical functions, and when threads
# work together.
#
# You need notebook 02 and a C++ compiler, but no GPU. On a machine without a GPU, the workbook's emulator runs the
# same source on the CPU, thread by thread. The emulator's results are those of a GPU, except for rounding: nvcc, the
# CUDA compiler, may turn `a * b + c` into one operation that rounds only once, and CUDA's `exp` and `tanh` may differ
# from the CPU's in the last bits. The emulator says nothing about a
# kernel's speed on a GPU. But it checks every access and reports what a wrong kernel did. So kernels that are wrong
# on purpose run on the emulator here, even if there is a GPU, because they would corrupt the GPU's memory. The
# notebook takes about two and a half hours. The first run spends two or three minutes of this time compiling.

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

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from common.build.nvcc import find_nvcc
from common.inline import device, inline

on_gpu = device() == "cuda"
torch.manual_seed(0)
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the emulator")


# %%
def refused(call, *arguments):
    """Calls what should fail, and prints the first line of its error."""
    try:
        call(*arguments)
        print("no error")
    except (RuntimeError, ImportError) as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


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


# %% [markdown] syllabus="3.9a 3.1a 3.1b"
# ## A launch is a loop over threads
#
# To square every element of a tensor, a CPU runs a loop:
#
#     for (int64_t k = 0; k < count; ++k) out[k] = x[k] * x[k];
#
# A kernel is the body of that loop, and a launch is the loop: `square_kernel<<<blocks, threads>>>(...)` calls the
# body `blocks * threads` times, in an order that you cannot rely on. Each of these calls is a *thread*. The threads
# are divided into *blocks* of equal size, and all blocks of a launch are its *grid*. A thread reads its position
# from `blockIdx` and `threadIdx`, and computes its `k` from this position. The picture shows 10 elements and blocks
# of 4 threads. There is no element for the two threads in red:

# %%
from common.figures.diagrams import thread_grid

thread_grid.draw_thread_grid(count=10, block_size=4)

# %% [markdown]
# In the kernel below, the first two lines of the body replace what is between the parentheses of the `for`. The
# second line, the *guard*, stops the threads in red.

# %%
FIRST_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void square_kernel(float* out, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k >= count) return;
  out[k] = x[k] * x[k];
}

void launch_square(float* out, const float* x, int64_t count, cudaStream_t stream) {
  square_kernel<<<(count + 255) / 256, 256, 0, stream>>>(out, x, count);
}
"""

# %% [markdown]
# The string above is the `.cu` file, which nvcc compiles. It contains pointers and no torch code. The `.cpp` file,
# which g++ compiles, contains tensors and no kernels. The code in the `.cpp` gets the pointers from the tensors and
# passes them to `launch_square`. A declaration connects the two files: a line in the `.cpp` that gives the signature
# of `launch_square`. The linker finds the definition.

# %%
FIRST_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_square(float* out, const float* x, int64_t count, cudaStream_t stream);  // in the .cu

at::Tensor square(const at::Tensor& x) {
  at::Tensor out = at::empty_like(x);
  launch_square(out.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel(),
                c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

# %% [markdown]
# `inline` is this workbook's small wrapper around torch's `load_inline`, which you know from notebook 02. With a GPU
# and nvcc, it only calls `load_inline`. On other machines, `inline` passes the same two sources to the emulator.

# %%
first = inline("first", FIRST_CPP, FIRST_CU, ["square"])
x = torch.randn(1000, device=device())
print(first.square(x)[:4], "right:", torch.equal(first.square(x), x * x))

# %% [markdown]
# There are 1000 elements and `(1000 + 255) / 256 = 4` blocks of 256 threads. So the body is called 1024 times, and
# 24 of these calls return at once. The number of blocks is rounded *up*. This is right for every number of elements
# except zero:

# %%
refused(first.square, x[:0])

# %% [markdown]
# A launch with an empty grid is an error, not a launch that does nothing. (Stage 3 itself returns before the launch
# if there are no elements.)
#
# In other code you will see `load_inline` itself, often with both sources in `cuda_sources`. torch joins a list of
# sources into one `.cu`. But it writes the bindings only into the `.cpp`, so `cpp_sources` has to declare each
# function that is listed in `functions`. If `functions` is a dict, its values are the docstrings of the functions.

# %%
from torch.utils.cpp_extension import load_inline

if on_gpu:
    direct = load_inline(
        "direct",
        cpp_sources="at::Tensor square(const at::Tensor& x);",
        cuda_sources=[FIRST_CU, FIRST_CPP],
        functions={"square": "The square of each element."},
    )
    print("right:", torch.equal(direct.square(x), x * x), "-", direct.square.__doc__.strip().splitlines()[-1])
else:
    print("no GPU with nvcc here")

# %% [markdown]
# ## Which thread computes which element
#
# The next kernels compute nothing: each thread writes its own indices into a tensor called `who`. For each element
# of a matrix of shape (B, S), `who` has three numbers: `blockIdx.x`, `blockIdx.y` and `threadIdx.x` of the thread
# that wrote this element. CUDA calls the GPU the *device* and the CPU the *host*. The following code for the host is
# the same for all of these kernels:

# %%
WHO_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch(int64_t* who, int64_t B, int64_t S, int64_t threads, int64_t blocks, cudaStream_t stream);  // in the .cu

void record(const at::Tensor& who, int64_t threads, int64_t blocks) {  // who: [B,S,3]
  launch(who.mutable_data_ptr<int64_t>(), who.size(0), who.size(1), threads, blocks,
         c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""


def asked(module, shape, threads, blocks=0):
    """What the kernel of a module writes for each element of a matrix: block x, block y, thread x."""
    written = torch.full((*shape, 3), -1, device=device())
    module.record(written, threads, blocks)
    return written.cpu()


# %% [markdown] syllabus="3.3a"
# ### One thread for each element
#
# The first kernel works on a matrix with the shape of the cell's tensors: (B, S), with a row for each sequence of
# the batch. A grid can have two dimensions, x and y (and a third, z). Here its y dimension is the batch, so each row
# has its own blocks.

# %%
MATRIX_CU = """
#include <cuda_runtime.h>
#include <cstdint>

// One thread per (row, unit).
__global__ void matrix_kernel(int64_t* who, int64_t S) {  // [B,S,3]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  int64_t* mine = who + (row * S + unit) * 3;
  mine[0] = blockIdx.x, mine[1] = blockIdx.y, mine[2] = threadIdx.x;
}

void launch(int64_t* who, int64_t B, int64_t S, int64_t threads, int64_t, cudaStream_t stream) {
  const dim3 grid((S + threads - 1) / threads, B);
  matrix_kernel<<<grid, threads, 0, stream>>>(who, S);
}
"""
matrix = inline("matrix", WHO_CPP, MATRIX_CU, ["record"])
by_matrix = asked(matrix, (3, 10), 4)
print("element [2, 9] was written by block", by_matrix[2, 9, :2].tolist(), "thread", by_matrix[2, 9, 2].item())

# %% [markdown]
# The matrix has three rows of ten units, and the blocks have four threads. The picture shows what the kernel wrote:
# the number in a cell is the thread, and the colour is the block.

# %%
thread_grid.draw_owners(by_matrix.tolist())

# %% [markdown]
# Each block stays within a row, and neighbouring threads have neighbouring elements. This is important because a GPU
# runs the threads of a block in groups of 32, called *warps*. The threads of a warp read at the same time. If they
# read neighbouring elements, a few wide reads are enough for all of them.
#
# A block has at most 1024 threads. The number of threads should be a multiple of 32. A warp never contains threads
# of two blocks, so if the number is not a multiple of 32, some places (*lanes*) in the block's last warp stay empty.

# %%
for threads in (32, 40, 256, 1000, 1024):
    warps = (threads + 31) // 32
    print(f"{threads:4d} threads: {warps:2d} warps, {warps * 32 - threads:2d} lanes idle")
refused(asked, matrix, (3, 10), 1025)

# %% [markdown] syllabus="3.3b"
# ### The y dimension of a grid has at most 65535 blocks
#
# The x dimension of a grid can have up to 2³¹ - 1 blocks, but the y and z dimensions can have only 65535. So a
# kernel with the batch in `grid.y` works until the batch is larger than that:

# %%
asked(matrix, (65535, 2), 32)
refused(asked, matrix, (65536, 2), 32)

# %% [markdown]
# Published versions of the cell have this limit. Most of them never check their launch, so there is no error
# message, and the results stay uninitialised. A loop over the rows removes the limit. The argument `blocks` limits
# the grid in y. When a thread has finished a row, it adds `gridDim.y` to the row number and continues there:

# %%
ROWS_CU = """
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>

__global__ void rows_kernel(int64_t* who, int64_t B, int64_t S) {  // [B,S,3]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= S) return;
  for (int64_t row = blockIdx.y; row < B; row += gridDim.y) {
    int64_t* mine = who + (row * S + unit) * 3;
    mine[0] = blockIdx.x, mine[1] = blockIdx.y, mine[2] = threadIdx.x;
  }
}

void launch(int64_t* who, int64_t B, int64_t S, int64_t threads, int64_t blocks, cudaStream_t stream) {
  const dim3 grid((S + threads - 1) / threads, std::min(B, blocks));
  rows_kernel<<<grid, threads, 0, stream>>>(who, B, S);
}
"""
rows = inline("rows", WHO_CPP, ROWS_CU, ["record"])
by_rows = asked(rows, (65537, 2), 32, 65535)
print("rows that were not written:", int((by_rows < 0).any(-1).any(-1).sum()))
print("row 65534 by block y", by_rows[65534, 0, 1].item(), "  row 65535 by block y", by_rows[65535, 0, 1].item())

# %% [markdown]
# A test of this simple limit needs 65536 rows, which is a lot. But the emulator's device has limits that you can
# set. Their names are those of the fields of `cudaDeviceProp`, CUDA's description of a GPU, such as `maxGridSize.y`.
# If a grid can have only 63 blocks in y, a batch of 64 is already too large. With the loop, row 63 is then computed
# in the second iteration, by block y 0.

# %%
os.environ["EMULATOR_DEVICE"] = "maxGridSize.y=63"
small = torch.full((64, 2, 3), -1)
reported(MATRIX_CU, inline("matrix", WHO_CPP, MATRIX_CU, ["record"], target="emulator").record, small, 32, 0)
inline("rows", WHO_CPP, ROWS_CU, ["record"], target="emulator").record(small, 32, 63)
del os.environ["EMULATOR_DEVICE"]
print("with the loop: row 62 by block y", small[62, 0, 1].item(), "  row 63 by block y", small[63, 0, 1].item())

# %% [markdown] syllabus="3.3d"
# ### The grid-stride loop: any size with any grid
#
# In one dimension such a loop is called a grid-stride loop: after each element, a thread adds the number of all
# threads in the grid to its index. The loop works for any number of elements with any grid. This example has 19
# elements, and a grid of only 2 blocks with 4 threads each.

# %%
STRIDE_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void stride_kernel(int64_t* who, int64_t count) {  // [count,3]
  const int64_t threads = gridDim.x * int64_t(blockDim.x);
  for (int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; k < count; k += threads) {
    who[k * 3] = blockIdx.x, who[k * 3 + 1] = blockIdx.y, who[k * 3 + 2] = threadIdx.x;
  }
}

void launch(int64_t* who, int64_t B, int64_t S, int64_t threads, int64_t blocks, cudaStream_t stream) {
  stride_kernel<<<blocks, threads, 0, stream>>>(who, B * S);
}
"""
stride = inline("stride", WHO_CPP, STRIDE_CU, ["record"])
by_stride = asked(stride, (1, 19), threads=4, blocks=2)[0].tolist()
thread_grid.draw_owners([by_stride[k : k + 8] for k in range(0, 19, 8)], row_name="turn")

# %% [markdown]
# After the first eight elements, the same eight threads compute the next eight, and so on. Neighbouring threads
# still have neighbouring elements, and you can choose a grid that suits the GPU, whatever the number of elements is.

# %% [markdown] syllabus="3.3e 3.3f"
# ### The guard
#
# The number of threads is a multiple of the block size, but the number of elements often is not: here a row of 5
# elements gets 8 threads. To show the effect without harm, we make the row the first part of a larger tensor, and
# set the elements after the row to -1. An argument of the kernel selects the guard:

# %%
GUARD_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void guard_kernel(float* row, int S, int guard) {  // [S]
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  bool inside = true;                       // 0: no guard
  if (guard == 1) inside = (col < S) < S;   // 1: as published
  if (guard == 2) inside = col < S;         // 2: right
  if (inside) row[col] = col;
}

void launch_guard(float* row, int64_t S, int64_t guard, int64_t threads, cudaStream_t stream) {
  guard_kernel<<<1, threads, 0, stream>>>(row, S, guard);
}
"""
GUARD_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_guard(float* row, int64_t S, int64_t guard, int64_t threads, cudaStream_t stream);

void guard(const at::Tensor& row, int64_t guard, int64_t threads) {
  launch_guard(row.mutable_data_ptr<float>(), row.size(0), guard, threads, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
guards = inline("guards", GUARD_CPP, GUARD_CU, ["guard"], target="emulator")

# %% [markdown]
# For this cell we turn off the emulator's checks, so that the emulator behaves like a GPU:

# %%
os.environ["EMULATOR_CHECKS"] = "none"
S = 5
for guard, name in enumerate(("no guard", "(col < S) < S", "col < S")):
    memory = torch.full((8,), -1.0)
    guards.guard(memory[:S], guard, 8)
    print(f"{name:15s} row {memory[:S].int().tolist()}  behind it {memory[S:].int().tolist()}")
os.environ["EMULATOR_CHECKS"] = "all"

# %% [markdown]
# Without a guard, three threads write to memory that may belong to another tensor. The guard in the second line is
# from published code, and it does not stop these threads. What is the value of its condition?

# %%
for col in (0, 4, 5, 7, 1000):
    print(f"col {col:4d}:  col < S is {col < S!s:5}  (col < S) < S is {(col < S) < S}")

# %% [markdown]
# `col < S` is 0 or 1, and both are less than 5. So the condition is always true if S is greater than 1. A test that
# compares values does not find this mistake, because the row itself is right. The emulator finds the mistake when
# its checks are on, as they are by default:

# %%
memory = torch.full((8,), -1.0)
reported(GUARD_CU, guards.guard, memory[:S], 1, 8)

# %% [markdown]
# Read the report from the top. First it names the mistake and its line in the `.cu`, then the element and its
# tensor, and then how many threads made this mistake and which was the first. Below the report, the notebook prints
# the source line. The emulator stopped the three threads before they wrote. The other five wrote their elements:

# %%
print("row", memory[:S].int().tolist(), " behind it", memory[S:].int().tolist())
reported(GUARD_CU, guards.guard, memory[:S], 2, 8)

# %% [markdown] syllabus="3.3c"
# ### 32 bits are not enough for an index
#
# `blockIdx` and `blockDim` are 32 bits wide, and so are their products with other 32-bit numbers. If the gates have
# shape (65535, 3 · 12000), at which index does their last row begin? The last block of this kernel computes this
# index in 32 bits and in 64 bits, and can write a 1 at either of the two indices.

# %%
PLACE_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void place_kernel(int64_t* place, int8_t* gates, int S, bool in_64_bits) {  // [2], [B,3S] or null
  if (blockIdx.y != gridDim.y - 1) return;
  const int narrow = blockIdx.y * 3 * S;
  const int64_t wide = int64_t(blockIdx.y) * 3 * S;
  place[0] = narrow, place[1] = wide;
  if (gates) gates[in_64_bits ? wide : narrow] = 1;
}

void launch_place(int64_t* place, int8_t* gates, int64_t rows, int64_t S, bool in_64_bits, cudaStream_t stream) {
  place_kernel<<<dim3(1, rows), 1, 0, stream>>>(place, gates, S, in_64_bits);
}
"""
PLACE_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch_place(int64_t* place, int8_t* gates, int64_t rows, int64_t S, bool in_64_bits, cudaStream_t stream);

void place(const Tensor& place, int64_t rows, int64_t S) {
  launch_place(place.mutable_data_ptr<int64_t>(), nullptr, rows, S, false, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void mark(const Tensor& place, const Tensor& gates, bool in_64_bits) {
  launch_place(place.mutable_data_ptr<int64_t>(), gates.mutable_data_ptr<int8_t>(), gates.size(0),
               gates.size(1) / 3, in_64_bits, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
marks = inline("marks", PLACE_CPP, PLACE_CU, ["place", "mark"], target="emulator")

# %% [markdown]
# If `gates` is null, the kernel only computes the indices, so it needs no large tensor:

# %%
places = torch.zeros(2, dtype=torch.int64)
marks.place(places, 65535, 12000)
print("in 32 bits {:,}   in 64 bits {:,}".format(*places.tolist()))

# %% [markdown]
# The 32-bit index is negative. At best, an access with such an index crashes. As floats, these gates need 9 GB, so
# no small test finds the mistake. But a test with large tensors can still need little memory: until a program
# accesses a page of memory, the operating system only reserves its addresses. The tensor here has one byte for each
# element, and the kernel accesses only a single page.

# %%
places = torch.zeros(2, dtype=torch.int64)
gates = torch.empty(65535, 3 * 12000, dtype=torch.int8)
print(f"{gates.numel():,} elements; the largest int is {2**31 - 1:,}")
reported(PLACE_CU, marks.mark, places, gates, False)

# %% [markdown]
# The address is far away from every tensor that was passed to the kernel. This is typical of an overflow. To avoid
# an overflow, write `int64_t(blockDim.x)`, as most kernels here do: if one factor has 64 bits, the product has 64
# bits, too.

# %%
reported(PLACE_CU, marks.mark, places, gates, True)
print("the last row begins with", gates[-1, 0].item())

# %% [markdown] syllabus="3.9b 3.7c"
# ### A loop in the kernel, and why the matrix product stays in ATen
#
# The launch is one loop, and the kernel can contain another loop. Each thread of `linear_kernel` computes one
# element of `z = X @ weights.T + bias`, which is a sum:

# %%
LINEAR_CU = """
#include <cuda_runtime.h>
#include <cstdint>

// z = X @ weights.t() + bias, one thread per element of z.
__global__ void linear_kernel(float* z, const float* X, const float* weights, const float* bias, int64_t K,
                              int64_t columns) {  // [B,columns], [B,K], [columns,K], [columns]
  const int64_t column = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (column >= columns) return;
  float sum = bias[column];
  for (int64_t k = 0; k < K; ++k) sum += X[row * K + k] * weights[column * K + k];
  z[row * columns + column] = sum;
}

void launch_linear(float* z, const float* X, const float* weights, const float* bias, int64_t B, int64_t K,
                   int64_t columns, cudaStream_t stream) {
  linear_kernel<<<dim3((columns + 127) / 128, B), 128, 0, stream>>>(z, X, weights, bias, K, columns);
}
"""
LINEAR_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch_linear(float* z, const float* X, const float* weights, const float* bias, int64_t B, int64_t K,
                   int64_t columns, cudaStream_t stream);

void linear(const Tensor& z, const Tensor& X, const Tensor& weights, const Tensor& bias) {
  launch_linear(z.mutable_data_ptr<float>(), X.const_data_ptr<float>(), weights.const_data_ptr<float>(),
                bias.const_data_ptr<float>(), X.size(0), X.size(1), z.size(1), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
by_hand = inline("linear", LINEAR_CPP, LINEAR_CU, ["linear"])

# %% [markdown]
# The result is right:

# %%
X, weights = torch.randn(16, 160, device=device()), torch.randn(384, 160, device=device())
bias, z = torch.randn(384, device=device()), torch.empty(16, 384, device=device())
by_hand.linear(z, X, weights, bias)
print("largest difference to F.linear:", f"{(z - F.linear(X, weights, bias)).abs().max().item():.1e}")

# %% [markdown]
# But the threads of `linear_kernel` read the same numbers many times. The next cell counts the reads, and compares
# their count with the number of different values:

# %%
(B, K), columns = X.shape, weights.size(0)
reads, numbers = B * columns * (2 * K + 1), X.numel() + weights.numel() + bias.numel()
print(f"{reads:,} reads of {numbers:,} different numbers: each one {reads / numbers:.0f} times")

# %% [markdown]
# A library's matrix product loads a small rectangle of each matrix (a *tile*) once for a whole block, and keeps it
# close to the arithmetic units. The product also uses hardware units that are made for matrix products, and the
# library has different kernels for different shapes and GPUs. It is not easy to write a faster product. So stage 3
# leaves the products to ATen and has its own kernels only for the pointwise operations. On a GPU you can measure how
# much slower our loop is:

# %%
if on_gpu:
    from common.measure.clock import interleave

    X, weights = torch.randn(1024, 2048, device="cuda"), torch.randn(3072, 2048, device="cuda")
    bias, z = torch.randn(3072, device="cuda"), torch.empty(1024, 3072, device="cuda")
    calls = [lambda: by_hand.linear(z, X, weights, bias), lambda: F.linear(X, weights, bias)]
    ours, library = interleave(calls, "cuda", rounds=11, block_seconds=0.02)
    print(f"B1024 S1024: our loop takes {ours.ratio_to(library):.0f} times as long as the library")
else:
    print("no GPU here; the emulator's speed says nothing about a GPU's")

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/who_computes_what`, `3/guard`, `3/index_of_64_bits` and `3/launch`.
# `make check EX=3/who_computes_what` in a terminal copies the files of the exercise for you and checks your
# solution. The cell below runs the same check here.

# %%
from common.exercises import show

show("3/who_computes_what")

# %% [markdown]
# ## Mathematical functions on the device
#
# The cell's kernels need `exp`, `tanh` and a conditional expression. Here are four versions of elu and two versions
# of its derivative. In CUDA `fmaxf`, `fminf` and `expf` take and return floats, whatever the type of their
# arguments.

# %%
MATHS_CU = """
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>

template <typename scalar_t>
__device__ scalar_t elu_fmaxf(scalar_t z) { return fmaxf(0, z) + fminf(0, expf(z) - 1); }

template <typename scalar_t>
__device__ scalar_t elu_literal(scalar_t z) { return z > 0.0 ? z : std::exp(z) - 1.0; }

template <typename scalar_t>
__device__ scalar_t elu_minus_one(scalar_t z) { return z > 0 ? z : std::exp(z) - 1; }

template <typename scalar_t>
__device__ scalar_t elu_expm1(scalar_t z) { return z > 0 ? z : std::expm1(z); }

template <typename scalar_t>
__device__ scalar_t d_elu_mask(scalar_t z) { return scalar_t(z > 0) + scalar_t(z <= 0) * std::exp(z); }

template <typename scalar_t>
__device__ scalar_t d_elu_ternary(scalar_t z) { return z > 0 ? scalar_t(1) : std::exp(z); }
"""

# %% [markdown]
# One kernel calls the function that the argument `which` selects. The kernel is a template, because it should work
# for floats and for doubles. A compiler generates the code of a template only for the types with which the file
# *uses* the template, and nothing in this file calls `launch_apply`. So the last lines instantiate `launch_apply`
# explicitly for the two types, and with it the kernel.

# %%
MATHS_CU += """
template <typename scalar_t>
__global__ void apply_kernel(scalar_t* out, const scalar_t* z, int64_t count, int which) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k >= count) return;
  switch (which) {
    case 0: out[k] = elu_fmaxf(z[k]); break;
    case 1: out[k] = elu_literal(z[k]); break;
    case 2: out[k] = elu_minus_one(z[k]); break;
    case 3: out[k] = elu_expm1(z[k]); break;
    case 4: out[k] = d_elu_mask(z[k]); break;
    case 5: out[k] = d_elu_ternary(z[k]); break;
  }
}

template <typename scalar_t>
void launch_apply(scalar_t* out, const scalar_t* z, int64_t count, int which, cudaStream_t stream) {
  apply_kernel<<<(count + 255) / 256, 256, 0, stream>>>(out, z, count, which);
}
"""
INSTANTIATIONS = """
template void launch_apply(float*, const float*, int64_t, int, cudaStream_t);
template void launch_apply(double*, const double*, int64_t, int, cudaStream_t);
"""

# %% [markdown]
# In the `.cpp`, the type of a tensor is known only at run time, but a template needs its type at compile time. The
# macro `AT_DISPATCH_FLOATING_TYPES` connects the two. The section "Dispatch over types" below explains this macro.

# %%
MATHS_CPP = """
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

template <typename scalar_t>
void launch_apply(scalar_t* out, const scalar_t* z, int64_t count, int which, cudaStream_t stream);

Tensor apply(const Tensor& z, int64_t which) {
  Tensor out = at::empty_like(z);
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "apply", [&] {
    launch_apply<scalar_t>(out.mutable_data_ptr<scalar_t>(), z.const_data_ptr<scalar_t>(), z.numel(), which,
                           c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
  return out;
}
"""
maths = inline("maths", MATHS_CPP, MATHS_CU + INSTANTIATIONS, ["apply"])

# %% [markdown] syllabus="3.2a"
# ### `fmaxf` converts doubles to floats
#
# In float32 all versions of elu agree. In float64 the first one does not:

# %%
NAMES = ["elu_fmaxf", "elu_literal", "elu_minus_one", "elu_expm1", "d_elu_mask", "d_elu_ternary"]


def apply(name, z):
    return maths.apply(z, NAMES.index(name))


z = torch.linspace(-4, 4, 1000, dtype=torch.float64, device=device())
for name in NAMES[:4]:
    error = (apply(name, z) - F.elu(z)).abs().max().item()
    print(f"{name:14s} {apply(name, z).dtype}, largest error {error:.1e}")

# %% [markdown]
# The first version returns float64, but half of the digits are meaningless. The compiler did not warn, and every
# test in float32 passes. A comparison in float64, such as the one above, finds the mistake. So does gradcheck,
# because the error is too large for finite differences with steps of 1e-6:


# %%
class Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, name):
        ctx.save_for_backward(z)
        return apply(name, z)

    @staticmethod
    def backward(ctx, grad):
        return grad * apply("d_elu_ternary", ctx.saved_tensors[0]), None


z = torch.randn(5, dtype=torch.float64, device=device(), requires_grad=True)
for name in NAMES[:4]:
    passed = torch.autograd.gradcheck(Elu.apply, (z, name), raise_exception=False)
    print(f"{name:14s} gradcheck {'passes' if passed else 'FAILS'}")

# %% [markdown]
# (The backward is the same for all four versions, and it is right.) In templates, call `std::exp`, `std::expm1` and
# `std::tanh`, which have a version for each type.

# %% [markdown] syllabus="3.2b"
# ### `1.0` converts floats to doubles
#
# `elu_literal` makes the opposite mistake. `0.0` and `1.0` are doubles, so a float that is compared with `0.0`, or
# from which `1.0` is subtracted, is converted to double. The comparison and the subtraction are then done in double,
# too. The result is right to the last digit, but most GPUs are slow in double precision: many have 32 or 64 times as
# many units for floats as for doubles. You can see the conversion in the instructions. If nvcc is installed, the
# cell compiles each function for floats to PTX, NVIDIA's readable assembly language, and counts the instructions
# that work on doubles.


# %%
def double_instructions(name):
    """How many instructions on doubles nvcc generates for one of the functions above, called for floats."""
    kernel = f"__global__ void kernel(float* z) {{ z[threadIdx.x] = {name}(z[threadIdx.x]); }}"
    folder = root / "build" / "notebooks" / "ptx"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.cu").write_text(MATHS_CU.partition("template <typename scalar_t>\n__global__")[0] + kernel)
    command = [find_nvcc(), "-ptx", "-arch=sm_90", f"{name}.cu", "-o", f"{name}.ptx"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    lines = (folder / f"{name}.ptx").read_text().splitlines()
    return sum(".f64" in line and not line.strip().startswith(".reg") for line in lines)


if find_nvcc():
    for name in NAMES[1:4]:
        print(f"{name:14s} {double_instructions(name)} instructions on doubles")
else:
    print("no nvcc here")

# %% [markdown]
# nvcc 13.0 generates 4 such instructions for `elu_literal`, and none for the other two functions. To fix the
# mistake, write `scalar_t(1)`, or `1`, which is converted to the type of the other operand.

# %% [markdown] syllabus="3.2c"
# ### The derivative of elu: a mask or a conditional expression
#
# `d_elu_mask` computes `(z > 0) + (z <= 0) * exp(z)`, so for z > 0 it multiplies the unwanted exponential by 0.
# `d_elu_ternary` uses a conditional expression, so for z > 0 the exponential has no effect on the result. The two
# results are not always the same:

# %%
z = torch.tensor([-2.0, 0.0, 2.0, 80.0, 100.0], device=device())
print("z      ", z.tolist())
print("mask   ", apply("d_elu_mask", z).tolist())
print("ternary", apply("d_elu_ternary", z).tolist())

# %% [markdown]
# exp(100) is infinite in float32, and 0 times infinity is NaN. In a kernel, the compiler usually turns the
# conditional expression into an instruction that selects one of two values, without a branch. Both values are
# computed, so the conditional expression costs no more than the mask. Stage 3 does not even need the exponential,
# because it computes the derivative from the output of elu.

# %% [markdown] syllabus="3.2d"
# ### `expm1` keeps the digits near zero
#
# Near zero, exp(z) is 1 plus a small number. A float near 1 can store only a few digits of this small number. After
# the subtraction of 1, only these digits are left. `expm1(z)` computes exp(z) - 1 without this loss.

# %%
z = -torch.logspace(-7, 0, 200, device=device())
exact = torch.expm1(z.double())
errors = {name: ((apply(name, z) - exact) / exact).abs().cpu() for name in ("elu_minus_one", "elu_expm1")}
for name, error in errors.items():
    print(f"{name:14s} largest relative error {error.max().item():.0e}")

# %%
from common.figures.plots import BLUE, STYLE, VERMILION, colour

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
for (name, error), ink in zip(errors.items(), (VERMILION, BLUE), strict=True):
    axis.loglog(-z.cpu(), error.clamp(min=1e-9), ".", color=ink, label=name)
axis.set(title="Relative error of elu in float32, just below zero", xlabel="-z", ylabel="relative error")
axis.legend(frameon=False)
plt.show()

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/gate_functions`. `show("3/gate_functions")` in a cell checks it here.

# %% [markdown] syllabus="3.4a 3.4b 3.4c"
# ## Dispatch over types
#
# `AT_DISPATCH_FLOATING_TYPES` takes a lambda (a function without a name) and expands to a switch over the type of a
# tensor. In each case of the switch, the macro gives the name `scalar_t` to the type. So the lambda is compiled once
# for each type. The function `kind` uses the macro, and `kind_by_hand` contains a switch. Both return the name of
# the type:

# %%
KIND_CPP = """
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>

#include <string>

using at::Tensor;

template <typename T>
std::string name_of() { return std::string(c10::toString(c10::CppTypeToScalarType<T>::value)); }

std::string kind(const Tensor& x) {
  return AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "kind", [&] { return name_of<scalar_t>(); });
}

std::string kind_with_half(const Tensor& x) {
  return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "kind_with_half",
                                         [&] { return name_of<scalar_t>(); });
}

std::string kind_by_hand(const Tensor& x) {
  auto body = [](auto zero) { return name_of<decltype(zero)>(); };
  switch (x.scalar_type()) {
    case at::kDouble: return body(double());
    case at::kFloat: return body(float());
    default: TORCH_CHECK(false, "\\"kind_by_hand\\" not implemented for '", x.scalar_type(), "'");
  }
}
"""
kinds = inline("kinds", KIND_CPP, "", ["kind", "kind_with_half", "kind_by_hand"])

# %%
for dtype in (torch.float32, torch.float64):
    x = torch.zeros(1, dtype=dtype)
    print(f"{dtype!s:15} kind {kinds.kind(x)}, by hand {kinds.kind_by_hand(x)}, with half {kinds.kind_with_half(x)}")
for dtype in (torch.float16, torch.bfloat16, torch.int64):
    print(dtype, end="  kind ")
    refused(kinds.kind, torch.zeros(1, dtype=dtype))

# %% [markdown]
# If the type of the tensor is not in the switch, the macro raises an error that names this type. The string argument
# of the macro is used only in this message. Other macros have more cases. `_AND2` adds two types that you name, here
# float16 and bfloat16:

# %%
for dtype in (torch.float16, torch.bfloat16):
    print(dtype, "kind_with_half", kinds.kind_with_half(torch.zeros(1, dtype=dtype)))
refused(kinds.kind_with_half, torch.zeros(1, dtype=torch.int64))

# %% [markdown]
# You will also see these macros in other code. `AT_DISPATCH_FLOATING_TYPES_AND_HALF` adds float16 alone, without
# bfloat16. `AT_DISPATCH_ALL_TYPES` does not cover all types: it covers float, double and the integers of 8 to 64
# bits (uint8 is the only unsigned one), but not bool, half or complex. `AT_DISPATCH_ALL_TYPES_AND2` again takes two
# more types.

# %% [markdown]
# With `g++ -E` you can look at the code after the macro is expanded. The cell prints the lines of the switch:

# %%
import sysconfig

from torch.utils.cpp_extension import include_paths

source = """#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
void here(const at::Tensor& x) { AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "kind", [&] { body<scalar_t>(); }); }
"""
folders = [f"-I{path}" for path in [*include_paths(), sysconfig.get_path("include")]]
command = [os.environ.get("CXX", "c++"), "-E", "-P", "-std=c++20", *folders, "-x", "c++", "-"]
expanded = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
expanded = expanded[expanded.rindex("void here") :].replace("{", "{\n").replace(";", ";\n").replace("case", "\ncase")
for line in expanded.splitlines():
    if any(word in line for word in ("switch (", "case ", "using scalar_t", "body", "default:")):
        print(line.strip()[:110])

# %% [markdown] syllabus="3.4d"
# ### Complex numbers in a kernel
#
# `AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES` also has cases for complex numbers. There, `scalar_t` is
# `c10::complex<float>` or `c10::complex<double>`, which has operators for the CPU and for the GPU. A template that
# uses only operators needs no changes:

# %%
COMPLEX_CPP = """
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

template <typename scalar_t>
void launch_square(scalar_t* y, const scalar_t* x, int64_t n, cudaStream_t stream);

Tensor square(const Tensor& x) {
  Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(x.scalar_type(), "square", [&] {
    launch_square(y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), x.numel(),
                  c10::cuda::getCurrentCUDAStream());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
COMPLEX_CU = """
#include <c10/util/complex.h>
#include <cuda_runtime.h>

#include <cstdint>

template <typename scalar_t>
__global__ void square_kernel(scalar_t* y, const scalar_t* x, int64_t n) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < n) y[k] = x[k] * x[k];
}

template <typename scalar_t>
void launch_square(scalar_t* y, const scalar_t* x, int64_t n, cudaStream_t stream) {
  square_kernel<<<(n + 255) / 256, 256, 0, stream>>>(y, x, n);
}

template void launch_square(float*, const float*, int64_t, cudaStream_t);
template void launch_square(double*, const double*, int64_t, cudaStream_t);
template void launch_square(c10::complex<float>*, const c10::complex<float>*, int64_t, cudaStream_t);
template void launch_square(c10::complex<double>*, const c10::complex<double>*, int64_t, cudaStream_t);
"""
complex_squares = inline("complex_squares", COMPLEX_CPP, COMPLEX_CU, ["square"])
z = torch.tensor([1 + 2j, 3 - 1j], device=device())
for x in (z.real.contiguous(), z, z.conj().resolve_conj()):
    print(f"{x.dtype!s:16}", complex_squares.square(x), " equal:", torch.equal(complex_squares.square(x), x * x))

# %% [markdown]
# Why `resolve_conj()`? `z.conj()` does not change any number in memory. It only sets a bit of the tensor (see 02b),
# and a kernel does not see this bit. So the kernel computes with the numbers of `z`, and there is no error:

# %%
print("got     ", complex_squares.square(z.conj()))
print("expected", z.conj() * z.conj())

# %% [markdown]
# In your own code, begin with `x.resolve_conj()`, which copies only if the bit is set, or refuse `x.is_conj()`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/host_forward`. `show("3/host_forward")` in a cell checks it here.

# %% [markdown] syllabus="3.5a 3.5b"
# ## A `.cu` without torch headers
#
# The kernels above took pointers and sizes, and their `.cu` files did not include any torch header. This has a cost.
# The dispatch is in the `.cpp`, where the compiler sees only a declaration of the template, so it cannot generate
# the template's code there. If we leave out the two lines of explicit instantiation, everything compiles, but the
# import fails because a symbol is undefined. The name of the symbol is mangled (it encodes the types). The tool
# `c++filt`, or `demangle` here, makes such names readable:

# %%
from common.emulator import demangle

try:
    inline("not_instantiated", MATHS_CPP, MATHS_CU, ["apply"])
except ImportError as error:
    symbol = str(error).partition("undefined symbol: ")[2]
    print("undefined symbol:", symbol, "or", demangle(symbol), sep="\n    ")

# %% [markdown] syllabus="3.5c"
# ### Without torch headers, compilation is faster
#
# This cell compiles an empty kernel twice: with the three ATen headers that stage 4's `.cu` needs, and with none of
# them:

# %%
import time

from common.emulator import INCLUDE_DIR

COMPILER = [find_nvcc()] if find_nvcc() else [os.environ.get("CXX", "c++"), "-x", "c++", f"-I{INCLUDE_DIR}"]
HEADERS = {
    "three ATen headers": ["ATen/core/Tensor.h", "ATen/Dispatch.h", "ATen/core/TensorAccessor.h"],
    "only cuda_runtime.h": [],
}
folder = root / "build" / "notebooks" / "headers"
folder.mkdir(parents=True, exist_ok=True)
compile_seconds = {}
for name, headers in HEADERS.items():
    lines = [f"#include <{header}>" for header in ["cuda_runtime.h", *headers]] + ["__global__ void kernel() {}"]
    (folder / "empty.cu").write_text("\n".join(lines) + "\n")
    start = time.perf_counter()
    command = [*COMPILER, "-std=c++20", *folders, "-c", "empty.cu", "-o", "empty.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    compile_seconds[name] = time.perf_counter() - start
    print(f"{name:20s}{compile_seconds[name]:6.1f} s with {Path(COMPILER[0]).name}")

# %% [markdown]
# torch's `load_inline` adds `torch/types.h` at the top of a `.cu` unless you pass `no_implicit_headers=True`. When
# this was written, compilation with this header took five times as long as with the three ATen headers. And you
# compile a kernel dozens of times before it is finished.

# %% [markdown] syllabus="3.5d"
# ### A kernel without any C++ around it
#
# For a quick experiment on a GPU you can leave out the `.cpp` as well. NVRTC, CUDA's library for compilation at run
# time, compiles a kernel from a string, and torch 2.9 and newer have a function that calls NVRTC. Its name begins
# with an underscore, so it may change in any version. `load_inline` runs nvcc and the host compiler and links a
# library. NVRTC compiles only the kernel, so it takes a fraction of a second:

# %%
TWICE_CU = """
extern "C" __global__ void twice(float* y, const float* x, int n) {
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < n) y[k] = 2 * x[k];
}
"""
if on_gpu and hasattr(torch.cuda, "_compile_kernel"):
    start = time.perf_counter()
    twice = torch.cuda._compile_kernel(TWICE_CU, "twice")
    print(f"compiled in {time.perf_counter() - start:.2f} s")
    for dtype in (torch.float32, torch.float64):
        x = torch.ones(1000, dtype=dtype, device="cuda")
        y = torch.zeros_like(x)
        twice(grid=(4, 1, 1), block=(256, 1, 1), args=[y, x, x.numel()])  # on the current stream
        print(f"{dtype}: the first element is {y[0].item():.3g}, expected 2")
else:
    print("no GPU here, or a torch before 2.9")

# %% [markdown]
# On an NVIDIA H200 with torch 2.11, the cell above printed
#
#     compiled in 0.48 s
#     torch.float32: the first element is 2, expected 2
#     torch.float64: the first element is 256, expected 2
#
# Python passes the pointer of each tensor to the kernel, and this call does not check anything else. So a tensor of
# another type gives a wrong result without an error. A check of dtypes, shapes and devices, the dispatch over types
# and the gradient are still your task, in Python or in C++. This is why the workbook does not continue this way.
# CuPy's `RawKernel` and NVIDIA's package `cuda-python` offer the same for any version of torch.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/instantiate`. `show("3/instantiate")` in a cell checks it here.

# %% [markdown] syllabus="3.1c"
# ## A `.cpp` and a `.cu` need different names
#
# A package must not contain both `lltm.cpp` and `lltm.cu`. The reason: setuptools derives the name of an object file
# from the name of the source without its extension, so both sources get the object file `lltm.o`. (Torch looks for
# nvcc before it does anything with a `.cu`. So on a machine without nvcc, the second file here is `lltm.cc`, which
# has the same problem.)

# %%
folder = root / "build" / "notebooks" / "one_name"
folder.mkdir(parents=True, exist_ok=True)
kind, second = ("CUDAExtension", "lltm.cu") if find_nvcc() else ("CppExtension", "lltm.cc")
_ = (folder / "setup.py").write_text(f"""
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, {kind}

setup(name="one_name", packages=[], ext_modules=[{kind}("one_name", ["lltm.cpp", "{second}"])],
      cmdclass={{"build_ext": BuildExtension}})
""")

# %%
settings = {**os.environ, "TORCH_CUDA_ARCH_LIST": "9.0"}  # nothing is compiled, so any value works
command = [sys.executable, "setup.py", "build_ext", "--build-temp", "objects"]
done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
print(*(line for line in (done.stdout + done.stderr).splitlines() if "multiple rules" in line), sep="\n")

# %% [markdown]
# If torch builds with the tool ninja, this is at least an error. Without ninja, setuptools keeps a list with one
# entry for each object file. The second source replaces the first, and the build *succeeds* without the code of the
# first:

# %%
from setuptools._distutils.ccompiler import new_compiler

compiler = new_compiler()
compiler.src_extensions += [".cu"]  # as torch's BuildExtension does
_, objects, _, _, build = compiler._setup_compile("objects", None, None, ["lltm.cpp", "lltm.cu"], [], [])
print("to link:   ", objects)
print("to compile:", build)

# %% [markdown]
# `load` and `load_inline` give the object file of a `.cu` the ending `.cuda.o`, so there the names do not conflict.
# The mistake then appears only when you build the package. Stage 3 calls its files `lltm.cpp` and `lltm_kernel.cu`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/binding_and_setup`. `show("3/binding_and_setup")` in a cell checks it here.

# %% [markdown] syllabus="3.1d 3.1e"
# ## Check the arguments
#
# A kernel does not check its arguments, so the host code has to. The kernel here computes the gradient through
# `tanh` as the cell's backward does. The function `d_cell` in the `.cpp` uses macros that you find in most published
# code. But `d_cell` checks only one of its two arguments.

# %%
CHECKS_CU = """
#include <cuda_runtime.h>
#include <cstdint>
#include <cmath>

__global__ void d_cell_kernel(float* d_cell, const float* grad_h, const float* new_cell, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k >= count) return;
  const float tanh_new_cell = std::tanh(new_cell[k]);
  d_cell[k] = grad_h[k] * (1 - tanh_new_cell * tanh_new_cell);
}

void launch_d_cell(float* d_cell, const float* grad_h, const float* new_cell, int64_t count, cudaStream_t stream) {
  d_cell_kernel<<<(count + 255) / 256, 256, 0, stream>>>(d_cell, grad_h, new_cell, count);
}
"""

# %%
CHECKS_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch_d_cell(float* d_cell, const float* grad_h, const float* new_cell, int64_t count, cudaStream_t stream);

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

Tensor d_cell(const Tensor& grad_h, const Tensor& new_cell) {
  CHECK_INPUT(grad_h);  // and new_cell?
  Tensor d_cell = at::empty_like(grad_h);
  launch_d_cell(d_cell.mutable_data_ptr<float>(), grad_h.const_data_ptr<float>(),
                new_cell.const_data_ptr<float>(), grad_h.numel(), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return d_cell;
}

// As a function: one line for each argument, and a message that says what came and what was expected.
void check(const char* name, const Tensor& tensor, const Tensor& like) {
  TORCH_CHECK(tensor.device() == like.device(), name, " is on ", tensor.device(), ", expected ", like.device());
  TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), name, " has dtype ", tensor.scalar_type(),
              ", expected ", like.scalar_type());
  TORCH_CHECK(tensor.sizes() == like.sizes(), name, " has shape ", tensor.sizes(), ", expected ", like.sizes());
  TORCH_CHECK(tensor.is_contiguous(), name, " is not contiguous");
}

Tensor checked_d_cell(const Tensor& grad_h, const Tensor& new_cell) {
  CHECK_INPUT(grad_h);
  check("new_cell", new_cell, grad_h);
  return d_cell(grad_h, new_cell);
}
"""
FUNCTIONS = ["d_cell", "checked_d_cell"]
checks = inline("checks", CHECKS_CPP, CHECKS_CU, FUNCTIONS)

# %% [markdown]
# The macros work for `grad_h`, the argument that `d_cell` checks:

# %%
grad_h = torch.ones(2, 4, device=device())
refused(checks.d_cell, grad_h.t(), grad_h.t())
refused(checks.d_cell, grad_h.to("meta"), grad_h)

# %% [markdown]
# Now `new_cell` has too few rows. To show what the kernel reads, we again make `new_cell` the first part of a larger
# tensor. The other elements of this tensor are 100:

# %%
os.environ["EMULATOR_CHECKS"] = "none"
memory = torch.zeros(8, device=device())
memory[4:] = 100
new_cell = memory[:4].view(1, 4)
print(checks.d_cell(grad_h, new_cell))
os.environ["EMULATOR_CHECKS"] = "all"

# %% [markdown]
# The derivative of tanh at 0 is 1, so the first row is right. The second row was computed from memory that does not
# belong to `new_cell`, and there was no error. Published code makes this mistake with the same tensor. With
# its checks on, the emulator knows which part of the memory is `new_cell`, and reports the mistake. `checked_d_cell`
# does not need the emulator, because it checks the shape on the host:

# %%
on_cpu = inline("checks", CHECKS_CPP, CHECKS_CU, FUNCTIONS, target="emulator")
reported(CHECKS_CU, on_cpu.d_cell, grad_h.cpu(), memory.cpu()[:4].view(1, 4))
refused(checks.checked_d_cell, grad_h, new_cell)

# %% [markdown]
# Stage 3's own checks (`check_arguments` in `csrc/lltm.cpp`) raise errors that name the argument and say what is
# wrong with it:

# %%
from common import load
from common.cell.case import Case, difference, outputs

stage3 = load(3)
inputs = {name: tensor.detach() for name, tensor in Case(3, 4, 5, device=device()).inputs().items()}
for wrong in ({"old_cell": inputs["old_cell"][:1]}, {"bias": inputs["bias"].double()}, {"input": inputs["input"][0]}):
    refused(stage3.lltm, *(inputs | wrong).values())

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/host_checks`. `show("3/host_checks")` in a cell checks it here.

# %% [markdown] syllabus="3.6c"
# ## Streams, devices and errors
#
# A GPU takes its work from queues, called *streams*. This section shows how a launch can fail, and why a kernel must
# be launched on the right stream and the right device. The kernel here adds 1 to each element. Three functions
# launch it: one with a check of the launch, one without this check, and one on the default stream. A fourth
# function, `device_inside_guard`, is for the last part of the section.

# %%
LAUNCHES_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void add_one_kernel(float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) x[k] += 1;
}

void launch_add_one(float* x, int64_t count, int threads, cudaStream_t stream) {
  add_one_kernel<<<(count + threads - 1) / threads, threads, 0, stream>>>(x, count);
}
"""
LAUNCHES_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch_add_one(float* x, int64_t count, int threads, cudaStream_t stream);

void add_one(const Tensor& x, int64_t threads) {
  launch_add_one(x.mutable_data_ptr<float>(), x.numel(), threads, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void add_one_unchecked(const Tensor& x, int64_t threads) {
  launch_add_one(x.mutable_data_ptr<float>(), x.numel(), threads, c10::cuda::getCurrentCUDAStream());
}

void add_one_on_default_stream(const Tensor& x) {
  launch_add_one(x.mutable_data_ptr<float>(), x.numel(), 256, nullptr);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

int64_t device_inside_guard(const Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  return c10::cuda::current_device();
}
"""
FUNCTIONS = ["add_one", "add_one_unchecked", "add_one_on_default_stream", "device_inside_guard"]
launches = inline("launches", LAUNCHES_CPP, LAUNCHES_CU, FUNCTIONS)

# %% [markdown]
# ### Check the launch
#
# A launch with `<<<...>>>` has no return value. When the device rejects a launch, such as one with 2048 threads in a
# block, the CUDA runtime only records an error. The function `cudaGetLastError` returns this error:

# %%
os.environ["EMULATOR_CHECKS"] = "none"
x, y = torch.zeros(4, device=device()), torch.zeros(4, device=device())
launches.add_one_unchecked(x, 2048)
refused(launches.add_one, y, 256)
print("x", x.tolist(), "  y", y.tolist())
os.environ["EMULATOR_CHECKS"] = "all"

# %% [markdown]
# The wrong launch gave no error message, and `x` was not changed. The error was reported for the *next* launch,
# which was right and even added 1 to `y`. With `C10_CUDA_KERNEL_LAUNCH_CHECK()` right after the launch, the error is
# reported by the launch that caused it:

# %%
refused(launches.add_one, x, 2048)

# %% [markdown]
# If the code does not check its launches, the emulator still records which launch failed, and reports that launch at
# the next one:

# %%
first, then = torch.zeros(4), torch.zeros(4)
on_cpu = inline("launches", LAUNCHES_CPP, LAUNCHES_CU, FUNCTIONS, target="emulator")
on_cpu.add_one_unchecked(first, 2048)
reported(LAUNCHES_CU, on_cpu.add_one, then, 256)

# %% [markdown] syllabus="3.6d"
# ### Errors inside a kernel
#
# A launch is not an ordinary call: on a GPU it puts the kernel in a queue and returns before the kernel has begun.
# So a check can only report what is wrong with the *launch*. An error inside the kernel is reported later, by some
# call that waits for the GPU. After such an error, the process can no longer use the GPU. This kernel writes through
# a null pointer. On a GPU, the next cell runs this kernel twice, each time in a separate process: first with the
# setting `CUDA_LAUNCH_BLOCKING=0` and then with `CUDA_LAUNCH_BLOCKING=1`.

# %%
CRASH_CU = """
#include <cuda_runtime.h>

__global__ void crash_kernel(volatile float* nowhere) {
  if (threadIdx.x == 3) nowhere[0] = 1;
}

void launch_crash(cudaStream_t stream) { crash_kernel<<<2, 32, 0, stream>>>(nullptr); }
"""
CRASH_CPP = """
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_crash(cudaStream_t stream);

void crash() {
  launch_crash(c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
crashing = inline("crashing", CRASH_CPP, CRASH_CU, ["crash"])

# %%
CRASH = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location(sys.argv[1], sys.argv[2])
crashing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(crashing)
x = torch.zeros(4, device="cuda")
for name, call in (("crash()", crashing.crash), ("x.sum().item(), which is correct", lambda: x.sum().item())):
    try:
        call()
        print(f"    {name}: no error")
    except RuntimeError as error:
        print(f"    {name}:", str(error).splitlines()[0])
        break
"""
if on_gpu:
    for blocking in ("0", "1"):
        print(f"CUDA_LAUNCH_BLOCKING={blocking}")
        settings = {**os.environ, "CUDA_LAUNCH_BLOCKING": blocking}
        command = [sys.executable, "-c", CRASH, crashing.__name__, crashing.__file__]
        print(subprocess.run(command, env=settings, capture_output=True, text=True).stdout)
else:
    reported(CRASH_CU, crashing.crash)

# %% [markdown]
# On a GPU, the first run reports the error at `x.sum().item()`, a line that is not the cause. With
# `CUDA_LAUNCH_BLOCKING=1` each launch waits for its kernel, so the error is reported at the launch that caused it.
# Use this setting whenever you cannot explain where an error comes from. The emulator does not need this setting: a
# launch on the emulator returns only when the kernel has ended, and the report names the kernel, the block and the
# thread. The process can continue after the report:

# %%
launches.add_one(x, 256)
print(x.tolist())

# %% [markdown] syllabus="3.6a"
# ### Launch on the current stream
#
# A stream is a queue of work for the GPU. The work in one stream runs in order. Torch puts its work on the *current*
# stream, so you must launch your kernel on the current stream, too. The fourth argument in `<<<...>>>` is the
# stream. If this argument is left out, or null, the kernel runs on the *default* stream. In most programs the
# default stream is also the current stream. But a program can make another stream current, a *side stream*. There is
# no order between two side streams of torch, or between a side stream and the default stream: torch creates its side
# streams as non-blocking streams, so neither waits for the other.
#
# On a GPU, the next cell makes a side stream current. This stream first waits about 50 ms and then fills `x` with
# the value 41. Then a kernel adds 1. The cell runs this twice: in the first run the kernel is on the current stream,
# and in the second run it is on the default stream.

# %%
if on_gpu:
    results = {}
    for name, add_one in (
        ("current", lambda x: launches.add_one(x, 256)),
        ("default", launches.add_one_on_default_stream),
    ):
        x = torch.zeros(4, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(100_000_000)  # keeps the GPU busy for about 50 ms
            x.fill_(41)
            add_one(x)
        torch.cuda.synchronize()
        results[name] = x.tolist()
else:
    x = torch.full((4,), 41.0)
    launches.add_one(x, 256)
    results = {"current": x.tolist()}
    print("the emulator has a single stream, and no launch is ever late: no race to be seen")
for name, result in results.items():
    print(f"on the {name} stream: {result}")

# %% [markdown]
# On a GPU, the second line shows 41: the kernel on the default stream did not wait for `fill_`. It added 1 to the
# zeros, and later `fill_` overwrote the result. To avoid this mistake, pass `c10::cuda::getCurrentCUDAStream()` in
# the launch.

# %% [markdown] syllabus="3.6b"
# ### Launch on the tensor's device
#
# If a machine has several GPUs, one of them is the current device. A kernel runs on the current device, even if its
# tensors are on another GPU. So a function needs a device guard: an object that makes the tensor's device current
# until the function ends.

# %%
places = [f"cuda:{k}" for k in range(torch.cuda.device_count())] if on_gpu else ["cpu"]
for place in places:
    x = torch.zeros(1, device=place)
    print(f"tensor on {x.device}: inside the guard device {launches.device_inside_guard(x)} is current")
print("after it:", torch.cuda.current_device() if on_gpu else "nothing has changed; the emulator has one device")

# %% [markdown]
# Each function of stage 3 first checks its arguments and sets a device guard, and after its launch it checks the
# launch.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/launch_errors` and `3/when_it_shows`. `show("3/launch_errors")` in a cell checks the first of
# them here.

# %% [markdown] syllabus="3.7a 3.7b"
# ## The kernels of the cell
#
# You now know all the parts. This is the forward kernel of stage 3. It makes one pass over memory: for each row and
# unit, it reads 4 numbers and writes 5.

# %%
kernels = (root / "stages" / "stage3_cuda_pointers" / "csrc" / "lltm_kernel.cu").read_text()
forward, backward = kernels.split("// One thread per (row, unit).")[1:]
print("// One thread per (row, unit)." + forward.rstrip())

# %% [markdown]
# Apart from the gates, which the backward needs, no intermediate result is written to memory. Stage 2 stores its
# intermediate results in half a dozen tensors. In stage 3 such results stay in *registers*, the fast storage that
# each thread has for its own variables. The backward kernel is built in the same way, from the formulas of notebook
# 01:

# %%
print(backward[backward.index("    const scalar_t input_gate") : backward.index("constexpr int kThreads")].rstrip())

# %% [markdown]
# The next cell first calls the C++ functions directly, without autograd. Then it compares the whole cell with the
# float64 reference, in float32 and in float64. The state sizes are 70, which is less than one block of 256 threads,
# and 1025, which needs several blocks and does not fill the last one. The third case is an empty batch.

# %%
from lltm_stage3 import _C

new_h, new_cell, X, gates = _C.forward(*inputs.values())
d_input, d_weights, d_bias, d_old_h, d_old_cell = _C.backward(
    new_h, new_cell, inputs["weights"], X, gates, new_cell, [True] * 5
)
for name, tensor in {"gates": gates, "new_h": new_h, "new_cell": new_cell, "d_old_cell": d_old_cell}.items():
    print(f"{name:10s} {tuple(tensor.shape)}")
for dtype in (torch.float32, torch.float64):
    for size in ((3, 5, 70), (2, 1, 1025), (0, 4, 8)):
        case = Case(*size, dtype=dtype, device=device())
        print(case, "-", difference(case, outputs(stage3.lltm, case)) or "agrees with the reference")

# %% [markdown] syllabus="3.7c 3.7d"
# ### What stays in ATen
#
# The profiler counts the ATen calls of one step, forward and backward, for stage 1's equations, for stage 2 and for
# stage 3. We count only the outermost ATen calls, not the calls inside another ATen call. Views are left out.

# %%
os.environ["KINETO_LOG_LEVEL"] = "6"  # hides the messages of the profiler itself
from torch.profiler import ProfilerActivity, profile

VIEWS = ("chunk", "detach", "expand", "narrow", "slice", "split", "t", "transpose", "unbind", "unsafe_chunk", "view")
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu


def both_passes(cell, case):
    inputs, gradients = case.inputs(), case.gradients()
    return lambda: torch.autograd.grad(cell(*inputs.values()), list(inputs.values()), gradients)


def profiled(call):
    """The names of the outermost ATen calls, without views, and of the kernels on a GPU."""
    call()
    with profile(activities=activities, acc_events=True) as profiler:
        call()

    def is_outermost(event):
        while (event := event.cpu_parent) is not None:
            if event.name.startswith("aten::"):
                return False
        return True

    operations = [event for event in profiler.events() if event.name.startswith("aten::") and is_outermost(event)]
    names = [event.name.removeprefix("aten::") for event in operations]
    on_device = [event for event in profiler.events() if event.device_type.name == "CUDA"]
    return [name for name in names if name not in VIEWS], on_device


# %%
case = Case(16, 32, 128, device=device())
cells = {"stage 1": load(1).equations, "stage 2": load(2).lltm, "stage 3": stage3.lltm}
calls = {name: profiled(both_passes(cell, case)) for name, cell in cells.items()}
for name, (operations, on_device) in calls.items():
    print(f"{name}: {len(operations)} ATen calls", f"and {len(on_device)} kernels and copies" if on_gpu else "")
print("\nleft in stage 3:", ", ".join(calls["stage 3"][0]))

# %% [markdown]
# What remains is three matrix products, the concatenation before them and a sum for the bias: operations that a
# library does well. The list contains no pointwise operations any more. Two launches have replaced them. These
# launches are not ATen calls, so they are not in the list. The other calls allocate memory. Stage 3 allocates with
# `empty`, not `zeros`. The kernels of stage 3 write each element, so `zeros` would only add one more pass over
# memory and, on a GPU, one more kernel:

# %%
for name, make in (("empty", torch.empty), ("zeros", torch.zeros)):
    with profile(activities=activities, acc_events=True) as profiler:
        make(16, 3 * 128, device=device())
    names = [event.name for event in profiler.events() if event.name.startswith("aten::")]
    print(f"torch.{name}: {', '.join(names)}")

# %% [markdown]
# How do you know that each element *is* written? `outputs` above ran with a torch setting that fills every tensor
# from `empty` with NaN, in C++ as well. NaN is not equal to any number, so the comparison would have failed.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/forward_kernel`, `3/backward_kernel`, `3/strided_gradient`, `3/gru_kernel` and `3/gru_backward`.
# `show("3/forward_kernel")` in a cell checks the first of them here.

# %% [markdown]
# ## Threads that work together
#
# So far no thread has needed a result of another thread. This is different for a sum over the batch. The gradient of
# the bias, `d_bias = d_z.sum(dim=0)`, is such a sum: `d_z` has shape (B, 3S), and `d_bias` has one number for each
# of the 3S columns. Stage 3 leaves this sum to ATen. Stage 6 computes it in its own kernel. In this section you
# write this sum in four ways. They differ in how many threads add up a column: one thread, the 32 threads of a warp,
# 8 threads of a block, or 128 threads in 16 blocks.
#
# The host code is the same for all four kernels: `run` writes into a given tensor, and `make` into a new one. All
# kernels run on the emulator, which checks every access.

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
# To compare the two, the workbook has small wrong programs in `common/emulator/programs/mistakes`. They are ordinary programs
# with a `main`. In the program below, each of four blocks adds up 64 numbers, which is right. Then each block adds
# its sum to the total without an atomic, which is wrong.

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
from common.results import records
from common.studies import sanitizer, tool_comparison

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
import json

recorded = json.loads(records.TOOLS_RECORD.read_text())["rows"] if records.TOOLS_RECORD.exists() else []
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

# %% [markdown]
# ## Four mistakes that a comparison of values can miss
#
# Each of these mistakes has been in published kernels. `lab` builds the kernels, as in "Threads that work
# together".

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
# **Your turn:** `3/missing_barrier` and `3/unwritten`. `show("3/missing_barrier")` in a cell checks the first of
# them here.

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
# ## Charts of ATen calls, compilation time and speed
#
# The first two charts show the number of ATen calls of each stage, and the compilation time with and without torch's
# headers.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 2.4), layout="constrained")
bars = left.barh(list(calls), [len(operations) for operations, _ in calls.values()], color=[*map(colour, calls)])
left.bar_label(bars, padding=3)
left.set_title("ATen calls in a step, forward and backward")
left.margins(x=0.15)
bars = right.barh(list(compile_seconds), list(compile_seconds.values()), color=BLUE)
right.bar_label(bars, fmt="%.1f s", padding=3)
right.set_title(f"Compiling an empty kernel here, with {Path(COMPILER[0]).name}")
right.margins(x=0.15)
for axis in (left, right):
    axis.invert_yaxis()
plt.show()

# %% [markdown]
# The speed of a kernel can only be measured on a GPU. The next charts show how fast each implementation is, compared
# with the cell in plain PyTorch ("eager"). There is one chart for each machine that is recorded in docs/results:

# %%
from IPython.display import display

from common.figures import plots
from common.results import records
from common.results.rows import select

machines = [result for result in records.read_recorded() if select(result, stage=3, device="cuda")]
for result in machines:
    display(plots.plot_speedups(result, device="cuda"))
if not machines:
    print("no machine with stage 3 on a GPU is recorded yet; `make bench` measures yours")

# %% [markdown]
# ## Summary
#
# - A kernel is the body of a loop. The guard is the condition of this loop. Compute the index in 64 bits. A batch of
#   more than 65535 rows needs a loop in the kernel.
# - A function that launches a kernel checks every argument, sets the device guard, gets the stream, launches, and
#   checks the launch, in this order.
# - Use the functions of `std::`, and `scalar_t(1)` instead of `1.0`. Use `expm1` near zero, and a conditional
#   expression if a mask could multiply infinity by zero.
# - gradcheck in float64 finds mistakes that float32 hides.
# - The lanes of a warp can combine results by shuffles. The threads of a block can use shared memory, with a
#   barrier. Different blocks can use atomics on global memory.
# - Right values do not prove that a kernel is right. Run a new kernel once with a tool that checks every access: the
#   emulator or compute-sanitizer.
# - If neighbouring threads access neighbouring elements, a warp needs 4 sectors for 32 floats. If not, the warp may
#   need 32.
# - A `.cu` without torch headers compiles in seconds, but its templates need an explicit instantiation for each
#   type.
#
# Next: run `make diff-2-3` to see the stage as a diff. Then read notebook 04, where the same kernels use
# `gates[row][1][unit]` instead of index arithmetic.
