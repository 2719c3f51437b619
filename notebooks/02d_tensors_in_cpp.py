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
# # 02d: tensors in C++
#
# As long as C++ code only calls ATen, a tensor behaves as in Python. From stage 3 on, the code uses the *pointer* of
# a tensor. Then you have to know where the elements are, how long they stay there, and which checks torch no longer
# makes for you. Many texts about this contain wrong claims. So a few lines of C++ test each claim here, and you will
# see the common wrong claims fail.
#
# You need notebook 02. This notebook takes about 60 minutes. In the first run, a minute or two of this is spent
# compiling. The next run finds everything built. A heading with (!) is about a mistake that is common in code and in
# tutorials.

# %%
import os
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import struct
import subprocess

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import load_inline

from common.workbench import build_folder, run, torch_compiler

build_folder()
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# Every module below is built with these narrow headers in front and with optimisation, as notebook 02 recommends.

# %%
HEADERS = """
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

using at::Tensor;
"""


def build(name, source, functions):
    options = {"no_implicit_headers": True, "extra_cflags": ["-O2"]}
    return load_inline(name, HEADERS + source, functions=functions, **options)


# %% [markdown]
# ## Where the elements are
#
# The first module returns the pointers of a tensor, writes through one of them, and finds an element by the strides
# of the tensor.

# %%
MEMORY = """
std::vector<int64_t> addresses(const Tensor& x) {
  return {reinterpret_cast<int64_t>(x.const_data_ptr<float>()),
          reinterpret_cast<int64_t>(x.mutable_data_ptr<float>()),
          reinterpret_cast<int64_t>(x.data_ptr<float>())};
}

void put(const Tensor& x, int64_t k, float value) { x.mutable_data_ptr<float>()[k] = value; }

float element(const Tensor& x, int64_t i, int64_t j) {
  return x.const_data_ptr<float>()[i * x.stride(0) + j * x.stride(1)];
}

float offset_added(const Tensor& x, int64_t i, int64_t j) {
  const float* start = x.const_data_ptr<float>() + x.storage_offset();
  return start[i * x.stride(0) + j * x.stride(1)];
}
"""

# %% [markdown]
# Two more functions read and write an element with an *accessor*, an object that holds a pointer together with sizes
# and strides. The other functions are for the sections about complex numbers and about `void*`.

# %%
MEMORY += """
float by_accessor(const Tensor& x, int64_t i, int64_t j) { return x.accessor<const float, 2>()[i][j]; }

void put_by_accessor(const Tensor& x, int64_t i, int64_t j, float value) {
  x.accessor<float, 2>()[i][j] = value;
}

std::vector<float> as_floats(const Tensor& z) {
  const auto* numbers = reinterpret_cast<const float*>(z.const_data_ptr<c10::complex<float>>());
  return {numbers, numbers + 2 * z.numel()};
}

float first_of_void(const Tensor& x) { return *static_cast<const float*>(x.const_data_ptr()); }

float first_checked(const Tensor& x) { return *x.const_data_ptr<float>(); }

double sum_of_squares(const Tensor& z) {  // what a library does with an array of std::complex
  const auto* numbers = reinterpret_cast<const std::complex<float>*>(z.const_data_ptr<c10::complex<float>>());
  double sum = 0;
  for (int64_t k = 0; k < z.numel(); ++k) sum += std::norm(numbers[k]);
  return sum;
}
"""
MEMORY_FUNCTIONS = ["addresses", "put", "element", "offset_added", "by_accessor", "put_by_accessor", "as_floats"]
MEMORY_FUNCTIONS += ["first_of_void", "first_checked", "sum_of_squares"]
memory = build("memory", MEMORY, MEMORY_FUNCTIONS)

# %% [markdown] syllabus="2.12a"
# ### Three functions that return the same pointer
#
# `const_data_ptr` is for reading and `mutable_data_ptr` is for writing. `data_ptr` is the older name of
# `mutable_data_ptr`. All three return the address of the tensor's own memory.

# %%
x = torch.arange(12.0).view(3, 4)
print("from C++:", memory.addresses(x))
print("from Python:", x.data_ptr())
memory.put(x, 5, 500)
print(x)

