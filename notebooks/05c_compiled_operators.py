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
# # 05c: in-place operators, layouts, and the cost of a call
#
# Notebook 05 registers operators that return new tensors. This notebook is about three questions that come next.
# What does `torch.compile` do with an operator that writes to its argument? Which strides does an operator get in a
# compiled program? And how long does a call of an operator take, in Python and in C++?
#
# You need notebook 05 and a C++ compiler, but no GPU. The notebook takes about 40 minutes. In its first run, it also
# compiles for a minute. A heading with (!) is about a mistake that is common in code and in tutorials.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import os
import warnings

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import load_inline

os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(root / "build" / "inductor")
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
torch._inductor.config.fx_graph_cache = False  # the cache does not see a change of an operator (notebook 05)
warnings.filterwarnings("ignore", message=".*torch.jit.script")  # a warning about torch's own code

from common.measure.clock import interleave
from common.workbench import build_folder

build_folder()
torch.manual_seed(0)
torch.set_num_threads(1)
print("torch", torch.__version__, "on Python", sys.version.split()[0])


# %%
def attempt(call):
    """Prints what `call()` returns, or the first line of the error that it raises."""
    try:
        print(call())
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0][:230]}")


# %% [markdown] syllabus="5.3h"
# ## An operator that writes to its argument
#
# `advance_(cell, z)` adds `sigmoid(z)` to the cell state, in the memory of `cell`. Such an operator needs no memory
# for a result. Caches of keys and values, running means and optimizers work in this way. `torch.library.custom_op`
# makes an operator from a Python function and its type hints, and `mutates_args` names the arguments that it writes
# to. Our kernel also records the address that it gets:

# %%
ADDRESSES = []


@torch.library.custom_op("lab_in_place::advance_", mutates_args=("cell",))
def advance_(cell: torch.Tensor, z: torch.Tensor) -> None:
    ADDRESSES.append(cell.data_ptr())
    cell.add_(z.sigmoid())


print(torch.ops.lab_in_place.advance_.default._schema)

# %% [markdown]
# In the schema, `(a0!)` marks the argument that changes. With `torch.library.define`, and in C++, you write it
# yourself, for example `Tensor(a!) cell`. The operator returns nothing. It must not return its argument: the
# compiler takes each result for a new tensor.


