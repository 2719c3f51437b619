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
# # 04: CUDA kernels over packed accessors
#
# The kernels of notebook 03 compute each index by hand, and they work only if every tensor is contiguous. In this
# notebook, `gates[row][1][unit]` replaces the index arithmetic and works for any strides. An object called an
# *accessor* makes this notation possible. You will see
#
# - that the accessor and the index arithmetic access the same element,
# - what an accessor consists of, and what a kernel can do with it that it cannot do with a pointer alone,
# - what an accessor does not check,
# - and how much an accessor costs.
#
# You need notebooks 03 to 03c and a C++ compiler. Without a GPU, the emulator runs the kernels. Kernels that are
# wrong on purpose run on the emulator on every machine. The notebook takes about an hour. The first run spends a
# minute or two of this time compiling.

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

from common import load
from common.build.nvcc import find_nvcc
from common.cell.case import Case, difference, outputs
from common.emulator import demangle
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
    except (RuntimeError, IndexError) as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")


def reported(source, call, *arguments):
    """Calls a kernel on the emulator; prints the report, if there is one, and the lines of the .cu that it names."""
    try:
        call(*arguments)
        print("no error")
    except RuntimeError as error:
        print(str(error).rstrip())
        lines = source.lstrip("\n").splitlines()
        for number in sorted({int(number) for number in re.findall(r"(?<!launched )in \w+\.cu:(\d+)", str(error))}):
            print(f"{number:4d} | {lines[number - 1]}")


# %% [markdown]
# ## `gates[row][1][unit]` replaces the index arithmetic
#
# The gates of a step are a tensor of shape (B, 3S): each row contains the input gates, then the output gates, then
# the candidates. The output gate of a row and unit is at `row * 3 * S + 1 * S + unit`. This formula is easy to get
# wrong, and a wrong formula causes no error. If you view the same memory as (B, 3, S), the gate is a dimension of
# its own:

# %%
B, S = 2, 4
flat = torch.arange(B * 3 * S, dtype=torch.float32, device=device()).view(B, 3 * S)
gates = flat.view(B, 3, S)
print("the same memory:", gates.data_ptr() == flat.data_ptr(), "  strides", gates.stride())
row, unit = 1, 2
print("by hand", flat.view(-1)[row * 3 * S + 1 * S + unit].item(), "  by name", gates[row, 1, unit].item())

# %% [markdown]
# An accessor makes the notation `gates[row][1][unit]` possible in a kernel.
# `PackedTensorAccessor64<float, 3, RestrictPtrTraits>` says that the elements are floats, that there are three
# dimensions, and that sizes and strides have 64 bits. `RestrictPtrTraits` is a promise about the pointer, which the
# section about `__restrict__` explains.
#
# The two kernels here compute *where* each element is. For each gate, they write its distance from the start of the
# tensor into `place`. `by_name_kernel` uses accessors, and `by_hand_kernel` uses the index arithmetic of stage 3.

# %%
PLACES_CU = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;
template <typename scalar_t, int dimensions>
using Accessor = at::PackedTensorAccessor64<scalar_t, dimensions, at::RestrictPtrTraits>;

__global__ void by_name_kernel(Accessor<int64_t, 3> place, Accessor<const float, 3> gates) {  // [B,3,S], any strides
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= gates.size(2)) return;
  for (int gate = 0; gate < 3; ++gate) place[row][gate][unit] = &gates[row][gate][unit] - gates.data();
}

__global__ void by_hand_kernel(int64_t* place, const float* gates, int64_t S) {  // [B,3S]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  for (int gate = 0; gate < 3; ++gate) {
    const int64_t at = row * 3 * S + gate * S + unit;
    place[at] = &gates[at] - gates;
  }
}
"""

# %% [markdown]
# The functions that launch these kernels take tensors. `by_name` makes the accessors at the launch. So this `.cu`
# includes torch's headers, and the `.cpp` only declares the two functions for the binding.

# %%
PLACES_CU += """
dim3 grid_for(int64_t B, int64_t S) { return dim3((S + 127) / 128, B); }