# %% [markdown]
# Python sees what C++ wrote. With `const_data_ptr` you promise not to write, and the compiler enforces this: the
# function returns a `const float*`. Torch relies on the promise, too. A *lazy clone* shares the memory of its
# original until one of the two tensors is written to, and a request for a mutable pointer counts as a write.

# %%
x = torch.arange(12.0).view(3, 4)
lazy = torch._lazy_clone(x)  # a private function of torch, rarely used
print("to read:", memory.element(lazy, 1, 1), "  to write:", memory.addresses(lazy)[1] == memory.addresses(x)[1])

# %% [markdown] syllabus="2.12b"
# ### Sizes, strides and offset
#
# A tensor is a window into a *storage*, which is a one-dimensional row of numbers. Let $o$ be the `storage_offset`
# and $s_0, s_1$ the strides, all counted in elements. Then element $(i, j)$ is number $o + i s_0 + j s_1$ of the
# storage. A view changes only the sizes, the strides and the offset:

# %%
x = torch.arange(12.0).view(3, 4)
VIEWS = {"x": x, "x[1:]": x[1:], "x[:, 1:3]": x[:, 1:3], "x.t()": x.t(), "x[1:, ::2].t()": x[1:, ::2].t()}
print(f"{'':16s}{'sizes':>8s}{'strides':>9s}{'offset':>8s}   address - that of x   element (1, 1)")
for name, view in VIEWS.items():
    bytes_further = view.data_ptr() - x.data_ptr()
    print(
        f"{name:16s}{tuple(view.shape)!s:>8s}{view.stride()!s:>9s}{view.storage_offset():8d}"
        f"{bytes_further:12d} bytes{memory.element(view, 1, 1):15.0f} {view[1, 1]:.0f}"
    )

# %% [markdown] syllabus="2.12c"
# ### The pointer already includes the offset (!)
#
# Look at the addresses: `x[1:]` begins 4 elements, 16 bytes, after `x`. So the formula above counts from the start
# of the *storage*. Counted from the tensor's own pointer, the position is $i s_0 + j s_1$, without $o$. Code that
# adds `storage_offset()` to this pointer adds the offset twice.

# %%
for name, view in VIEWS.items():
    print(f"{name:16s} (0, 0) is {view[0, 0]:.0f}, with the offset added {memory.offset_added(view, 0, 0):.0f}")

# %% [markdown]
# The wrong code gives the right element for every tensor that begins where its storage begins. Nearly every tensor
# in a test begins there, so most tests do not find the mistake. In the last row of `x[1:]`, the wrong code reads
# outside the storage:

# %%
print("x[1:] at (1, 3):", memory.element(x[1:], 1, 3), "and", memory.offset_added(x[1:], 1, 3))

# %% [markdown] syllabus="2.12q"
# ### Accessors
#
# `accessor<float, 2>()` returns an object that contains the strides, so `[i][j]` is right for every view. You can
# also write through an accessor.

# %%
for name, view in VIEWS.items():
    assert all(memory.by_accessor(view, i, j) == view[i, j] for i in range(2) for j in range(2)), name
memory.put_by_accessor(x.t(), 3, 0, 300)
print(x)

# %% [markdown]
# The dtype and the number of dimensions are checked when the accessor is made. The index is never checked. The last
# line of the next cell asks for element (0, 4), which does not exist.

# %%
for wrong in (x.double(), x[0]):
    try:
        memory.by_accessor(wrong, 0, 0)
    except RuntimeError as error:
        print(error)
print("(0, 4) in", tuple(x.shape), "is", memory.by_accessor(x, 0, 4))

# %% [markdown]
# That value was the first number of the next row. Beyond the last row, it can be any value. This accessor is for CPU
# memory. Stage 4 uses a similar accessor in GPU kernels.

# %% [markdown] syllabus="2.12p"
# ### Complex numbers
#
# In memory, each complex number is its real part followed by its imaginary part:

# %%
z = torch.tensor([1 + 2j, 3 + 4j])
print("in memory:", memory.as_floats(z))
print("the same from Python:", torch.view_as_real(z).flatten().tolist())

