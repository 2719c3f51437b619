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
# # 03d: kernels in files, and numbers as arguments
#
# So far, the kernels were strings in a notebook. In a project they are files. This notebook takes one small function
# all the way: `elu(x, alpha)` is a `.cpp` and a `.cu` in a folder, torch's `load` builds it from the two paths, and
# a `setup.py` builds it as a package. `alpha` is a number, and it passes from Python through C++ into the kernel and
# into the gradient. Then you build the sources of stage 3 from their text, and compare blocks of 256 and of 1024
# threads.
#
# You need notebook 03b and a C++ compiler, but no GPU: kernels run on the emulator. The notebook takes about 30
# minutes. The first run spends two minutes of this time compiling.

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

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import load, load_inline

from common.build.nvcc import find_nvcc
from common.inline import device, inline
from common.workbench import build_folder, run, write

BUILD = build_folder()
on_gpu, has_nvcc = device() == "cuda", bool(torch.version.cuda and find_nvcc())
torch.manual_seed(0)
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the emulator")


def refused(call, *arguments):
    """Calls what should fail, and prints the first line of its error."""
    try:
        call(*arguments)
        print("no error")
    except (RuntimeError, TypeError) as error:
        print(f"{type(error).__name__}: {str(error).partition(chr(10))[0][:150]}")


# %% [markdown] syllabus="3.4e"
# ## A function with a number
#
# `elu(x)` is x where x is positive, and `alpha * (exp(x) - 1)` elsewhere. A caller may pass `alpha` as 1, as 0.5 or
# as `True`. In C++, `at::Scalar` is a number of any of Python's types. It remembers which one it is, and
# `alpha.to<scalar_t>()` converts it to the type of the tensor, inside the dispatch, where that type has a name. The
# kernel gets an ordinary number.
#
# The last lines make two registered operators, whose schema says `Scalar alpha=1`. Notebook 05 is about such
# operators. Here they are needed, because pybind11 cannot pass a `Scalar`, as you will see with the function
# `bound`.

# %%
ELU_CPP = """
// elu(x) = x where x > 0, alpha * (exp(x) - 1) elsewhere: checks, launches, and operators for Python.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

using at::Scalar;
using at::Tensor;

// In elu_kernel.cu, for float and double.
template <typename scalar_t>
void launch_elu(scalar_t* y, const scalar_t* x, scalar_t alpha, int64_t count, cudaStream_t stream);
template <typename scalar_t>
void launch_d_elu(scalar_t* d_x, const scalar_t* grad, const scalar_t* x, scalar_t alpha, int64_t count,
                  cudaStream_t stream);

void check(const char* name, const Tensor& tensor, const Tensor& like) {
  TORCH_CHECK(tensor.is_cuda() && tensor.device() == like.device(), "elu: ", name, " is on ", tensor.device());
  TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "elu: ", name, " has dtype ", tensor.scalar_type());
  TORCH_CHECK(tensor.sizes() == like.sizes() && tensor.is_contiguous(), "elu: ", name, " has shape ",
              tensor.sizes(), " and strides ", tensor.strides());
}

Tensor elu(const Tensor& x, const Scalar& alpha) {
  check("x", x, x);
  const c10::cuda::CUDAGuard guard(x.device());
  Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "elu", [&] {
    launch_elu(y.mutable_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), alpha.to<scalar_t>(), x.numel(),
               c10::cuda::getCurrentCUDAStream());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

Tensor d_elu(const Tensor& grad, const Tensor& x, const Scalar& alpha) {
  check("x", x, x);
  check("grad", grad, x);
  const c10::cuda::CUDAGuard guard(x.device());
  Tensor d_x = at::empty_like(x);
  if (x.numel() == 0) return d_x;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "d_elu", [&] {
    launch_d_elu(d_x.mutable_data_ptr<scalar_t>(), grad.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(),
                 alpha.to<scalar_t>(), x.numel(), c10::cuda::getCurrentCUDAStream());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return d_x;
}

// TORCH_LIBRARY itself does not expand a macro. The namespace is the name of the module.
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
#define EXPAND_TORCH_LIBRARY_IMPL(name, key, m) TORCH_LIBRARY_IMPL(name, key, m)

EXPAND_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("elu(Tensor x, Scalar alpha=1) -> Tensor");
  m.def("d_elu(Tensor grad, Tensor x, Scalar alpha=1) -> Tensor");
}

EXPAND_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("elu", &elu);
  m.impl("d_elu", &d_elu);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("bound", &elu); }
"""