void by_name(const Tensor& place, const Tensor& gates) {
  by_name_kernel<<<grid_for(gates.size(0), gates.size(2)), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
      place.packed_accessor64<int64_t, 3, at::RestrictPtrTraits>(),
      gates.packed_accessor64<const float, 3, at::RestrictPtrTraits>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void by_hand(const Tensor& place, const Tensor& gates) {
  by_hand_kernel<<<grid_for(gates.size(0), gates.size(2)), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
      place.mutable_data_ptr<int64_t>(), gates.const_data_ptr<float>(), gates.size(2));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
PLACES_CPP = """
#include <ATen/core/Tensor.h>

void by_name(const at::Tensor& place, const at::Tensor& gates);
void by_hand(const at::Tensor& place, const at::Tensor& gates);
"""
places = inline("places", PLACES_CPP, PLACES_CU, ["by_name", "by_hand"])


def asked(call, gates):
    """The places that a kernel has written down for a tensor of gates."""
    place = torch.full(gates.shape, -1, device=device())
    call(place, gates)
    return place.cpu()


# %% [markdown] syllabus="4.1a 4.1b"
# ### An accessor and the arithmetic give the same element
#
# For contiguous gates, the accessor and stage 3's arithmetic give the same places:

# %%
print("by name:", asked(places.by_name, gates)[1].tolist())
print("by hand:", asked(places.by_hand, gates)[1].tolist())

# %% [markdown]
# Now the gates have another layout in memory: the tensor is created with shape (S, 3, B) and then permuted. The
# arithmetic still gives the places of the contiguous layout, which are wrong here:

# %%
turned = torch.zeros(S, 3, B, device=device()).permute(2, 1, 0)
print("shape", tuple(turned.shape), "strides", turned.stride())
right = turned.storage_offset() + sum(
    index * stride
    for index, stride in zip(
        torch.meshgrid(*map(torch.arange, (B, 3, S)), indexing="ij"), turned.stride(), strict=True
    )
)
for name, call in (("by name", places.by_name), ("by hand", places.by_hand)):
    place = asked(call, turned)
    print(f"{name}: {place[1].tolist()}  right: {torch.equal(place.view(-1), right.reshape(-1))}")

# %% [markdown]
# An accessor only multiplies each index by its stride and adds the products to its pointer. `gates[row]` is an
# accessor of two dimensions, and `gates[row][1]` is an accessor of one dimension. The compiler inlines all of this,
# so none of these objects exists when the kernel runs.

# %% [markdown] syllabus="4.1c"
# ### Accessors in code for the CPU
#
# The plain `TensorAccessor` is for host code (code that runs on the CPU), such as a loop that computes something for
# which ATen has no operation. A `TensorAccessor` also works for any strides. `accessor<float, 2>()` raises an error
# if the tensor has another type or another number of dimensions. There is no kernel here, so there is no `.cu`.

# %%
SUM_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>

double sum_on_cpu(const at::Tensor& x) {  // [rows,columns], any strides
  at::TensorAccessor<float, 2> values = x.accessor<float, 2>();
  double sum = 0;
  for (int64_t row = 0; row < values.size(0); ++row)
    for (int64_t column = 0; column < values.size(1); ++column) sum += values[row][column];
  return sum;
}
"""
sums = inline("sums", SUM_CPP, "", ["sum_on_cpu"])

# %%
x = torch.arange(12.0).view(3, 4)
print(sums.sum_on_cpu(x), sums.sum_on_cpu(x.t()), sums.sum_on_cpu(x[:, ::2]), "of", x[:, ::2].sum().item())
refused(sums.sum_on_cpu, x.double())
refused(sums.sum_on_cpu, x[0])

# %% [markdown] syllabus="4.1d"
# ### Why kernels need packed accessors
#
# What does an accessor contain? `bytes` returns how many bytes each of the three kinds of accessors has, for three
# dimensions. `refers_to_the_tensor` returns whether an accessor only points to the sizes that are stored in its
# tensor:

# %%
KINDS_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>

#include <vector>

using at::Tensor;

std::vector<int64_t> bytes() {
  return {sizeof(at::TensorAccessor<float, 3>), sizeof(at::PackedTensorAccessor32<float, 3>),
          sizeof(at::PackedTensorAccessor64<float, 3>)};
}

bool refers_to_the_tensor(const Tensor& x) { return x.accessor<float, 3>().sizes().data() == x.sizes().data(); }

int64_t size_by_32(const Tensor& x) { return x.packed_accessor32<float, 1>().size(0); }
int64_t stride_by_32(const Tensor& x) { return x.packed_accessor32<float, 1>().stride(0); }
int64_t size_by_64(const Tensor& x) { return x.packed_accessor64<float, 1>().size(0); }
"""
FUNCTIONS = ["bytes", "refers_to_the_tensor", "size_by_32", "stride_by_32", "size_by_64"]
kinds = inline("kinds", KINDS_CPP, "", FUNCTIONS)

# %%
for name, size in zip(
    ("TensorAccessor", "PackedTensorAccessor32", "PackedTensorAccessor64"), kinds.bytes(), strict=True
):
    print(f"{name:24s}{size:3d}")
print("TensorAccessor refers to the sizes in the tensor:", kinds.refers_to_the_tensor(torch.zeros(2, 3, 4)))

# %% [markdown]
# The 24 bytes of a `TensorAccessor` are three pointers: to the data, to the sizes and to the strides. The last two
# point into the tensor object, which is in the CPU's memory. A kernel that followed them would read an address that
# is not valid on the GPU. The packed accessors contain the sizes and strides themselves, next to the pointer. That
# is `8 + 2 · 3 · 4` bytes with 32-bit numbers, and `8 + 2 · 3 · 8` bytes with 64-bit numbers. These accessors are
# passed to the kernel by value, as arguments.

# %% [markdown] tags=["exercise"]
# **Your turn:** `4/element_address` and `4/accessor_forward`. `make check EX=4/element_address` in a terminal copies
# the files of the exercise for you and checks your solution. The cell below runs the same check here.

# %%
from common.exercises import show

show("4/element_address")

# %% [markdown] syllabus="4.2a"
# ## What accessors change
#
# ### 32 or 64 bits
#
# `packed_accessor32` accepts tensors of up to 2³¹ - 1 elements. We can try a larger tensor, because it needs almost
# no memory if all its elements share one address:

# %%
huge = torch.zeros(1).expand(2**31)
print("by 64:", kinds.size_by_64(huge))
refused(kinds.size_by_32, huge)

# %% [markdown]
# `packed_accessor32` raises an error, and the message recommends `packed_accessor64`. However, `packed_accessor32`
# checks only the number of elements. A tensor of two elements that are 2³² numbers apart passes the check. Its
# stride becomes 0 when it is cut to 32 bits, so both indices refer to the first element. (There are 16 GB between
# the two elements. NumPy can describe such a view without allocating this memory, and we never access it.)

# %%
import numpy

far_apart = torch.from_numpy(numpy.lib.stride_tricks.as_strided(numpy.zeros(1, numpy.float32), (2,), (4 * 2**32,)))
print("stride", far_apart.stride(0), " by 32:", kinds.stride_by_32(far_apart))

# %% [markdown]
# What do you gain with 32 bits? The integer units of a GPU work on 32 bits. So a 64-bit index needs two registers,
# and a product of two such indices needs several instructions. nvcc, the CUDA compiler, prints how many registers
# each thread of a kernel needs (`-Xptxas -v`). The two kernels below differ only in the type of their index.

# %%
from torch.utils.cpp_extension import include_paths


def compiled(source, *flags):
    """What nvcc prints for a source with torch's headers, compiled for an H200 (sm_90)."""
    folder = root / "build" / "notebooks" / "nvcc"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(source)
    command = [find_nvcc(), "-std=c++20", "-arch=sm_90", "--expt-relaxed-constexpr", *flags, "kernel.cu"]
    command += [f"-I{path}" for path in include_paths()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return demangle(done.stdout + done.stderr)


def registers(source, *flags):
    """Registers per thread for each kernel of a source, by the kernel's name."""
    printed = compiled(source, "-cubin", "-Xptxas", "-v", "-o", "kernel.cubin", *flags)
    return dict(re.findall(r"entry function '(?:void )?(\w+(?:<\w+>)?).*?Used (\d+) registers", printed, re.DOTALL))


INDEX = """
#include <ATen/core/TensorAccessor.h>
template <typename index_t>
__global__ void product(at::GenericPackedTensorAccessor<float, 3, at::RestrictPtrTraits, index_t> x) {
  const index_t row = blockIdx.y, unit = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
  x[row][0][unit] = x[row][1][unit] * x[row][2][unit];
}
template __global__ void product(at::GenericPackedTensorAccessor<float, 3, at::RestrictPtrTraits, int32_t>);
template __global__ void product(at::GenericPackedTensorAccessor<float, 3, at::RestrictPtrTraits, int64_t>);
"""
if find_nvcc():
    found = registers(INDEX)
    print("32 bits:", found["product<int>"], "registers   64 bits:", found["product<long>"], "registers")
else:
    print("no nvcc here")

# %% [markdown]
# nvcc 13.0 prints 12 registers with 32 bits and 16 with 64 bits. If the tensors are known to be small, 32 bits are
# the better choice. The workbook's cell works for any B and S, so it uses 64 bits.

# %% [markdown]
# Do fewer registers save time? On a GPU, the next cell measures both kernels for a tensor of 192 MiB, of which they
# read two thirds and write one third. The times are those of the kernels alone, as the profiler recorded them:

# %%
from torch.profiler import ProfilerActivity, profile

PRODUCT_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_product(const at::Tensor& x, int64_t bits, cudaStream_t stream);

void product(const at::Tensor& x, int64_t bits) {
  launch_product(x, bits, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
PRODUCT_CU = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <cuda_runtime.h>

template <typename index_t>
__global__ void product_kernel(at::GenericPackedTensorAccessor<float, 3, at::RestrictPtrTraits, index_t> x) {
  const index_t row = blockIdx.y, unit = blockIdx.x * index_t(blockDim.x) + threadIdx.x;
  if (unit < x.size(2)) x[row][0][unit] = x[row][1][unit] * x[row][2][unit];
}

void launch_product(const at::Tensor& x, int64_t bits, cudaStream_t stream) {
  const dim3 blocks((x.size(2) + 255) / 256, x.size(0));
  if (bits == 32) {
    product_kernel<int32_t><<<blocks, 256, 0, stream>>>(x.packed_accessor32<float, 3, at::RestrictPtrTraits>());
  } else {
    product_kernel<int64_t><<<blocks, 256, 0, stream>>>(x.packed_accessor64<float, 3, at::RestrictPtrTraits>());
  }
}
"""
products = inline("products", PRODUCT_CPP, PRODUCT_CU, ["product"])
x = torch.rand(16384, 3, 1024, device="cuda") if on_gpu else torch.rand(3, 3, 70)
for bits in (32, 64):
    products.product(x, bits)
    print(f"{bits} bits: equal", torch.equal(x[:, 0], x[:, 1] * x[:, 2]), end="  ")
    if on_gpu:
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            for _ in range(100):
                products.product(x, bits)
        times = torch.tensor([event.device_time for event in profiler.events() if "product_kernel" in event.name])
        print("{1:.1f} us ({0:.1f} to {2:.1f})".format(*times.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()))
    else:
        print("no GPU here, so no time")

# %% [markdown]
# On an NVIDIA H200 with torch 2.11, the cell above printed
#
#     32 bits: equal True  66.1 us (64.9 to 66.2)
#     64 bits: equal True  68.0 us (66.8 to 68.0)
#
# The quartiles are in brackets. The kernel with 32-bit indices is 3 % faster. Most of the time is the time of the
# memory, which needs the same number of bytes in both cases.

# %% [markdown] syllabus="4.2b"
# ### `__restrict__` is a promise to the compiler
#
# `RestrictPtrTraits` marks the pointer in the accessor as `__restrict__`: you promise that the kernel accesses these
# elements through no other pointer. The promise matters if a kernel writes between two reads. Each of the four
# kernels here reads `x[k]`, writes to `out`, and reads `x[k]` again. If `out` may overlap `x`, the write may have
# changed `x[k]`, so the compiler must keep the second read. How many reads does nvcc generate, for pointers and for
# accessors, without and with the promise? The cell counts them in PTX, NVIDIA's readable assembly language:

# %%
PROMISE = """
#include <ATen/core/TensorAccessor.h>
template <template <typename> class Traits>
using Accessor = at::PackedTensorAccessor64<float, 1, Traits>;

__global__ void pointers(float* out, float* x) {
  const int k = threadIdx.x;
  out[k] = x[k];
  out[k + 1] = 2 * x[k];
}
__global__ void restrict_pointers(float* __restrict__ out, float* __restrict__ x) {
  const int k = threadIdx.x;
  out[k] = x[k];
  out[k + 1] = 2 * x[k];
}
__global__ void accessors(Accessor<at::DefaultPtrTraits> out, Accessor<at::DefaultPtrTraits> x) {
  const int k = threadIdx.x;
  out[k] = x[k];
  out[k + 1] = 2 * x[k];
}
__global__ void restrict_accessors(Accessor<at::RestrictPtrTraits> out, Accessor<at::RestrictPtrTraits> x) {
  const int k = threadIdx.x;
  out[k] = x[k];
  out[k + 1] = 2 * x[k];
}
"""
if find_nvcc():
    compiled(PROMISE, "-ptx", "-o", "kernel.ptx")
    ptx = (root / "build" / "notebooks" / "nvcc" / "kernel.ptx").read_text()
    for kernel in ptx.split(".entry ")[1:]:
        name = demangle(kernel.partition("(")[0]).partition("(")[0]
        print(f"{name:20s}{kernel.count('ld.global')} reads")
else:
    print("no nvcc here")

# %% [markdown]
# nvcc 13.0 generates 2, 1, 2 and 2 reads. With pointers, the promise removes one read. In an accessor the promise
# has the same meaning, but this compiler does not use it, because there the pointer is a member of a struct. So the
# promise has no effect on these reads. It does no harm either, and another compiler may use it. If a kernel needs a
# value twice, read it once into a variable, as the stage's kernels do. And do not break the promise: never pass the
# same tensor as input and output.

# %% [markdown] syllabus="4.2c"
# ### Strided tensors without a copy
#
# Stage 3 calls `contiguous()` on `old_cell`, `grad_h` and `grad_cell`. This call copies a tensor that is not
# contiguous. Stage 4 reads the tensors with the strides that they have. Here all three are transposed, as they would
# be in a model whose last dimension is the batch. The profiler records only those calls of `contiguous()` that have
# to copy.

# %%
os.environ["KINETO_LOG_LEVEL"] = "6"  # hides the messages of the profiler itself

stages = {"stage 3": load(3).lltm, "stage 4": load(4).lltm}
B, I, S = 16, 32, 128


def transposed(tensor):
    """The same numbers, column by column in memory."""
    return tensor.detach().t().contiguous().t()


def step(cell, layout):
    """A step forward and backward; `layout` changes the layout of old_cell and of the upstream gradients."""
    case = Case(B, I, S, device=device())
    inputs = case.inputs()
    inputs["old_cell"] = layout(inputs["old_cell"]).requires_grad_()
    gradients = [layout(gradient) for gradient in case.gradients()]
    return lambda: torch.autograd.grad(cell(*inputs.values()), list(inputs.values()), gradients)


def copies(call):
    """How many tensors `call()` copies to make them contiguous."""
    call()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        call()
    return sum(event.name == "aten::contiguous" for event in profiler.events())


counted = {}
for name, cell in stages.items():
    counted[name] = [copies(step(cell, layout)) for layout in (torch.clone, transposed)]
    print(f"{name}: {counted[name][0]} copies with contiguous tensors, {counted[name][1]} with transposed ones")

# %% [markdown]
# If a loss ends in `sum()`, the gradient that the cell gets is a single number, expanded to the shape of the tensor:
# the strides are zero. Stage 4 reads this one number for each element. Stage 3 first writes B · S copies of this
# number to memory. The results of both stages are right:

# %%
for layout, grads in (("transposed", "both"), ("sliced", "both"), ("contiguous", "expanded")):
    case = Case(3, 5, 70, device=device(), layout=layout, grads=grads)
    for name, cell in stages.items():
        print(f"{name}, {case}:", difference(case, outputs(cell, case)) or "agrees")

# %% [markdown]
# A copy is a kernel that reads and writes every element once. After the copy, neighbouring threads of the next
# kernel read neighbouring elements. Without the copy, neighbouring threads may read elements that are far apart.
# Which way is faster depends on the strides. With accessors you can choose.

# %% [markdown] syllabus="4.2c"
# ### Strided tensors, read as if they were contiguous
#
# What would happen if stage 3 did not call `contiguous()`? The first kernel below, `walk_kernel`, copies consecutive
# elements through a pointer, whatever the strides are. The second, `copy_kernel`, copies with accessors. We pass
# three tensors of 3 rows and 4 units: every other column of a larger tensor, a single number that is expanded, and a
# transposed tensor.

# %%
STRIDED_CU = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;
template <typename scalar_t, int dimensions>
using Accessor = at::PackedTensorAccessor64<scalar_t, dimensions, at::RestrictPtrTraits>;

__global__ void walk_kernel(float* out, const float* x, int64_t count) {  // both [count]
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = x[k];
}

void walk(const Tensor& out, const Tensor& x) {
  walk_kernel<<<(x.numel() + 31) / 32, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      out.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

__global__ void copy_kernel(Accessor<float, 2> out, Accessor<const float, 2> x) {  // both [B,S]
  const int64_t unit = threadIdx.x, row = blockIdx.y;
  if (unit < x.size(1)) out[row][unit] = x[row][unit];
}

void copy(const Tensor& out, const Tensor& x) {
  copy_kernel<<<dim3(1, x.size(0)), 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      out.packed_accessor64<float, 2, at::RestrictPtrTraits>(),
      x.packed_accessor64<const float, 2, at::RestrictPtrTraits>());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
STRIDED_CPP = """
#include <ATen/core/Tensor.h>

void walk(const at::Tensor& out, const at::Tensor& x);
void copy(const at::Tensor& out, const at::Tensor& x);
"""
strided = inline("strided", STRIDED_CPP, STRIDED_CU, ["walk", "copy"], target="emulator")

# %%
wide, one, tall = torch.arange(24.0).view(3, 8), torch.ones(1), torch.arange(12.0).view(4, 3)
STRIDED = {"every other column": wide[:, ::2], "expanded": one.expand(3, 4), "transposed": tall.t()}
for name, x in STRIDED.items():
    print(f"--- {name}, strides {x.stride()}")
    out = torch.empty(3, 4)
    reported(STRIDED_CU, strided.walk, out, x)
    print("agrees:", torch.equal(out, x))

# %% [markdown]
# With the first tensor, `walk_kernel` also reads the columns in between. These columns do not belong to `x`,
# although they are in the storage of `x`. With the second tensor, the kernel reads past the end of the storage,
# which has a single number. With the third tensor the emulator has nothing to report: the kernel reads each element
# once, but in the wrong order. The emulator checks which addresses a kernel reads. It cannot know which element the
# kernel should have read, so a comparison of values remains the first test. This is `copy_kernel`, with accessors:

# %%
for name, x in STRIDED.items():
    out = torch.empty(3, 4)
    strided.copy(out, x)
    print(f"{name}: agrees: {torch.equal(out, x)}")

# %% [markdown] syllabus="4.2d"
# ### Accessors do not check bounds
#
# An accessor contains its sizes, but does not compare an index with them. The first of these kernels reads element
# `k` of `x`. The second reads the gate with a given number. Neither kernel checks that this element or gate exists:

# %%
BOUNDS_CU = """
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;
template <typename scalar_t, int dimensions>
using Accessor = at::PackedTensorAccessor64<scalar_t, dimensions, at::RestrictPtrTraits>;

__global__ void element_kernel(Accessor<float, 1> out, Accessor<const float, 1> x, int64_t k) { out[0] = x[k]; }

void element(const Tensor& out, const Tensor& x, int64_t k) {
  element_kernel<<<1, 1, 0, c10::cuda::getCurrentCUDAStream()>>>(
      out.packed_accessor64<float, 1, at::RestrictPtrTraits>(),
      x.packed_accessor64<const float, 1, at::RestrictPtrTraits>(), k);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

__global__ void gate_kernel(Accessor<float, 2> out, Accessor<const float, 3> gates, int64_t gate) {  // [B,S], [B,3,S]
  const int64_t unit = threadIdx.x, row = blockIdx.y;
  if (unit < gates.size(2)) out[row][unit] = gates[row][gate][unit];
}

void gate(const Tensor& out, const Tensor& gates, int64_t gate) {
  gate_kernel<<<dim3(1, gates.size(0)), 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      out.packed_accessor64<float, 2, at::RestrictPtrTraits>(),
      gates.packed_accessor64<const float, 3, at::RestrictPtrTraits>(), gate);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
BOUNDS_CPP = """
#include <ATen/core/Tensor.h>

void element(const at::Tensor& out, const at::Tensor& x, int64_t k);
void gate(const at::Tensor& out, const at::Tensor& gates, int64_t gate);
"""
bounds = inline("bounds", BOUNDS_CPP, BOUNDS_CU, ["element", "gate"])

# %% [markdown]
# The four elements of `x` are the first part of a larger tensor, and the kernel reads element 6. A GPU does not
# check this, so the emulator's checks are off here, too:

# %%
os.environ["EMULATOR_CHECKS"] = "none"
memory = torch.tensor([0.0, 1.0, 2.0, 3.0, 77.0, 77.0, 77.0, 77.0], device=device())
x, out = memory[:4], torch.zeros(1, device=device())
bounds.element(out, x, 6)
print("element 6 of 4:", out.item())
refused(lambda: x[6])
os.environ["EMULATOR_CHECKS"] = "all"

# %% [markdown]
# In Python this is an error. In a kernel the result is a number that does not belong to `x`. So a kernel with
# accessors needs its guard, `if (unit >= old_cell.size(1)) return;`, just as a kernel with pointers does. With its
# checks on, the emulator compares each index with its dimension:

# %%
memory = memory.cpu()
emulated = inline("bounds", BOUNDS_CPP, BOUNDS_CU, ["element", "gate"], target="emulator")
reported(BOUNDS_CU, emulated.element, torch.zeros(1), memory[:4], 6)

# %% [markdown]
# This check finds more than accesses past the end of the tensor. A cell has gates 0, 1 and 2. The address of gate 3
# in row 0 would be that of gate 0 in row 1. This address is inside the tensor, so neither a GPU nor
# `compute-sanitizer` reports anything:

# %%
gates_on_cpu = torch.arange(24.0).view(2, 3, 4)
reported(BOUNDS_CU, emulated.gate, torch.zeros(2, 4), gates_on_cpu, 3)
reported(BOUNDS_CU, emulated.gate, torch.zeros(2, 4), gates_on_cpu, 2)

# %% [markdown] tags=["exercise"]
# **Your turn:** `4/accessor_backward`, `4/accessor_conversion`, `4/host_side` and `4/no_copy`.
# `show("4/accessor_backward")` in a cell checks the first of them here.

# %% [markdown] syllabus="4.3a"
# ## What accessors cost
#
# ### Registers
#
# The kernels of stage 3 take pointers and two sizes. Those of stage 4 take accessors, each with its own sizes and
# strides, and need more registers. nvcc prints the number of registers for the unchanged kernels of both stages:

# %%
FOLDERS = {"stage 3": "stage3_cuda_pointers", "stage 4": "stage4_cuda_accessors"}
KERNELS = [
    f"{direction}_kernel<{scalar_t}>" for scalar_t in ("float", "double") for direction in ("forward", "backward")
]
# Counted by nvcc 13.0 with torch 2.15, for machines without nvcc.
found = {"stage 3": [28, 28, 30, 30], "stage 4": [32, 40, 40, 48]}
if find_nvcc():
    for name, folder in FOLDERS.items():
        csrc = root / "stages" / folder / "csrc"
        of = registers((csrc / "lltm_kernel.cu").read_text(), f"-I{csrc}")
        found[name] = [int(of[kernel]) for kernel in KERNELS]
print("counted here" if find_nvcc() else "no nvcc here; this is what nvcc 13.0 counted with torch 2.15")
print(f"{'':26s}{'stage 3':>9s}{'stage 4':>9s}")
for k, kernel in enumerate(KERNELS):
    print(f"{kernel:26s}{found['stage 3'][k]:9d}{found['stage 4'][k]:9d}")

# %% [markdown]
# Are these too many registers? A GPU consists of multiprocessors, each of which runs several blocks at a time. A
# multiprocessor of an H200 has 65536 registers and runs up to 2048 threads. If it runs 2048 threads, each thread can
# have 32 registers. If a thread needs more registers, fewer threads run at a time. While some threads wait for
# memory, others can compute. The fewer threads there are, the more often all of them wait at the same time.
# Registers are allocated to a whole warp at once, and the number for each thread is rounded up to a multiple of 8.
# With blocks of 256 threads, how many of the 2048 threads fit? The next cell computes this number as a percentage:

# %%
for name, counts in found.items():
    threads = [min(2048, 65536 // (-(-count // 8) * 8 * 256) * 256) for count in counts]
    print(f"{name}:", ", ".join(f"{kernel} {n / 2048:.0%}" for kernel, n in zip(KERNELS, threads, strict=True)))

# %% [markdown] syllabus="4.3b"
# ### Time
#
# The speed of pointwise kernels is limited by memory, so the number of registers may make no difference. On a GPU,
# this cell measures whether it does. The times are those of the kernels alone, as the profiler recorded them,
# without Python and without the launches.

# %%
if on_gpu:
    B, I, S = 4096, 32, 1024
    for name, cell in stages.items():
        call = step(cell, torch.clone)
        call()
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            for _ in range(20):
                call()
        for kernel in ("forward_kernel", "backward_kernel"):
            events = [event.device_time for event in profiler.events() if kernel in event.name]
            print(f"{name} {kernel:16s} B{B} S{S}: {torch.tensor(events).median().item():.0f} us")
else:
    print("no GPU here, and the emulator's times say nothing about a GPU's")

# %% [markdown] tags=["exercise"]
# **Your turn:** `4/registers_and_time`. `show("4/registers_and_time")` in a cell checks it here.

# %% [markdown]
# ## Memory accesses, copies and registers in pictures
#
# How many bytes a warp transfers depends on whether neighbouring threads read neighbouring elements. The emulator
# counts the sectors (pieces of 32 bytes) that each warp accesses when it reads `old_cell`. The pictures show the
# forward kernel of stage 4 with a batch of 64 and 64 units. `old_cell` is contiguous on the left and transposed on
# the right.

# %%
from common.emulator import collect_counts
from common.figures import access_maps

on_cpu, transposing = load(4, "emulator"), {}
inputs = {name: tensor.detach() for name, tensor in Case(64, 8, 64).inputs().items()}
for name, layout in (("contiguous", torch.clone), ("transposed", transposed)):
    with collect_counts(on_cpu, block=0) as transposing[name]:
        on_cpu.lltm(*(inputs | {"old_cell": layout(inputs["old_cell"])}).values())
    sectors = transposing[name].total("sectors", "forward_kernel")
    print(f"{name}: {sectors:,d} sectors of 32 bytes in all, to z, old_cell and the results")
access_maps.draw_versions(transposing, "forward_kernel", "old_cell")

# %% [markdown]
# With the transposed tensor, one of the nine accesses of each thread needs 32 sectors instead of 4. The copy that
# stage 3 makes has the same problem: neighbouring threads access distant elements either when they read or when they
# write. So stage 3 and stage 4 both need additional sectors. If the tensor already has the layout in which the
# kernel reads it, no additional sectors are needed.
#
# The next figure shows where each gate is in memory, drawn from the places that `by_name_kernel` wrote. Contiguous
# gates are on the left, and permuted gates on the right. Both the colour and the number show the place in memory.
# Neighbouring threads have neighbouring units, so follow one row of a panel from left to right to see which places
# neighbouring threads read.

# %%
from common.figures.plots import STYLE, colour

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(2, 2, figsize=(9, 4.2), layout="constrained")
for column, (title, tensor) in enumerate({"contiguous": gates, "made as (S, 3, B) and turned": turned}.items()):
    for row, place in enumerate(asked(places.by_name, tensor)):
        axis = axes[row, column]
        axis.imshow(place, cmap="viridis", vmin=0, vmax=tensor.numel() - 1, alpha=0.45, aspect="auto")
        for (gate, unit), k in {(g, u): place[g, u].item() for g in range(3) for u in range(place.size(1))}.items():
            axis.text(unit, gate, k, ha="center", va="center")
        axis.set(title=f"row {row}, {title}", yticks=range(3), xticks=range(place.size(1)))
        axis.set_yticklabels(["input_gate", "output_gate", "candidate_cell"])
        axis.grid(False)
for axis in axes[1]:
    axis.set_xlabel("unit")
plt.show()

# %% [markdown]
# The next charts show what you gain with accessors and what they cost. On the left are the copies in one step
# (forward and backward) on transposed tensors, and on the right the registers of each kernel.

# %%
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 2.6), layout="constrained", gridspec_kw={"width_ratios": [1, 2]}
)
bars = left.bar(list(counted), [of[1] for of in counted.values()], color=[*map(colour, counted)], width=0.6)
left.bar_label(bars)
left.set(title="copies in a step, transposed", ylim=(0, 3.6), yticks=[])
for axis in (left, right):
    axis.grid(False)
for k, (name, numbers) in enumerate(found.items()):
    ticks = [position + 0.4 * k - 0.2 for position in range(len(KERNELS))]
    bars = right.bar(ticks, numbers, width=0.38, color=colour(name), label=name)
    right.bar_label(bars, label_type="center", color="white")
right.axhline(32, color="#1a1a1a", linewidth=1)
right.annotate("with up to 32, all 2048 threads fit", (3.5, 33), va="bottom", fontsize=9)
right.set_xticks(range(len(KERNELS)), [kernel.replace("_kernel", "\n") for kernel in KERNELS])
right.set(title="registers per thread (sm_90)", ylim=(0, 56), xlim=(-0.5, 5.1), yticks=[])
right.legend(frameon=False, loc="upper left", ncols=2)
plt.show()

# %% [markdown]
# These are the times of the kernels on each machine whose measurements are recorded in docs/results:

# %%
from IPython.display import display

from common.figures import plots
from common.results import records

machines = [r for r in records.read_recorded() if any(row["stage"] == 4 for row in r.get("kernels", []))]
for result in machines:
    display(plots.plot_kernels(result))
if not machines:
    print("no machine with the kernels of stage 4 is recorded yet; `make bench` measures yours")

# %% [markdown] tags=["exercise"]
# **Your turn:** `4/peephole_cell`. `show("4/peephole_cell")` in a cell checks it here.

# %% [markdown]
# ## More options for a build
#
# The `setup.py` files have been short so far. The [build reference](../docs/build.md) shows the other options, each
# in an example with its output: flags for each compiler, the GPU architectures to compile for, device code (code
# that runs on the GPU) in several files, the choice of compilers and folders, programs without Python, and CMake.

# %% [markdown] tags=["exercise"]
# **Your turn:** `4/across_two_files`, `4/flags_for_each`, `4/which_architectures` and `4/program_of_its_own`.
# `show("4/across_two_files")` in a cell checks the first of them here. None of these exercises needs nvcc.

# %% [markdown]
# ## Summary
#
# - With (B, 3, S) instead of (B, 3S), the gate has its own index, and the kernel needs no index formula.
# - Kernels need packed accessors, which contain the sizes and strides, because a kernel cannot read them from the
#   tensor object in the CPU's memory. Use 64 bits unless all tensors are known to be small.
# - Accessors work for any strides, without a copy. For a gradient from `sum()`, the kernel reads one number instead
#   of B · S.
# - Accessors do not check bounds. The emulator does. With nvcc 13.0, `__restrict__` did not remove a read of an
#   accessor.
# - With accessors, kernels need more registers. The `.cu` includes torch's headers, so it compiles more slowly.
#
# Next: run `make diff-3-4` to see the stage as a diff. Stage 5 registers the cell as an operator that PyTorch
# knows.