# %% [markdown]
# Beware of `conj()`: it does not change the memory, but only sets a bit in the tensor object. ATen's operations take
# this bit into account, but code that reads through a pointer does not. `resolve_conj()` returns a tensor with the
# conjugated numbers in memory.

# %%
conjugate = z.conj()
print(conjugate, "in memory:", memory.as_floats(conjugate), " resolved:", memory.as_floats(conjugate.resolve_conj()))

# %% [markdown] syllabus="2.12s"
# ### Complex pointers, and `void*`
#
# torch's type is `c10::complex<float>`. Libraries have types of their own: `std::complex<float>`, and in CUDA
# `cuComplex` or `float2`. All of them are two floats in the same order, so the pointer can be converted with
# `reinterpret_cast`. `sum_of_squares` does this for `std::complex`:

# %%
print(memory.sum_of_squares(z), "expected", z.abs().square().sum().item())

# %% [markdown]
# Without a type, `const_data_ptr()` returns a `const void*`, as functions such as `cudaMemcpy` and cuBLAS take it.
# Then torch does not compare the type of the tensor with the type that the code reads. With a type, it does:

# %%
doubles = torch.tensor([0.1], dtype=torch.float64)
print("through void*:", memory.first_of_void(doubles))
try:
    memory.first_checked(doubles)
except RuntimeError as error:
    print("with a type:  ", str(error).splitlines()[0])

# %% [markdown]
# Use `void*` only where a function takes it, check `scalar_type()` before, and compute sizes with `nbytes()`.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/which_element`. `make check EX=2/which_element` in a terminal creates the questions and checks
# your answers. The cell below checks them here.

# %%
from common.exercises import show

show("2/which_element")

# %% [markdown]
# ## How long the elements stay in memory
#
# Code that needs the elements side by side in memory calls `contiguous()`, which makes a copy if the elements are
# not side by side. Which variable owns the memory of that copy, and for how long? The second module contains
# functions that are wrong about this, and one that is right (`kept`).

# %%
LIFETIMES = """
float dangling(const Tensor& x, int64_t k) {
  const float* numbers = x.contiguous().const_data_ptr<float>();
  return numbers[k];
}

float kept(const Tensor& x, int64_t k) {
  const Tensor dense = x.contiguous();
  const float* numbers = dense.const_data_ptr<float>();
  return numbers[k];
}

at::TensorAccessor<const float, 2> rows_of(const Tensor& x) { return x.accessor<const float, 2>(); }

float dangling_accessor(const Tensor& x, int64_t i, int64_t j) {
  const auto rows = rows_of(x.contiguous());
  return rows[i][j];
}
"""

# %% [markdown]
# The same holds for a shape: its memory must exist as long as a function uses it. Here are two wrong and two right
# functions:

# %%
LIFETIMES += """
std::vector<int64_t> braced(int64_t rows, int64_t columns) {
  at::IntArrayRef shape = {rows, columns};
  return shape.vec();
}

C10_NOINLINE at::IntArrayRef shape_of(int64_t rows, int64_t columns) { return {rows, columns}; }

std::vector<int64_t> returned(int64_t rows, int64_t columns) { return shape_of(rows, columns).vec(); }

std::vector<int64_t> copied(at::IntArrayRef shape) { return shape.vec(); }

std::vector<int64_t> as_argument(int64_t rows, int64_t columns) { return copied({rows, columns}); }

std::vector<int64_t> named(int64_t rows, int64_t columns) {
  const std::array<int64_t, 2> shape = {rows, columns};
  return copied(shape);
}
"""
LIFETIMES_FUNCTIONS = ["dangling", "kept", "dangling_accessor", "braced", "returned", "as_argument", "named"]
lifetimes = build("lifetimes", LIFETIMES, LIFETIMES_FUNCTIONS)

# %% [markdown] syllabus="2.12d"
# ### A pointer into a temporary (!)
#
# All elements of `x` are 1. `dangling` reads a few elements of its contiguous copy:

# %%
x = torch.ones(64, 64).t()
PLACES = (0, 1, 100, 2048, 4095)
print("dangling:", [lifetimes.dangling(x, k) for k in PLACES])
print("kept:    ", [lifetimes.kept(x, k) for k in PLACES])