# %%
@torch.library.custom_op("lab_in_place::returning", mutates_args=("cell",))
def returning(cell: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return cell.add_(z.sigmoid())


attempt(lambda: returning(torch.zeros(3), torch.zeros(3)))

# %% [markdown] syllabus="5.3h"
# ### What `torch.compile` copies
#
# The compiler first replaces each change in place by an operation that returns a new tensor, because it can only
# reorder such operations. At the end, it turns them back into changes in place, where nothing needs the old value
# any more. Where something does, the operator gets a copy. The addresses show which of the two happened:


# %%
def step(cell, z):
    advance_(cell, z)
    return cell.tanh()


def two_steps(cell, z):
    advance_(cell, z)
    advance_(cell, z)
    return cell.tanh()


def one_row(cell, z):
    advance_(cell[1], z[1])
    return cell.tanh()


def used_before(cell, z):
    before = 2 * cell
    advance_(cell, z)
    return cell + before


def used_later(cell, z):
    new_cell = cell.clone()
    advance_(new_cell, z)
    return new_cell - cell


def clone_before(cell, z):
    old_cell = cell.clone()
    advance_(cell, z)
    return cell - old_cell


FUNCTIONS = [step, two_steps, one_row, used_before, used_later, clone_before]


def where(function, cell, z):
    """Whether each call of the operator wrote to the caller's cell or to another tensor, and the two results."""
    ADDRESSES.clear()
    result = function(cell, z)
    inside = range(cell.data_ptr(), cell.data_ptr() + cell.nbytes)
    return ["the cell" if address in inside else "a copy" for address in ADDRESSES], result, cell


for function in FUNCTIONS:
    eager = where(function, torch.zeros(3, 2), torch.zeros(3, 2))
    compiled = where(torch.compile(function, fullgraph=True), torch.zeros(3, 2), torch.zeros(3, 2))
    same = all(torch.equal(*pair) for pair in zip(eager[1:], compiled[1:], strict=True))
    print(
        f"{function.__name__:14s}eager: {', '.join(eager[0]):22s}compiled: {', '.join(compiled[0]):22s}same: {same}"
    )

# %% [markdown]
# All results are those of eager mode. `step`, `two_steps` and `one_row` (a view of the cell) need no copy. In
# `used_before`, eager mode needs none either: it has computed `2 * cell` before the cell changes. But the compiler
# computes this product later, together with the sum, and for that it keeps the old cell. In `used_later` and
# `clone_before`, the program itself has one copy, and the compiled program has one, too. So a compiled program can
# need more memory than you expect of an operator in place. To see it, look at the addresses, as here.

# %% [markdown] syllabus="5.3i"
# ### What gets lost: the version of the tensor (!)
#
# Autograd may have saved the cell before it changes. Each tensor has a *version*, which every change in place
# raises. Backward compares the version with the one that it saved, and raises an error if they differ (notebook
# 00a). Does an operator of yours raise the version? A kernel that writes through a pointer does not, and a kernel in
# C++ or CUDA always writes through a pointer. The next operators are in C++: `hidden_` writes through a pointer, and
# `counted_` also raises the version.

# %%
CHANGING = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

using at::Tensor;

void hidden_(const Tensor& cell, double step) {
  float* numbers = cell.mutable_data_ptr<float>();
  for (int64_t k = 0; k < cell.numel(); ++k) numbers[k] += float(step);
}

void counted_(const Tensor& cell, double step) {
  hidden_(cell, step);
  cell.unsafeGetTensorImpl()->bump_version();
}

Tensor like(const Tensor& x) { return at::empty_like(x); }

TORCH_LIBRARY(lab_changing, m) {
  m.def("hidden_(Tensor(a!) cell, float step) -> ()", {at::Tag::pt2_compliant_tag});
  m.def("counted_(Tensor(a!) cell, float step) -> ()", {at::Tag::pt2_compliant_tag});
  m.def("like(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(lab_changing, CPU, m) {
  m.impl("hidden_", &hidden_);
  m.impl("counted_", &counted_);
  m.impl("like", &like);
}
"""
changing = load_inline("lab_changing", CHANGING, functions=["like"], no_implicit_headers=True, extra_cflags=["-O2"])


def change_what_is_saved(change):
    """The gradient of `weight * cell` if the cell changes after it was saved. Right is the old cell, 1."""
    weight, cell = torch.tensor([3.0], requires_grad=True), torch.ones(1)
    result = weight * cell
    change(cell)
    (gradient,) = torch.autograd.grad(result, weight)
    return gradient.item()


@torch.library.custom_op("lab_changing::in_python_", mutates_args=("cell",))
def in_python_(cell: torch.Tensor, step: float) -> None:
    torch.ops.lab_changing.hidden_(cell, step)


for name in ("hidden_", "counted_", "in_python_"):
    change = getattr(torch.ops.lab_changing, name)
    print(f"{name:12s}", end="")
    attempt(lambda change=change: change_what_is_saved(lambda cell: change(cell, 0.5)))

# %% [markdown]
# `hidden_` declares its change in the schema, and the gradient is still wrong, without an error: the schema is for
# the compiler. `custom_op` raises the version of everything in `mutates_args`, whatever the kernel does. With
# `torch.library.define`, and in C++, it is your task: call `bump_version()`, or
# `torch.autograd.graph.increment_version` in Python.

# %% [markdown] syllabus="5.3j"
# ### What gets lost: the gradient (!)
#
# The new cell depends on z. But an operator that returns nothing gives autograd nothing to attach a gradient to, and
# torch refuses to register one:

# %%
attempt(lambda: advance_.register_autograd(lambda ctx: None))
z, cell = torch.zeros(3, requires_grad=True), torch.zeros(3)
advance_(cell, z)
print("the cell needs a gradient:", cell.requires_grad)

# %% [markdown]
# So z gets no gradient, and there is no warning. For training, write an operator that returns a new tensor, and
# register its gradient (notebook 05). Offer the operator in place for inference, and let the Python function around
# it refuse what it cannot do:


# %%
def advance_in_place(cell, z):
    if torch.is_grad_enabled() and (z.requires_grad or cell.requires_grad):
        raise RuntimeError("advance_in_place: there is no gradient; use advance, or torch.no_grad()")
    advance_(cell, z)


attempt(lambda: advance_in_place(cell, z))

# %% [markdown] syllabus="5.3k"
# ## Which strides an operator gets
#
# In eager mode, the sum of a channels-last tensor and 1 is channels-last, too. A compiled program may choose other
# strides for such a result, because no caller sees them. But an operator does, and a kernel that assumes a layout
# would read the wrong numbers. A *tag* of the operator says which strides its arguments must have. The next
# operators record the strides that they get:

# %%
STRIDES = []
LAYOUT_TAGS = [
    None,
    "needs_exact_strides",
    "needs_fixed_stride_order",
    "needs_contiguous_strides",
    "flexible_layout",
]


def looks_at(x):
    STRIDES.append(x.stride())
    return x.clone(memory_format=torch.contiguous_format)


def operator_with(tag):
    """An operator with that layout tag, or with none, which records the strides of its argument."""
    name = f"lab_layout_{tag}::look"
    tags = [torch.Tag.pt2_compliant_tag, *([getattr(torch.Tag, tag)] if tag else [])]
    torch.library.define(name, "(Tensor x) -> Tensor", tags=tags)
    torch.library.impl(name, "cpu", looks_at)
    torch.library.register_fake(name, lambda x: x.new_empty(x.shape))
    return getattr(torch.ops, name.partition("::")[0]).look


def part_of_rows(look, x):
    return look((x + 1)[:, :3])


def channels_last_sum(look, x):
    return look(x.view(1, 2, 2, 5).to(memory_format=torch.channels_last) + 1)


look_with = {tag: operator_with(tag) for tag in LAYOUT_TAGS}
x = torch.randn(4, 5)
for function in (part_of_rows, channels_last_sum):
    print(function.__name__)
    for tag, look in look_with.items():
        STRIDES.clear()
        torch._dynamo.reset()
        eager, compiled = function(look, x), torch.compile(function, fullgraph=True)(look, x)
        print(
            f"    {tag or 'no tag':26s}eager {STRIDES[0]!s:15s} compiled {STRIDES[1]!s:15s}",
            torch.equal(eager, compiled),
        )

# %% [markdown]
# - Without a tag, torch 2.15 treats an operator as with `needs_exact_strides`: the compiled program passes the
#   strides of eager mode. `torch._functorch.config.custom_op_default_layout_constraint` is this default. Look in
#   your version of torch, or set a tag.
# - `needs_fixed_stride_order` keeps only the order of the strides, from the largest to the smallest. The gap between
#   two rows may go away, and channels-last stays channels-last.
# - `needs_contiguous_strides` always gives contiguous arguments, as if each call began with `contiguous()`.
# - With `flexible_layout`, the compiler chooses. The second function shows what that means: channels-last is gone.
#
# All of these operators return the same numbers, because `clone` handles any strides. The tag is a promise about
# your kernel: choose `flexible_layout` only if it is right for all strides, as the loops over accessors of notebook
# 05 are. A kernel that needs contiguous arguments should call `contiguous()` itself, because eager mode does not
# read the tags.

# %% [markdown] syllabus="5.1h"
# ## What a call costs
#
# The operators of this notebook were made in three ways. What does each of them cost in one call? All of these
# functions do the same: they allocate a result and compute nothing. "bound" is the C++ function without an operator.


# %%
@torch.library.custom_op("lab_cost::custom_op", mutates_args=())
def custom_op(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("lab_cost::with_gradient", mutates_args=())
def with_gradient(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


with_gradient.register_autograd(lambda ctx, grad: grad)
torch.library.define("lab_cost::defined", "(Tensor x) -> Tensor")
torch.library.impl("lab_cost::defined", "cpu", torch.empty_like)
CALLS = {
    "torch.empty_like": torch.empty_like,
    "C++, bound": changing.like,
    "C++, operator": torch.ops.lab_changing.like,
    "Python, define and impl": torch.ops.lab_cost.defined,
    "Python, custom_op": custom_op,
    "Python, custom_op with gradient": with_gradient,
}


def microseconds_of_calls(calls, x):
    """The shortest time of a call of each, taken in turns: what other programs of the machine disturb least."""
    samples = interleave([lambda call=call: call(x) for call in calls.values()], "cpu", 41, 0.003)
    return {name: min(sample.flat) for name, sample in zip(calls, samples, strict=True)}


plain, leaf = torch.zeros(1), torch.zeros(1, requires_grad=True)
COST = microseconds_of_calls(CALLS, plain)
TRACKED = microseconds_of_calls({name: call for name, call in CALLS.items() if "custom_op" in name}, leaf)
for name, time in COST.items():
    print(
        f"{name:34s}{time:6.2f} us" + (f", {TRACKED[name]:6.2f} us if x needs a gradient" if name in TRACKED else "")
    )

# %%
from common.figures.plots import BLUE, ORANGE, SKY, STYLE

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(9, 2.8), layout="constrained")
colours = [ORANGE if "Python" in name else BLUE if "C++" in name else SKY for name in COST]
bars = axis.barh(list(COST), list(COST.values()), color=colours)
axis.bar_label(bars, fmt="%.1f us", padding=3)
axis.invert_yaxis()
axis.set(title="One call of a function that allocates a result", xlabel="microseconds")
axis.margins(x=0.15)
plt.show()

# %% [markdown]
# On a slow CPU, this cell measured 1.3 us for the operator in C++, of which the dispatcher takes half. With `define`
# and `impl`, the kernel is a Python function, which costs only another 0.5 us. `custom_op` took 5 us, and 7 us if x
# needs a gradient: in each call, its own Python code prepares autograd, and checks that the result is not one of the
# arguments.
#
# So use `custom_op` for longer work, where these microseconds do not matter: a call into another library, or a
# kernel on large tensors. `define` and `impl` save most of them, but then the version, the gradient and the checks
# are your task. For small tensors, define the operator in C++, as stage 5 does, and write its gradient in C++, too,
# as stage 6 does.

# %% [markdown]
# ## Summary
#
# - An operator that writes to its argument declares it, returns nothing, and raises the version of the argument. It
#   has no gradient: use it for inference.
# - Without a tag, an operator gets the strides of eager mode, if necessary in a copy.
# - A call of a `custom_op` costs several times as much as one of an operator in C++, or with `define` and `impl`.
#
# Next: stage 6 makes the operator fast.
