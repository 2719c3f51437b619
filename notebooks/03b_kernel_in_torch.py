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
# # 03b: a kernel in PyTorch
#
# A kernel takes pointers and sizes, and PyTorch has tensors. This notebook is about the C++ code between the two: it
# selects the kernel for a tensor's type, checks the arguments, and launches the kernel on the right device and the
# right stream. It also shows how the two sources are compiled, and at the end the kernels of stage 3's cell.
#
# You need notebook 03 and a C++ compiler, but no GPU. Kernels that are wrong on purpose run on the emulator. The
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

from common.build.nvcc import find_nvcc
from common.inline import device, inline

on_gpu = device() == "cuda"
torch.manual_seed(0)
print("torch", torch.__version__, "on", torch.cuda.get_device_name() if on_gpu else "the emulator")


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
# Why `resolve_conj()`? `z.conj()` does not change any number in memory. It only sets a bit of the tensor (see 02d),
# and a kernel does not see this bit. So the kernel computes with the numbers of `z`, and there is no error:

# %%
print("got     ", complex_squares.square(z.conj()))
print("expected", z.conj() * z.conj())

# %% [markdown]
# In your own code, begin with `x.resolve_conj()`, which copies only if the bit is set, or refuse `x.is_conj()`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `3/host_forward`. The cell below checks your solution.

# %%
from common.exercises import show

show("3/host_forward")

# %% [markdown] syllabus="3.5a 3.5b"
# ## A `.cu` without torch headers
#
# The kernels so far took pointers and sizes, and their `.cu` files did not include ATen's headers. This has a cost.
# The dispatch is in the `.cpp`, where the compiler sees only a declaration of the template, so it cannot generate
# the template's code there. If we leave out the lines of explicit instantiation, everything compiles, but the
# import fails because a symbol is undefined. The name of the symbol is mangled (it encodes the types). The tool
# `c++filt`, or `demangle` here, makes such names readable:

# %%
from common.emulator import demangle

try:
    inline("not_instantiated", COMPLEX_CPP, COMPLEX_CU.partition("template void")[0], ["square"])
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
# `tanh` as the cell's backward does. The function `d_cell` in the `.cpp` uses the three macros of the usual
# tutorials. But `d_cell` checks only one of its two arguments.

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
# Now `new_cell` has too few rows. To show what the kernel reads, we make `new_cell` the first part of a larger
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
# belong to `new_cell`, and there was no error. With its checks on, the emulator knows which part of the memory is
# `new_cell`, and reports the mistake. `checked_d_cell` does not need the emulator, because it checks the shape on
# the host:

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
# These are all the parts. This is the forward kernel of stage 3. It makes one pass over memory: for each row and
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
# ## Charts of ATen calls, compilation time and speed
#
# The first two charts show the number of ATen calls of each stage, and the compilation time with and without torch's
# headers.

# %%
from common.figures.plots import BLUE, STYLE, colour

plt.rcParams.update(STYLE)
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
# - A function that launches a kernel checks every argument, sets the device guard, gets the stream, launches, and
#   checks the launch, in this order.
# - A `.cu` without torch headers compiles in seconds, but its templates need an explicit instantiation for each
#   type.
# - A check right after the launch reports what is wrong with the launch. An error inside the kernel shows later, at a
#   call that waits for the GPU.
#
# Next: notebook 03c, where threads need the results of other threads.