# %% [markdown]
# The copy has no name: it is a *temporary*. C++ destroys a temporary at the semicolon of the line that made it, and
# the memory of the copy goes back to the allocator. The next line of `dangling` reads this memory, which may already
# contain something else. All values may still be 1, because nothing has written there *yet*. Or the first values are
# garbage, because the allocator stores its own data in free memory.
#
# Some texts say that asynchronous execution is the reason, and that a synchronisation helps. But nothing here is
# asynchronous. The only reason is the lifetime: store the copy in a variable, and the copy lives as long as the
# variable. The mistake does not show if `x` happens to be contiguous, because `contiguous()` then returns `x`
# itself:

# %%
print("already contiguous:", [lifetimes.dangling(x.contiguous(), k) for k in PLACES])

# %% [markdown] syllabus="2.12f"
# ### Make this mistake visible in every run
#
# A test can hardly find a mistake that gives mostly right values. The C library of Linux can fill freed memory with
# a pattern: start the process with `MALLOC_PERTURB_=170`. The library reads this environment variable only when the
# process starts, so we need a new process.


# %%
def in_a_process(module, code, **variables):
    """Runs code in a process of its own, where the module is called `cpp`; returns its status and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(Path(module.__file__).parent), **variables}
    command = [sys.executable, "-c", f"import torch, {module.__name__} as cpp\n{code}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout.strip()


LOOK = f"x = torch.ones(64, 64).t()\nprint([cpp.dangling(x, k) for k in {PLACES}])"
print("170 in every byte is, as a float,", struct.unpack("f", bytes([170] * 4))[0])
print("left alone:", in_a_process(lifetimes, LOOK)[1])
print("with 170:  ", in_a_process(lifetimes, LOOK, MALLOC_PERTURB_="170")[1])

# %% [markdown]
# Without `MALLOC_PERTURB_`, most values look right. With the pattern, no value is right, in any run: each value is
# either the float whose bytes are all 170 (about -3e-13) or garbage from the allocator's own data. (The allocator
# keeps small freed blocks without filling them, so try this with more than a kilobyte.) Large blocks need no
# pattern, because the allocator returns a large block to the operating system as soon as the block is freed. A later
# read from this block ends the process:

# %%
status, _ = in_a_process(lifetimes, "print(cpp.dangling(torch.ones(4096, 4096).t(), 0))")
print("64 MB: the process ended with status", status, "(-11 is a segmentation fault)")

# %% [markdown] syllabus="2.12e"
# ### An accessor does not keep the memory alive (!)
#
# An accessor holds a pointer, not the tensor. Torch rejects the simplest form of the mistake at compile time:

# %%
REFUSED = """#include <ATen/core/Tensor.h>
float first(const at::Tensor& x) { auto rows = x.contiguous().accessor<float, 2>(); return rows[0][0]; }
"""
_, said = run(*torch_compiler(), "-x", "c++", "-fsyntax-only", "-", text=REFUSED)
print(next(line for line in said.splitlines() if "error" in line).partition(" [with")[0])

# %% [markdown]
# If another function makes the accessor, torch cannot check this. In `rows_of(x.contiguous())` the copy has the name
# `x` inside `rows_of`, but the copy is destroyed at the end of the statement that calls `rows_of`.

# %%
LOOK_THROUGH = "x = torch.ones(64, 64).t()\nprint([cpp.dangling_accessor(x, k, k) for k in (0, 31, 63)])"
print("left alone:", in_a_process(lifetimes, LOOK_THROUGH)[1])
print("with 170:  ", in_a_process(lifetimes, LOOK_THROUGH, MALLOC_PERTURB_="170")[1])

# %% [markdown] syllabus="2.12g"
# ### A temporary in a kernel's argument list is legal (!)
#
# C++ keeps a temporary until the end of the *full expression*, which is the whole statement here. So you may pass
# a pointer into a temporary to a function, because the function has returned before the statement ends.
#
# The launch of a GPU kernel (a function that runs on the GPU) is different: at the end of the statement, the kernel
# is in a queue and may not have run. But you may still pass the pointer: torch keeps freed GPU memory for later
# tensors, and gives this memory only to work that comes after this kernel in the same queue (a *stream*, see
# notebook 03b). (For a kernel on another stream, there is no such order, and you need `record_stream`.) Here are
# both forms, with a kernel:

# %%
TEMPORARIES_CPP = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

void launch_twice(const float* x, float* y, int64_t count);  // in the .cu

at::Tensor in_the_call(const at::Tensor& x) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  launch_twice(x.contiguous().const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel());
  return y;
}

at::Tensor before_the_call(const at::Tensor& x) {
  const float* numbers = x.contiguous().const_data_ptr<float>();
  at::Tensor y = at::empty(x.sizes(), x.options());
  launch_twice(numbers, y.mutable_data_ptr<float>(), x.numel());
  return y;
}
"""
TEMPORARIES_CU = """
#include <cstdint>

__global__ void twice(const float* x, float* y, int64_t count) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < count) y[i] = 2 * x[i];
}

void launch_twice(const float* x, float* y, int64_t count) {
  twice<<<(count + 255) / 256, 256>>>(x, y, count);
}
"""

