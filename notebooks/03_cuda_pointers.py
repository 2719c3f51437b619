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
# that runs on the GPU. In stage 3 you write the kernels yourself. Three notebooks show how. This one explains what a
# launch is, how it distributes work over threads, and which mistakes are common at the edges of a grid, in the types
# of numbers and in mathematical functions. Notebook 03b shows what a kernel needs from the C++ code around it, and
# 03c how threads work together, and how to find what goes wrong.
#
# You need notebook 02 and a C++ compiler, but no GPU. On a machine without a GPU, the workbook's emulator runs the
# same source on the CPU, thread by thread. The emulator's results are those of a GPU, except for rounding: nvcc, the
# CUDA compiler, may turn `a * b + c` into one operation that rounds only once, and CUDA's `exp` and `tanh` may differ
# from the CPU's in the last bits. The emulator says nothing about a
# kernel's speed on a GPU. But it checks every access and reports what a wrong kernel did. So kernels that are wrong
# on purpose run on the emulator here, even if there is a GPU, because they would corrupt the GPU's memory. The
# notebook takes about an hour. The first run spends a minute of this time compiling.

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
# A kernel with one row for each block in y has this limit. Without a check of the launch, there is no error message,
# and the results stay uninitialised. A loop over the rows removes the limit. The argument `blocks` limits the grid
# in y. When a thread has finished a row, it adds `gridDim.y` to the row number and continues there:

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
  if (guard == 1) inside = (col < S) < S;   // 1: two comparisons
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
# Without a guard, three threads write to memory that may belong to another tensor. The guard in the second line
# looks right, and it does not stop these threads. What is the value of its condition?

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
# macro `AT_DISPATCH_FLOATING_TYPES` connects the two. Notebook 03b explains this macro.

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
from common.figures.plots import BLUE, STYLE, VERMILION

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
for (name, error), ink in zip(errors.items(), (VERMILION, BLUE), strict=True):
    axis.loglog(-z.cpu(), error.clamp(min=1e-9), ".", color=ink, label=name)
axis.set(title="Relative error of elu in float32, just below zero", xlabel="-z", ylabel="relative error")
axis.legend(frameon=False)
plt.show()

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/gate_functions`. `show("3/gate_functions")` in a cell checks it here.

# %% [markdown]
# ## Summary
#
# - A kernel is the body of a loop. The guard is the condition of this loop. Compute the index in 64 bits. A batch of
#   more than 65535 rows needs a loop in the kernel.
# - Use the functions of `std::`, and `scalar_t(1)` instead of `1.0`. Use `expm1` near zero, and a conditional
#   expression if a mask could multiply infinity by zero.
# - gradcheck in float64 finds mistakes that float32 hides.
#
# Next: notebook 03b, where these kernels become a part of PyTorch.