# %%
ELU_CU = """
// The kernels of elu, without torch's headers.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

template <typename scalar_t>
__global__ void elu_kernel(scalar_t* y, const scalar_t* x, scalar_t alpha, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) y[k] = x[k] > 0 ? x[k] : alpha * std::expm1(x[k]);
}

template <typename scalar_t>
__global__ void d_elu_kernel(scalar_t* d_x, const scalar_t* grad, const scalar_t* x, scalar_t alpha, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) d_x[k] = grad[k] * (x[k] > 0 ? scalar_t(1) : alpha * std::exp(x[k]));
}

template <typename scalar_t>
void launch_elu(scalar_t* y, const scalar_t* x, scalar_t alpha, int64_t count, cudaStream_t stream) {
  elu_kernel<<<(count + 255) / 256, 256, 0, stream>>>(y, x, alpha, count);
}

template <typename scalar_t>
void launch_d_elu(scalar_t* d_x, const scalar_t* grad, const scalar_t* x, scalar_t alpha, int64_t count,
                  cudaStream_t stream) {
  d_elu_kernel<<<(count + 255) / 256, 256, 0, stream>>>(d_x, grad, x, alpha, count);
}

template void launch_elu(float*, const float*, float, int64_t, cudaStream_t);
template void launch_elu(double*, const double*, double, int64_t, cudaStream_t);
template void launch_d_elu(float*, const float*, const float*, float, int64_t, cudaStream_t);
template void launch_d_elu(double*, const double*, const double*, double, int64_t, cudaStream_t);
"""

# %% [markdown] syllabus="3.1f"
# ## Two files, built by `load`
#
# `write` puts the two texts into files, and `load` builds them from their paths: g++ compiles the `.cpp`, nvcc
# compiles the `.cu`, and the result is imported. This needs nvcc, but no GPU, if you name an architecture. Without a
# GPU, the module can be imported, but there are no tensors for which it has a kernel:

# %%
cpp, cu = write("scaled_elu/elu.cpp", ELU_CPP.lstrip()), write("scaled_elu/elu_kernel.cu", ELU_CU.lstrip())
if has_nvcc:
    os.environ["TORCH_CUDA_ARCH_LIST"] = os.environ.get("TORCH_CUDA_ARCH_LIST", "native" if on_gpu else "9.0")
    load("scaled_elu_by_path", [str(cpp), str(cu)], extra_cflags=["-O2"])
    print(torch.ops.scaled_elu_by_path.elu.default._schema)
    refused(torch.ops.scaled_elu_by_path.elu, torch.zeros(3))
else:
    print("no nvcc, or a torch for the CPU")

# %% [markdown]
# ### The same two files, built by `setup.py`
#
# A `setup.py` names the same two files. With nvcc, `python setup.py build_ext --inplace` builds the module beside
# them, and `pip install --no-build-isolation .` installs it. The emulator reads the same `setup.py`:
# `load_extension` builds the extension for the CPU, so here the kernels can run.