# %% [markdown]
# We run both forms in the emulator, the part of this workbook that runs CUDA code on the CPU. The emulator keeps
# track of which memory is in use. Notebook 03 introduces the emulator.

# %%
from common.inline import inline

functions = ["in_the_call", "before_the_call"]
temporaries = inline("temporaries", TEMPORARIES_CPP, TEMPORARIES_CU, functions, target="emulator")
print("in the call:", temporaries.in_the_call(x).unique())
try:
    temporaries.before_the_call(x)
except RuntimeError as error:
    print(error)

# %% [markdown]
# A GPU reports nothing here. `y` is allocated after the copy is freed, and it has the size of the copy, so torch is
# likely to give `y` the same memory. Then the kernel reads the memory that it writes. This kernel still gives the
# right result, because each thread reads its element before it overwrites this element. Most other kernels would
# give wrong results.

# %% [markdown] syllabus="2.12h"
# ### An `IntArrayRef` owns nothing either (!)
#
# An `IntArrayRef` is a pointer and a length. The statement `at::IntArrayRef shape = {rows, columns};` makes a list
# and a pointer to this list, and the list is destroyed at the semicolon.

# %%
for function in (lifetimes.braced, lifetimes.returned, lifetimes.as_argument, lifetimes.named):
    print(f"{function.__name__:12s} of 5 rows and 7 columns:", function(5, 7))

# %% [markdown]
# The first two functions return whatever is on the stack. The result depends on the compiler, on the flags and on
# the code that ran before. It may even be right. In the third function, the list is an argument, so it lives until
# the call returns. This is why `at::empty({rows, columns})` is correct. To keep a shape, keep an object that owns
# it: an array, a `std::vector<int64_t>`, or the tensor whose shape it is.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/three_pointers`. `show("2/three_pointers")` in a cell checks it here.

# %% [markdown]
# ## Tensors as arguments and new tensors as results
#
# The third module has a function that reads a tensor through its pointer in a loop, a function whose argument may be
# missing, and several ways to make new tensors.

# %%
TENSORS = """
#include <torch/csrc/autograd/generated/variable_factories.h>

Tensor walk(const Tensor& x) {
  Tensor y = at::empty(x.sizes(), x.options());
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  for (int64_t k = 0; k < x.numel(); ++k) to[k] = 2 * from[k];
  return y;
}

Tensor walk_dense(const Tensor& x) { return walk(x.contiguous()); }

std::tuple<bool, std::vector<int64_t>, int64_t> describe(const std::optional<Tensor>& given) {
  const Tensor x = given.value_or(Tensor());
  return {x.defined(), x.sizes().vec(), x.numel()};
}

Tensor nothing() { return Tensor(); }

Tensor plus_one(const std::optional<Tensor>& given) { return given.value_or(Tensor()) + 1; }
"""

# %%
TENSORS += """
Tensor of_dtype(at::ScalarType dtype, at::Device device) {
  return at::empty({2, 3}, at::TensorOptions().dtype(dtype).device(device));
}

Tensor sparse() { return at::empty({2, 3}, at::TensorOptions().layout(at::kSparse)); }

Tensor at_with_gradient() { return at::empty({2, 3}, at::TensorOptions().requires_grad(true)); }
Tensor torch_with_gradient() { return torch::empty({2, 3}, at::TensorOptions().requires_grad(true)); }
Tensor marked() { return at::empty({2, 3}).set_requires_grad(true); }

Tensor pinned(at::Device device, bool sparse) {
  auto options = at::TensorOptions().device(device).layout(sparse ? at::kSparse : at::kStrided);
  return at::empty({2, 3}, options.pinned_memory(true));
}

Tensor by_sizes(const Tensor& x) { return at::empty(x.sizes()); }
Tensor by_options(const Tensor& x) { return at::empty(x.sizes(), x.options()); }
Tensor like(const Tensor& x) { return at::empty_like(x); }
"""

# %% [markdown]
# Two functions are still missing. `properties` returns the properties of a tensor as a text, and `in_its_format`
# makes a new tensor in the memory format of a given tensor:

# %%
TENSORS += """
std::string properties(const Tensor& x) {
  const bool is_float = x.dtype() == at::kFloat;  // or x.scalar_type() == at::kFloat
  return c10::str(x.scalar_type(), is_float ? " (kFloat)" : "", " on ", x.device(), ", layout ", x.layout(),
                  ", memory format ", x.suggest_memory_format(), x.is_pinned() ? ", pinned" : "");
}

Tensor in_its_format(const Tensor& x) {
  return at::empty(x.sizes(), x.options().memory_format(x.suggest_memory_format()));
}
"""
TENSORS_FUNCTIONS = ["walk", "walk_dense", "describe", "nothing", "plus_one", "of_dtype", "sparse"]
TENSORS_FUNCTIONS += ["at_with_gradient", "torch_with_gradient", "marked", "pinned"]
TENSORS_FUNCTIONS += ["by_sizes", "by_options", "like", "properties", "in_its_format"]
tensors = build("tensors", TENSORS, TENSORS_FUNCTIONS)

# %% [markdown] syllabus="2.12i"
# ### The gradient of a loss that ends in `sum()` (!)
#
# For `y = 2 x`, the gradient of x is twice the upstream gradient, that is, the gradient of the loss with respect to
# `y`. The backward pass here reads the upstream gradient through its pointer, element by element:

# %%
arrived = []


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, backward):
        ctx.backward = backward
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        arrived.append(grad)
        return ctx.backward(grad), None


def gradient(loss, backward):
    x = torch.ones(2, 3, requires_grad=True)
    return torch.autograd.grad(loss(Twice.apply(x, backward)), x)[0]


print(gradient(torch.sum, tensors.walk))

# %% [markdown]
# Every element should be 2, but only the first element is. Some texts say that such a gradient is "uninitialised".
# It is not. Look at the upstream gradient:

# %%
grad = arrived[-1]
print("shape", tuple(grad.shape), "strides", grad.stride(), "storage:", grad.untyped_storage().nbytes(), "bytes")

# %% [markdown]
# `sum` sends the same 1 to every element, so autograd passes on *one* number in an expanded tensor: because the
# strides are 0, all six elements are this number. After its first step, the loop over the raw pointer is past the
# four bytes of the number, and reads whatever is behind them. In the next cell, the upstream gradient is made from
# the first of six numbers, so we know what follows in memory:

# %%
six = torch.arange(1.0, 7.0)
print("walked:", tensors.walk(six[0].expand(2, 3)).flatten().tolist())
print("right: ", gradient(torch.sum, tensors.walk_dense).flatten().tolist())

# %% [markdown]
# `walk_dense` calls `walk(x.contiguous())`. The contiguous copy is a temporary in an argument list, which is legal,
# as shown above.

# %% [markdown] syllabus="2.12j"
# ### `mean()` hides the mistake
#
# This is the same wrong function with another loss:

# %%
print(gradient(torch.mean, tensors.walk) * 6)
grad = arrived[-1]
print("strides", grad.stride(), "storage:", grad.untyped_storage().nbytes(), "bytes")