# %%
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="scaled_elu",
    packages=[],
    ext_modules=[CUDAExtension("scaled_elu", ["elu.cpp", "elu_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
folder = write("scaled_elu/setup.py", SETUP.lstrip()).parent

# %%
from common.emulator import load_extension
from common.paths import build_cache

if not on_gpu:
    extension = load_extension(folder, cache=build_cache())
operators = torch.ops.scaled_elu_by_path if on_gpu else torch.ops.scaled_elu
x = torch.tensor([-2.0, -0.5, 0.0, 3.0], device=device())
for alpha in (1, 0.5, True):
    print(f"alpha = {alpha!s:5s}", operators.elu(x, alpha).tolist())

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/binding_and_setup` is about such a `setup.py`, for the cell. The cell below checks your solution.

# %%
from common.exercises import show

show("3/binding_and_setup")

# %% [markdown] syllabus="3.4e"
# ### What a `Scalar` accepts
#
# `to<scalar_t>()` raises an error if the number does not fit into the type of the tensor. A text is not a number,
# and neither is a tensor. The last line calls the same C++ function as pybind11 binds it:

# %%
refused(operators.elu, x, 1e300)
refused(operators.elu, x, 1j)
refused(operators.elu, x, "1")
refused(operators.elu, x, torch.tensor(0.5))
if not on_gpu:
    refused(extension.bound, x, 1)

# %% [markdown]
# `NYI` means *not yet implemented*: the binding compiles, and each call fails. With pybind11, take a `double`
# instead.
#
# A caller who has the number in a tensor can pass `alpha.item()`. On a GPU, this waits until the GPU has computed
# it, and there is no gradient for it. If `alpha` should be learned, make it a `Tensor` in the schema.

# %% [markdown] syllabus="3.4e"
# ### The number in the gradient
#
# `alpha` is not a tensor, so it is stored as an attribute of `ctx` (notebook 00a), and its place among the gradients
# is None:


# %%
class Elu(torch.autograd.Function):
    @staticmethod
    def forward(x, alpha):
        return operators.elu(x, alpha)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.alpha = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return operators.d_elu(grad.contiguous(), x, ctx.alpha), None


for alpha in (1, 2.5, -0.5):
    x = torch.randn(50, dtype=torch.float64, device=device(), requires_grad=True)
    ours, torchs = Elu.apply(x, alpha), torch.nn.functional.elu(x, alpha)
    (d_x,), (want,) = (torch.autograd.grad(y.sum(), x) for y in (ours, torchs))
    passed = torch.autograd.gradcheck(lambda x, alpha=alpha: Elu.apply(x, alpha), x)
    same = torch.allclose(ours, torchs) and torch.allclose(d_x, want)
    print(f"alpha = {alpha:4}: values and gradient are torch's: {same}, gradcheck: {passed}")

# %% [markdown]
# `grad.contiguous()` is there because the gradient of a sum is expanded: it has stride 0 (notebook 02d).
#
# Published code often computes the derivative from the result, as in stage 3: 1 where y is positive, and `y + alpha`
# elsewhere. This saves the input. But if alpha is negative, y is positive on both sides of zero, and this derivative
# is wrong without an error. torch's own elu computes from the result if it works in place, and refuses a negative
# alpha then:

# %%
x = torch.tensor([-1.0, 2.0], requires_grad=True)
alpha, y = -0.5, torch.nn.functional.elu(x, -0.5)
print(
    "from the result:",
    torch.where(y > 0, 1, y + alpha).tolist(),
    "  from x:",
    torch.autograd.grad(y.sum(), x)[0].tolist(),
)
refused(lambda: torch.nn.functional.elu(x * 1, alpha, inplace=True).sum().backward())

# %% [markdown] syllabus="3.1f"
# ## The sources of stage 3 with `load_inline`
#
# `load_inline` builds texts, wherever they come from. So you can read the files of a project, change a line for an
# experiment, and build the result, without a change of the files. The header of stage 3 is included by its name, so
# we insert its text. On the emulator, `inline` adds the binding, so the stage's own binding is left out:

# %%
csrc = root / "stages" / "stage3_cuda_pointers" / "csrc"
STAGE3_CPP = (csrc / "lltm.cpp").read_text()
STAGE3_CU = (csrc / "lltm_kernel.cu").read_text()
maths = (csrc / "lltm_math.h").read_text().replace("#pragma once", "")
STAGE3_CU = STAGE3_CU.replace('#include "lltm_math.h"', maths)
without_binding = STAGE3_CPP.partition("PYBIND11_MODULE")[0]
builds = {"emulator": inline("stage3_text", without_binding, STAGE3_CU, ["forward", "backward"], target="emulator")}
if on_gpu:
    builds["GPU"] = load_inline(
        "stage3_inline", STAGE3_CPP, STAGE3_CU, functions=None, no_implicit_headers=True, extra_cflags=["-O2"]
    )

# %%
from common import load as load_stage
from common.cell.case import Case

for name, built in builds.items():
    case = Case(16, 32, 128, device="cuda" if name == "GPU" else "cpu", requires_grad=())
    arguments = list(case.inputs().values())
    new_h, new_cell, X, gates = built.forward(*arguments)
    torch.testing.assert_close((new_h, new_cell), load_stage(1).equations(*arguments))
    gradients = built.backward(*case.gradients(), arguments[1], X, gates, new_cell, [True] * 5)
    print(f"{name}: forward agrees with stage 1; backward returns", [tuple(gradient.shape) for gradient in gradients])

# %% [markdown] syllabus="3.3g"
# ## Blocks of 256 and of 1024 threads
#
# A block may have 1024 threads, so why do most kernels here use 256? There are two reasons, and both can be seen
# without a GPU. The first is the last block of a row: its surplus threads have nothing to do. This kernel counts
# them:

# %%
IDLE_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void count_idle_kernel(int* idle, int64_t S) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= S) atomicAdd(idle, 1);
}

void launch_count_idle(int* idle, int64_t B, int64_t S, int64_t threads, cudaStream_t stream) {
  count_idle_kernel<<<dim3((S + threads - 1) / threads, B), threads, 0, stream>>>(idle, S);
}
"""
IDLE_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

void launch_count_idle(int* idle, int64_t B, int64_t S, int64_t threads, cudaStream_t stream);

void count_idle(const at::Tensor& idle, int64_t B, int64_t S, int64_t threads) {
  launch_count_idle(idle.mutable_data_ptr<int>(), B, S, threads, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
"""
counting = inline("idle_threads", IDLE_CPP, IDLE_CU, ["count_idle"])


def idle_share(S, threads, B=3):
    """The share of a launch's threads that have no unit, for rows of S units."""
    idle = torch.zeros(1, dtype=torch.int32, device=device())
    counting.count_idle(idle, B, S, threads)
    launched = B * -(-S // threads) * threads
    return idle.item() / launched


STATES = (70, 128, 512, 1025, 4096)
IDLE = {threads: [idle_share(S, threads) for S in STATES] for threads in (256, 1024)}
for threads, shares in IDLE.items():
    print(
        f"{threads:4d} threads",
        *(f"S={S}: {share:4.0%} idle" for S, share in zip(STATES, shares, strict=True)),
        sep="   ",
    )

# %% [markdown]
# The second reason is registers. A multiprocessor has 65,536 of them, and all threads of a block must get theirs at
# the same time. So a thread of a block of 1024 can have at most 64. If a kernel needs more, you can tell the
# compiler the size of the block with `__launch_bounds__(1024)`. Then the kernel fits, because the compiler stores
# some of its variables in memory instead (a *spill*). The assembler prints both numbers, without a GPU:

# %%
MANY_REGISTERS = """
template <int threads>
__global__ void __launch_bounds__(threads) sums_kernel(float* out, const float* x) {
  float values[80], sum = 0;
  for (int k = 0; k < 80; ++k) values[k] = x[k * blockDim.x + threadIdx.x];
  for (int k = 0; k < 80; ++k)
    for (int j = 0; j < 80; ++j) sum = sum * values[j] + values[k];
  out[threadIdx.x] = sum;
}
template __global__ void sums_kernel<256>(float*, const float*);
template __global__ void sums_kernel<1024>(float*, const float*);
"""
if find_nvcc():
    source = write("many_registers.cu", MANY_REGISTERS)
    command = [find_nvcc(), "-arch=sm_90", "-cubin", "-Xptxas", "-v", source, "-o", BUILD / "many_registers.cubin"]
    said = run(*command)[1]
    found = re.findall(r"sums_kernelILi(\d+).*?(\d+) bytes spill stores.*?Used (\d+) registers", said, re.DOTALL)
    for threads, spilled, registers in sorted(found, key=lambda row: int(row[0])):
        print(f"bounds of {threads:>4s} threads: {registers} registers, {spilled} bytes of spills in each thread")
else:
    print("no nvcc here")

# %% [markdown]
# Also, all threads of a block wait at a barrier for the slowest one, and a block frees its place on the
# multiprocessor only when its last thread has ended. Notebook 06b continues with *occupancy*: how many blocks fit at
# the same time. On a GPU, the next cell measures both sizes. We have not recorded this measurement.

# %%
if on_gpu:
    TIMED_CU = ELU_CU.replace("(count + 255) / 256, 256", "(count + THREADS - 1) / THREADS, THREADS")
    x = torch.randn(64 * 2**20, device="cuda")
    for threads in (256, 1024):
        host = ELU_CPP.partition("// TORCH_LIBRARY")[0] + "Tensor unscaled(const Tensor& x) { return elu(x, 1); }"
        texts = host, TIMED_CU.replace("THREADS", str(threads))
        timed = inline(f"elu_{threads}", *texts, ["unscaled"])
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times = []
        for _ in range(20):
            start.record()
            timed.unscaled(x)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        print(f"{threads} threads: {sorted(times)[10]:.3f} ms for 64 Mi floats")
else:
    print("no GPU here")

# %%
from common.figures.plots import BLUE, ORANGE, STYLE

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(8, 2.8), layout="constrained")
for k, (threads, colour) in enumerate(((256, BLUE), (1024, ORANGE))):
    places = [place + 0.4 * k for place in range(len(STATES))]
    bars = axis.bar(
        places, [100 * share for share in IDLE[threads]], width=0.38, color=colour, label=f"{threads} threads"
    )
    axis.bar_label(bars, fmt="%.0f", padding=2)
axis.set_xticks([place + 0.2 for place in range(len(STATES))], [f"S = {S}" for S in STATES])
axis.set(ylabel="idle threads, percent", title="One thread for each unit, one row for each block in y")
axis.margins(y=0.15)
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Summary
#
# - `load` builds a `.cpp` and a `.cu` from their paths, `setup.py` builds the same two files as a package, and the
#   emulator reads that `setup.py`.
# - `at::Scalar` takes a number from Python into C++, and `to<scalar_t>()` into the kernel. It has no gradient.
# - Begin with blocks of 256 threads. With 1024, more threads of the last block are idle, and a thread has at most 64
#   registers.
#
# Next: notebook 04, where kernels take tensors with strides.