# %% [markdown]
# `mean` divides the gradient by the number of elements, and the result of a division is a full tensor, with memory
# for every element. So test a backward pass with `sum()`, and also with a transposed upstream gradient of your own.

# %% [markdown] syllabus="2.12k"
# ### Undefined tensors
#
# A `Tensor` in C++ may be *undefined*, which corresponds to None in Python. An example is a gradient that is not
# needed. If you read the shape of an undefined tensor, you do not get an error:

# %%
print("returned to Python:", tensors.nothing())
print("defined, sizes, numel:", tensors.describe(None))
print("an empty tensor:      ", tensors.describe(torch.empty(0)))
try:
    tensors.plus_one(None)
except RuntimeError as error:
    print(error)

# %% [markdown]
# Only `defined()` distinguishes an undefined tensor from an empty one. Every operation that computes with an
# undefined tensor fails. The binding accepts None only for `std::optional<Tensor>`. For a plain `Tensor`, the
# binding raises an error:

# %%
try:
    tensors.like(None)
except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown] syllabus="2.12l"
# ### Options of a new tensor
#
# Python passes options as keyword arguments. In C++, `TensorOptions` passes them to a *factory function*, which
# makes a new tensor, as `empty` does. (`meta` is a device without memory.)

# %%
for dtype, device in ((torch.float64, "cpu"), (torch.int8, "meta")):
    made = tensors.of_dtype(dtype, torch.device(device))
    print(made.dtype, made.device, made.layout)
print(tensors.sparse().layout)

# %% [markdown]
# `requires_grad` is an option, too, but the namespaces differ: the factory functions in `at::` do not support this
# option, and those in `torch::` do. (PyTorch's C++ pages warn against all factory functions of `at::`. This warning
# dates from the time when `Variable` and `Tensor` were two types. Today autograd works with tensors from both
# namespaces, as `marked` below shows.)

# %%
print("torch::empty:", tensors.torch_with_gradient().requires_grad)
try:
    tensors.at_with_gradient()
except RuntimeError as error:
    print("at::empty:", error)

# %% [markdown] syllabus="2.12o"
# ### A new tensor does not require a gradient
#
# A new tensor does not require a gradient, even if it is made by `empty_like` from a tensor that does.
# `set_requires_grad` works on tensors from both namespaces.

# %%
weights = torch.ones(2, 3, requires_grad=True)
print("like:", tensors.like(weights).requires_grad, "  marked:", tensors.marked().requires_grad)

# %% [markdown] syllabus="2.12m"
# ### Pinned memory is on the CPU (!)
#
# Pinned memory is CPU memory that the operating system must not move, so that a GPU can copy from it by itself. For
# a tensor *on* the GPU, pinned memory makes no sense, although some examples ask for both, and torch raises an
# error. `at::empty` does not make a pinned sparse tensor either, because a sparse tensor is not one piece of memory:


# %%
def first_words(call, *arguments):
    try:
        made = call(*arguments)
        return f"pinned: {made.is_pinned()}"
    except RuntimeError as error:
        return str(error).splitlines()[0][:90]


print("sparse:", first_words(tensors.pinned, torch.device("cpu"), True))
print("cuda:  ", first_words(tensors.pinned, torch.device("cuda"), False))
print("cpu:   ", first_words(tensors.pinned, torch.device("cpu"), False))
print("meta:  ", first_words(torch.ones(2, 3, device="meta").pin_memory))

# %% [markdown]
# The driver of the GPU pins the memory. So without a GPU, the second and the third line are errors: the driver is
# missing, or this torch was built without CUDA.

# %% [markdown] syllabus="2.12n"
# ### Make a result with the dtype and device of the input
#
# A result should usually have the dtype and the device of the input. Here are three ways to do this, for a
# transposed tensor in float64:

# %%
x = torch.ones(2, 3, dtype=torch.float64).t()
for function in (tensors.by_sizes, tensors.by_options, tensors.like):
    made = function(x)
    print(f"{function.__name__:11s} {made.dtype}, strides {made.stride()}")

# %% [markdown]
# The first way loses the dtype and the device, and no test in float32 on the CPU shows this. The third way keeps
# even the strides, so use a raw pointer to the new tensor only if the input is contiguous. The second way makes a
# new contiguous tensor.

# %% [markdown] syllabus="2.12r"
# ### Images, and their memory format
#
# A batch of images has the shape (N, C, H, W). In the *memory format* `channels_last`, the strides are such that all
# channels of a pixel lie side by side, which convolutions on recent GPUs prefer. The shape stays the same. These are
# the properties that C++ reads from such a tensor:

# %%
image = torch.arange(24.0).view(1, 2, 3, 4).to(memory_format=torch.channels_last)
print(tensors.properties(image), " strides", image.stride())
print(tensors.properties(image.double().contiguous()))

# %% [markdown]
# `walk` doubles the numbers through two raw pointers and makes its result with `x.options()`, so the result is
# contiguous in the usual way. But in the memory of `image`, the numbers are in another order:

# %%
print("walk:         ", torch.equal(tensors.walk(image), 2 * image))
print("by_options:   ", tensors.by_options(image).stride())
print("in_its_format:", tensors.in_its_format(image).stride(), "  like:", tensors.like(image).stride())

# %% [markdown]
# The dtype, the device and the layout are part of the options of a tensor. The memory format is not. Pass the memory
# format explicitly, as `in_its_format` does, or use `empty_like`, which keeps the format. If you do not need the
# format, `contiguous()` copies the image into the usual order, as `walk_dense` does.

# %% [markdown]
# ## In pictures
#
# The pictures show which elements right and wrong code reads. The first picture is about `x[1:, 1:3]`, a view of
# twelve numbers. The second picture is about the gradient of `sum()`.

# %%
from common.figures.plots import BLUE, GREEN, STYLE, VERMILION

plt.rcParams.update(STYLE)


def draw(axis, title, cells, walks):
    """A row of memory cells, and below it a row of dots for each walk: where its elements are."""
    for k in range(cells + 6):
        inside = k < cells
        box = plt.Rectangle((k - 0.5, -0.4), 1, 0.8, edgecolor="#888888", facecolor="#e8eef6" if inside else "white")
        axis.add_patch(box)
        axis.text(k, 0, str(k) if inside else "?", ha="center", va="center", color="#1a1a1a")
    for row, (name, places, colour) in enumerate(walks, start=1):
        axis.plot(places, [-row] * len(places), "o", color=colour, markersize=9)
        axis.text(-0.9, -row, name, ha="right", va="center")
    axis.set_xlim(-0.6, 17.6)
    axis.set_ylim(-len(walks) - 0.6, 0.6)
    axis.set_title(title, loc="left")
    axis.axis("off")


view = torch.arange(12).view(3, 4)[1:, 1:3]
right = view.flatten().tolist()
added = [view.storage_offset() + place for place in right]
raw = [view.storage_offset() + k for k in range(view.numel())]
WALKS = [("by strides", right, GREEN), ("offset added", added, VERMILION), ("raw walk", raw, BLUE)]
figure, axes = plt.subplots(2, 1, figsize=(10, 4), layout="constrained")
draw(axes[0], "x[1:, 1:3] in a storage of 12 elements; '?' belongs to somebody else", 12, WALKS)
by_strides = torch.zeros(1).expand(2, 3).flatten().int().tolist()
WALKS = [("by strides", by_strides, GREEN), ("raw walk", list(range(6)), VERMILION)]
draw(axes[1], "the (2, 3) gradient of a bare sum(): six times the same element", 1, WALKS)
plt.show()

# %% [markdown]
# ## Summary
#
# - The pointer of a tensor points to the first element of the *tensor*, not of the storage. Counted from there, only
#   the strides determine where an element is.
# - A pointer, an accessor and an `IntArrayRef` own nothing. Give a name to the object that they point into.
# - Test with transposed inputs, with `sum()`, with `conj()`, and once with `MALLOC_PERTURB_=170`.
# - If a tensor may be missing, call `defined()` before you use the tensor. Make results with the options of the
#   inputs.
#
# Next: `02e_other_code` is about libraries that torch does not have, about C++ classes, and about extensions that
# are too old for today's torch.
