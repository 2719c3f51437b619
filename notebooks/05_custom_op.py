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
# # 05: a registered operator
#
# Until now, torch called a Python function, and could not see what happened inside. torch treats a *registered
# operator* like its own operators: torch can compile it, differentiate it, cast its arguments, run it on batches,
# and export it. None of this works by itself. For each of these features, you register a function. In this notebook,
# you write an operator in a few lines and see what happens without each registration. Then you give torch a wrong
# description of an operator, in four ways, and see which checks find the mistake. Notebook 05b continues with dtypes,
# packages and times. A heading with (!) is about a mistake that is common in code and in tutorials.
#
# You need notebook 02 and a C++ compiler. The notebook takes about 75 minutes. In its first run, it also compiles for
# a minute.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %% [markdown]
# `torch.compile` keeps compiled graphs on disk. The next cell switches this cache off. A section below shows why.

# %%
# %matplotlib inline
import os
import subprocess
import time
import warnings

import matplotlib.pyplot as plt
import torch

os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(root / "build" / "inductor")
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
torch._inductor.config.fx_graph_cache = False
warnings.filterwarnings("ignore", message=".*torch.jit.script")  # a warning about torch's own code

from common import load
from common.cell.case import Case, difference, outputs
from common.workbench import build_folder

BUILD = build_folder()
torch.manual_seed(0)
torch.set_num_threads(1)
print("torch", torch.__version__, "on Python", sys.version.split()[0])


# %%
def attempt(call, lines=1):
    """What `call()` returns, or the first lines of the error that it raises, and any warning, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
            if result is not None:
                print(result)
        except Exception as error:
            said = [line for line in str(error).splitlines() if line.strip()][:lines]
            print(f"{type(error).__name__}: " + "\n    ".join(line.strip()[:230] for line in said))
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print("    warning:", message.partition("(Triggered")[0][:230])


# %% [markdown] syllabus="5.1e"
# ## Which kernels a call reaches
#
# An operator is a name and a table of functions, which torch calls *kernels* whether they run on a GPU or not. Each
# entry of the table belongs to a *dispatch key*: a device, or a feature such as autograd, autocast (automatic casts
# to a smaller dtype) or `vmap` (which runs a function over an additional dimension). A call collects keys from its
# tensors and from the modes that are switched on. The keys have a fixed order: vmap comes first, then autocast, then
# autograd, and the device comes last. The *dispatcher* calls the kernel of the *outermost* key, which is the first
# key in this order:
#
# $$\mathrm{call}(x) = \mathrm{kernel}_k(x), \quad k = \mathrm{outermost}\,(\mathrm{keys}(x) \cup \mathrm{modes})$$
#
# That kernel does its part, removes its own key, and calls the operator again. The autocast kernel casts, the
# autograd kernel records what backward will need, and the vmap kernel merges the additional dimension with another
# one. The last kernel computes the result. The kernels of the following operator only record that they were called.

# %%
from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard

who = torch.library.Library("who", "DEF")
who.define("asked(Tensor x) -> Tensor")
seen = []


def passes_on(key):
    def kernel(x):
        seen.append(key)
        with _ExcludeDispatchKeyGuard(DispatchKeySet(getattr(DispatchKey, key))):
            return torch.ops.who.asked(x)

    return kernel


def computes(key):
    def kernel(x):
        seen.append(key)
        return torch.empty_like(x)

    return kernel


def folds(info, in_dims, x):
    seen.append("FuncTorchBatched")
    return torch.ops.who.asked(x), in_dims[0]


for key in ("AutocastCPU", "AutogradCPU", "AutogradMeta"):
    who.impl("asked", passes_on(key), key)
for key in ("CPU", "Meta"):
    who.impl("asked", computes(key), key)
torch.library.register_vmap("who::asked", folds, lib=who)

# %% [markdown]
# The next cell calls this operator in seven situations:

# %%
from torch._subclasses.fake_tensor import FakeTensorMode

x, ask = torch.ones(3, 2), torch.ops.who.asked


def situation(call, *contexts):
    seen.clear()
    for context in contexts:
        context.__enter__()
    call()
    for context in reversed(contexts):
        context.__exit__(None, None, None)
    return list(seen)


fake, bfloat16 = FakeTensorMode(), torch.autocast("cpu", torch.bfloat16)
ASKED = {
    "a tensor": situation(lambda: ask(x)),
    "under no_grad": situation(lambda: ask(x), torch.no_grad()),
    "under inference_mode": situation(lambda: ask(x), torch.inference_mode()),
    "under autocast": situation(lambda: ask(x), bfloat16),
    "under vmap": situation(lambda: torch.vmap(ask)(x)),
    "on the meta device": situation(lambda: ask(x.to("meta"))),
    "a fake tensor": situation(lambda: ask(fake.from_tensor(x)), fake),
}
for name, keys in ASKED.items():
    print(f"{name:22s}", " > ".join(keys))

# %% [markdown]
# Notice three facts. First, the autograd kernel is called for every tensor, although no tensor here needs a
# gradient. It is called under `no_grad`, too. Only under `inference_mode`, it is not called. Second, a call with a
# *fake tensor* (a tensor with a shape, a dtype and a device, but without data) ends at the kernel for `Meta`, which
# computes only shapes. `torch.compile` and `torch.export` call operators with fake tensors. Third, none of this
# needs Python: the next section defines and registers an operator in C++, with a header, a declaration in a string,
# and a pointer to a function. This picture shows the seven calls:

# %%
from common.figures.plots import BLUE, GREEN, ORANGE, STYLE, VERMILION

plt.rcParams.update(STYLE)
LEVELS = {"FuncTorchBatched": GREEN, "AutocastCPU": ORANGE, "AutogradCPU": BLUE, "CPU": VERMILION}
figure, axis = plt.subplots(figsize=(10, 3.1), layout="constrained")
for column, keys in enumerate(ASKED.values()):
    rows = [list(LEVELS).index(key.replace("Meta", "CPU")) for key in keys]
    axis.plot([column] * len(rows), rows, color="#1a1a1a", lw=1, zorder=1)
    for key, row in zip(keys, rows, strict=True):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": list(LEVELS.values())[row], "lw": 2}
        label = {"FuncTorchBatched": "vmap", "AutocastCPU": "cast", "CPU": "compute", "Meta": "shapes"}.get(
            key, "note"
        )
        axis.text(column, row, label, ha="center", va="center", bbox=box)
axis.set_xticks(range(len(ASKED)), [name.replace(" ", "\n", 1) for name in ASKED])
axis.set_yticks(range(len(LEVELS)), ["FuncTorchBatched", "Autocast", "Autograd", "CPU, CUDA, Meta"])
axis.set(
    xlim=(-0.5, len(ASKED) - 0.5), ylim=(3.5, -0.5), title="the kernels that each call reaches, from top to bottom"
)
axis.grid(False)
axis.tick_params(bottom=False)
plt.show()

# %% [markdown] syllabus="5.1a 5.1b"
# ## An operator in C++, from scratch
#
# `gated(z, x)` is `sigmoid(z) * x`, the operation that each gate of the cell performs. We start with the loop, as in
# notebook 04:

# %%
GATED = """
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

using at::Tensor;

template <typename scalar_t>
void gated_rows(at::TensorAccessor<scalar_t, 2> out, at::TensorAccessor<const scalar_t, 2> z,
                at::TensorAccessor<const scalar_t, 2> x) {  // [B,S] all, any strides
  for (int64_t row = 0; row < z.size(0); ++row)
    for (int64_t unit = 0; unit < z.size(1); ++unit)
      out[row][unit] = x[row][unit] / (1 + std::exp(-z[row][unit]));
}

Tensor gated(const Tensor& z, const Tensor& x) {  // [B,S] both
  TORCH_CHECK(z.dim() == 2 && x.sizes() == z.sizes(), "gated: x has shape ", x.sizes(), ", but z has ", z.sizes());
  TORCH_CHECK(x.scalar_type() == z.scalar_type(), "gated: x has dtype ", x.scalar_type(), ", but z has ",
              z.scalar_type());
  Tensor out = at::empty(z.sizes(), z.options());
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "gated", [&] {
    gated_rows<scalar_t>(out.accessor<scalar_t, 2>(), z.accessor<const scalar_t, 2>(),
                         x.accessor<const scalar_t, 2>());
  });
  return out;
}
"""

# %% [markdown]
# The rest of the source is two registrations. `TORCH_LIBRARY` defines the operators of a namespace. Each operator
# has a *schema*: its name, the names and types of its arguments, and the types of its results. `TORCH_LIBRARY_IMPL`
# fills one entry of the table. A program can contain any number of these blocks, in any file, for any operator.

# %%
GATED += """
TORCH_LIBRARY(lab, m) {
  m.def("gated(Tensor z, Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def("forgotten(Tensor z, Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
}

TORCH_LIBRARY_IMPL(lab, CPU, m) {
  m.impl("gated", &gated);
  m.impl("forgotten", &gated);
}
"""

# %% [markdown]
# This source does not use Python. With `is_python_module=False`, `load_inline` builds an ordinary shared library,
# and loads it without an import. (The second argument of `m.def` is a *tag*. `pt2_compliant_tag` tells
# `torch.compile` to trust the schema and the *fake kernel*, which a section below explains. `forgotten` is the same
# function under a second name. We will leave out most of its registrations.)

# %%
from torch.utils.cpp_extension import load_inline

library = load_inline(
    "lab", GATED, functions=None, is_python_module=False, no_implicit_headers=True, extra_cflags=["-O2"]
)
z, x = torch.randn(3, 4), torch.randn(3, 4)
print(torch.ops.lab.gated.default._schema)
print("agrees:", torch.allclose(torch.ops.lab.gated(z, x=x), z.sigmoid() * x))

# %% [markdown] syllabus="5.1a 5.1d"
# ### torch checks the arguments against the schema
#
# The call used `torch.ops.NAMESPACE.NAME`, and it could pass an argument by its name. torch checks the arguments
# against the schema before it calls the C++ function. The function itself checks what the schema cannot express,
# such as the shapes in the last line:

# %%
gated = torch.ops.lab.gated
attempt(lambda: gated(z))
attempt(lambda: gated(z, 3.0), lines=2)
attempt(lambda: gated(z, x[:2]))

# %% [markdown] syllabus="5.1b"
# ### An empty entry in the table
#
# The next cell shows which entries have a kernel. The cell compares our operator with an operator of stage 5. The
# kernels of that operator are registered in three C++ files and in `lltm.py`:

# %%
stage5 = load(5, "host")
pointwise = stage5.operators.pointwise
KEYS = ("CPU", "CUDA", "Meta", "Autograd", "AutocastCPU", "AutocastCUDA", "FuncTorchBatched")


def filled(operator):
    name = operator.default.name().partition(".")[0]
    return [key for key in KEYS if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)]


for operator in (gated, pointwise):
    print(f"{operator.default.name():30s}", ", ".join(filled(operator)))

# %% [markdown]
# (Here the stage was built for the CPU alone.) If a tensor is on a device whose entry is empty, the call raises an
# error. You can see this with the meta device, which has shapes but no data:

# %%
attempt(lambda: gated(z.to("meta"), x.to("meta")))

# %% [markdown] syllabus="5.1c"
# ### Loading the library without pybind11
#
# The constructors of static objects do all the registrations. These constructors run when the dynamic loader loads
# the library. `torch.ops.load_library` does nothing except load the library, so any process can do the same,
# including a C++ program. The next cell loads the library in a new process:

# %%
LOADING = f"""
import torch
print("before:", hasattr(torch.ops.lab, "gated"))
torch.ops.load_library({library!r})
print("after: ", torch.ops.lab.gated(torch.zeros(1, 2), torch.ones(1, 2)))
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("lab", {library!r})
importlib.util.module_from_spec(importlib.util.spec_from_file_location("lab", {library!r}, loader=loader))
"""


def process(script):
    """Runs a script in a process of its own; returns its status, and the lines that it printed and complained."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()


status, printed, complained = process(LOADING)
print(*printed, complained[-1], sep="\n")

# %% [markdown]
# The library is not a Python module, because it has no `PyInit` function. The stage adds this function in a few
# lines, so that `from . import _C` finds the library wherever it is installed. These lines use only the part of
# Python's C interface that stays the same in later versions. That is why one built package (a *wheel*) of stage 5
# works with Python 3.10 and all later versions.

# %% [markdown] syllabus="5.1f"
# ### Two libraries, one namespace
#
# A namespace can be defined only once in a process. The next cell loads two copies of the same library in one
# process. A process that imports two versions of a package does the same:

# %%
copy = Path(library).with_name("lab_again.so")
copy.write_bytes(Path(library).read_bytes())
status, _, complained = process(
    f"import torch\ntorch.ops.load_library({library!r})\n"
    f"try:\n    torch.ops.load_library({str(copy)!r})\nexcept BaseException as error:\n    print('caught', error)"
)
print("status", status)
print("\n".join(line[:230] for line in complained if "terminate" in line or "what()" in line))

# %% [markdown]
# You cannot catch this exception. It is thrown while the dynamic loader is running, where no handler can receive it,
# so the process ends. For this reason, the stage's namespace is a macro that `setup.py` sets, and a copy of the
# stage can have another namespace. (To add an operator to a namespace that another library has defined, use
# `TORCH_LIBRARY_FRAGMENT`.)

# %% [markdown] tags=["exercise"]
# **Your turn:** `5/register`. In a terminal, `make check EX=5/register` gives you the files and checks what you
# wrote. The next cell runs the check here.

# %%
from common.exercises import show

show("5/register")

# %% [markdown] syllabus="5.2a"
# ## What each registration makes possible
#
# ### A fake kernel
#
# `gated` computes the right values. Can torch compile a function that calls it?


# %%
def double_gated(z, x):
    return 2 * torch.ops.lab.gated(z, x)


attempt(lambda: torch.compile(double_gated, backend="aot_eager", fullgraph=True)(z, x), lines=4)

# %% [markdown]
# The compiler records a function by running it on fake tensors, and torch does not know what `gated` returns for
# fake tensors. (`backend="aot_eager"` records everything and compiles nothing, so it is faster by seconds.) The
# *fake kernel* defines the shape, dtype, device and strides of the result, and computes no values. An operator has
# one fake kernel for all devices:

# %%
torch.library.register_fake("lab::gated", lambda z, x: z.new_empty(z.shape))
attempt(lambda: torch.compile(double_gated, backend="aot_eager", fullgraph=True)(z, x) - 2 * z.sigmoid() * x)
enormous = torch.empty(10**9, 10**9, device="meta")
attempt(lambda: gated(enormous, enormous).shape)

# %% [markdown] syllabus="5.2b 5.2e 5.2f"
# ### A gradient
#
# What happens to the gradient of an operator without a registered gradient? The result has a `grad_fn`, so
# everything looks right:

# %%
leaf = z.clone().requires_grad_()
y = gated(leaf, x)
print("requires_grad:", y.requires_grad, "  grad_fn:", type(y.grad_fn).__name__)
attempt(lambda: y.sum().backward())
print("gradient:", leaf.grad)
attempt(lambda: torch.autograd.grad(gated(leaf, x).sum(), leaf))
attempt(lambda: torch.func.grad(lambda z: gated(z, x).sum())(z)[0])

# %% [markdown]
# All three calls print a long warning. In a training script, the warning appears only once, somewhere above the
# first loss. After the warning, the three calls behave differently. `backward()` leaves the gradient at None, and an
# optimizer skips such a parameter without a message. `autograd.grad` raises an error. `torch.func.grad` returns
# zeros. The next cell registers the gradient with the two functions that you know from notebook 00a:


# %%
def setup_context(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, grad):
    z, x = ctx.saved_tensors
    s = z.sigmoid()
    return grad * x * s * (1 - s), grad * s


torch.library.register_autograd("lab::gated", backward, setup_context=setup_context)
doubles = [tensor.double().requires_grad_() for tensor in (z, x)]
attempt(lambda: torch.autograd.gradcheck(gated, doubles))
attempt(lambda: torch.autograd.gradgradcheck(gated, doubles))

# %% [markdown]
# Our `backward` consists of torch's own operations, so torch can also compute the second derivative. The stage's
# backward calls another operator, `pointwise_backward`. The gradient registered for that operator is a function that
# raises an error. (Without this registration, torch would only warn, and a second derivative would then be None,
# raise an error, or be zero, as in the three calls above.)
#
# The call of `pointwise_backward` is a node in autograd's graph, as the call of a second Function in notebook 00b.
# This node must be connected with all arguments of the cell, so that the error reaches every caller,
# `torch.autograd.grad` included. It gets `new_cell`, a result of `pointwise`, which leads to all of them. The gates
# are marked as non-differentiable, so they lead nowhere. The next cell computes the gradient for the bias of a loss
# that contains the gradient for the old cell:

# %%
inputs = Case(2, 3, 4).inputs()
value = sum(result.sum() for result in stage5.lltm(*inputs.values()))
(first,) = torch.autograd.grad(value, inputs["old_cell"], create_graph=True)
attempt(lambda: torch.autograd.grad(value + first.square().sum(), inputs["bias"]))

# %% [markdown]
# Two features still do not work. `torch.func.grad` now raises an error, which is better than zeros. And *forward
# mode* (`jvp`), which computes the derivative along a direction together with the result, returns a wrong value:

# %%
ones = torch.ones_like(z)
attempt(lambda: torch.func.grad(lambda z: gated(z, x).sum())(z))
print("jvp of gated:       ", torch.func.jvp(lambda z: gated(z, x).sum(), (z,), (ones,))[1])
print("jvp of the formula: ", torch.func.jvp(lambda z: (z.sigmoid() * x).sum(), (z,), (ones,))[1])
attempt(lambda: torch.autograd.gradcheck(gated, doubles, check_forward_ad=True))

# %% [markdown]
# **Forward mode silently returns zero** for every operator with `register_autograd`, both in torch 2.11 and in torch
# 2.15. This affects `torch.func.jvp` and the functions built on it (`jacfwd`, `hessian`). `gradcheck` finds the error
# if you set `check_forward_ad=True`.
#
# In forward mode, each tensor carries its *tangent*, the derivative along the direction. An operator with only a
# backward ignores the tangents of its arguments, and its results have none. So look for tangents before you call the
# operator, and raise an error if there is one:


# %%
def gated_or_error(z, x):
    for tensor in (z, x):
        if torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
            raise RuntimeError("gated: there are no forward-mode derivatives")
    return gated(z, x)


attempt(lambda: torch.func.jvp(lambda z: gated_or_error(z, x).sum(), (z,), (ones,)))
old_h = inputs["old_h"]
attempt(lambda: torch.func.jvp(lambda h: stage5.lltm(**{**inputs, "old_h": h})[0], (old_h,), (old_h.cos(),)))

# %% [markdown]
# The stage's `lltm` does the same in `refuse_tangents`. A direct call of the operator, without this function, still
# drops the tangents.

# %% [markdown] tags=["exercise"]
# **Your turn:** `5/fake_kernels` and `5/gradient`. `show("5/fake_kernels")` in a cell checks it here.

# %% [markdown] syllabus="5.4a"
# ### Autocast
#
# Inside `torch.autocast`, torch casts the arguments of some operations, such as matrix products, to a smaller dtype.
# So the result of a product is in bfloat16, but the cell state stays in float32. An operator that takes both
# receives two different dtypes:


# %%
def under_autocast(operator, *arguments):
    with torch.autocast("cpu", torch.bfloat16):
        product = torch.mm(torch.eye(len(arguments[0])), arguments[0])
        return operator(product, *arguments[1:])


attempt(lambda: under_autocast(gated, z, x))
torch.library.register_autocast("lab::gated", "cpu", torch.float32)
attempt(lambda: under_autocast(gated, z, x).dtype)

# %% [markdown]
# `register_autocast` is one line in Python, and it casts to a fixed dtype. This is right for `gated`, which supports
# only float32 and float64. The stage also supports bfloat16 and half, and uses the dtype that autocast is set to.
# For this, the stage has an autocast kernel in C++ (`pointwise_autocast` in `csrc/lltm.cpp`). This kernel excludes
# its own key, reads the dtype of autocast, casts, and calls the operator again.

# %%
B, S = 3, 4
z3, old_cell = torch.randn(B, 3 * S), torch.randn(B, S)
attempt(lambda: pointwise(z3.bfloat16(), old_cell))
attempt(lambda: [result.dtype for result in under_autocast(pointwise, z3, old_cell)])

# %% [markdown]
# The first line shows the stage without autocast: its operators raise an error for mixed dtypes instead of choosing
# one.

# %% [markdown] syllabus="5.2g"
# ### A batching rule
#
# `vmap` maps a function over an additional dimension. A *batching rule* is an operator's kernel for `vmap`: it
# computes all slices in one call. Without a batching rule, torch calls the operator once for each slice. The result
# is right, the calls are slow, and torch warns:

# %%
many_z, many_x = torch.randn(200, 3, 4), torch.randn(200, 3, 4)
attempt(lambda: torch.allclose(torch.vmap(gated)(many_z, many_x), many_z.sigmoid() * many_x))


def microseconds(call):
    """The shortest of five calls."""
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return 1e6 * min(times)


slices = microseconds(lambda: torch.vmap(gated)(many_z, many_x))


# %% [markdown]
# With a batching rule, 200 batches become one larger batch:


# %%
def in_one_batch(info, in_dims, z, x):
    full = [
        tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip((z, x), in_dims, strict=True)
    ]
    return gated(*(tensor.flatten(0, 1) for tensor in full)).unflatten(0, (info.batch_size, -1)), 0


torch.library.register_vmap("lab::gated", in_one_batch)
attempt(lambda: torch.allclose(torch.vmap(gated)(many_z, many_x), many_z.sigmoid() * many_x))
attempt(lambda: torch.allclose(torch.vmap(gated, (0, None))(many_z, x), many_z.sigmoid() * x))
batch = microseconds(lambda: torch.vmap(gated)(many_z, many_x))
print(f"slice by slice {slices:,.0f} us, as one batch {batch:,.0f} us")

# %% [markdown] syllabus="5.2c"
# ## `opcheck`
#
# It is easy to forget a registration, so torch has a test for this. `torch.library.opcheck` calls an operator with
# your arguments, and compares the operator's behaviour with its registrations:
#
# - `test_schema`: does the operator change or return an argument although the schema does not declare it?
# - `test_autograd_registration`: is the gradient registered where `torch.compile` finds it?
# - `test_faketensor`: does the fake kernel describe what the real kernel returns?
# - `test_aot_dispatch_dynamic`: are the results and the gradients the same when the operator is compiled with
#   dynamic shapes?

# %%
from torch.library import opcheck

arguments = (torch.randn(3, 4, requires_grad=True), torch.randn(3, 4, requires_grad=True))
for name, result in opcheck(gated, arguments).items():
    print(f"{name:28s}{result}")

# %% [markdown]
# `opcheck` tests only the arguments that you pass. To show this, we need a few more operators. You can also define
# operators in Python, with three functions of `torch.library`. The operators that we define next all call `gated`.
# The first of them has the fake kernel that most people write first:

# %%
TAGS = [torch.Tag.pt2_compliant_tag]


def operator(name, fake, kernel=lambda z, x: gated(z, x), schema="(Tensor z, Tensor x) -> Tensor"):
    """A new operator torch.ops.lab_NAME.gated with a kernel for the CPU, and a fake one."""
    torch.library.define(f"lab_{name}::gated", schema, tags=TAGS)
    torch.library.impl(f"lab_{name}::gated", "cpu", kernel)
    torch.library.register_fake(f"lab_{name}::gated", fake)
    return getattr(torch.ops, f"lab_{name}").gated


like_z = operator("like_z", lambda z, x: torch.empty_like(z))


def complaints(operator, arguments):
    """What opcheck finds, by the name of the test."""
    results = opcheck(operator, arguments, raise_exception=False)
    return {test: str(result) for test, result in results.items() if result != "SUCCESS"}


plain = (torch.randn(3, 4), torch.randn(3, 4))
transposed = tuple(tensor.t() for tensor in plain)
for name, given in {"contiguous": plain, "transposed": transposed}.items():
    print(f"{name}:", *complaints(like_z, given).values() or ["nothing"])

# %% [markdown]
# `empty_like(z)` keeps the strides of `z`, but `gated` returns contiguous tensors for all inputs. So call `opcheck`
# with samples of every layout, dtype, device and size that your operator supports, as
# `tests/stages/test_custom_op.py` does. (And
# use a new version of torch: 2.11 compares strides only for CUDA tensors, and finds nothing here.)

# %% [markdown] syllabus="5.2d"
# ### What `opcheck` does not find
#
# `opcheck` does not check values. The next operator returns twice the right result, and has a gradient of zero:


# %%
def twice_too_much(z, x):
    return 2 * torch.ops.lab.gated(z, x)


contiguous = lambda z, x: z.new_empty(z.shape)  # noqa: E731  (the right fake kernel)
wrong = operator("wrong", contiguous, twice_too_much)
torch.library.register_autograd("lab_wrong::gated", lambda ctx, grad: (0 * grad, 0 * grad))
print("wrong values:    ", *complaints(wrong, arguments).values() or ["nothing"])
print("wrong by up to   ", (wrong(*plain) - plain[0].sigmoid() * plain[1]).abs().max().item())
attempt(lambda: torch.autograd.gradcheck(wrong, doubles))

# %% [markdown]
# `opcheck` also does not notice that a gradient was never registered. The gradient is missing both in eager mode
# (without compilation) and when the operator is compiled. So the two results that `opcheck` compares agree.

# %%
torch.library.register_fake("lab::forgotten", contiguous)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print("no gradient:     ", *complaints(torch.ops.lab.forgotten, arguments).values() or ["nothing"])
    attempt(lambda: torch.autograd.gradcheck(torch.ops.lab.forgotten, doubles))

# %% [markdown]
# `opcheck` compares an operator with itself. For the values you still need a reference, and for the gradients
# `gradcheck`.

# %% [markdown] syllabus="5.3a"
# ## The operator under `torch.compile`
#
# ### One graph, without a break
#
# `torch.compile` records a function as a *graph* of operations. Stage 2's function calls C++ code that torch cannot
# see into, so the graph has to end there. This is a *graph break*, and with `fullgraph=True` it is an error. Stage
# 5's function is one graph, and the operator is one of its nodes:

# %%
case = Case(B=16, I=32, S=128)
attempt(lambda: torch.compile(load(2).lltm, backend="aot_eager", fullgraph=True)(*case.inputs().values()), lines=3)
graphs = []


def keep(graph, inputs):
    graphs.append(graph)
    return graph


torch.compile(stage5.lltm, backend=keep, fullgraph=True)(*case.inputs().values())
nodes = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
print("stage 5:", ", ".join(getattr(target, "__name__", str(target)) for target in nodes))

# %% [markdown]
# The next cell compiles the function with inductor, torch's default compiler, for a batch size that changes. Values
# and gradients agree with the reference, and the same graph is used for all sizes.

# %%
from torch._dynamo.utils import counters

counters.clear()
compiled = torch.compile(stage5.lltm, fullgraph=True, dynamic=True)
for B in (16, 5, 40):
    case = Case(B, 32, 128)
    print(case, difference(case, outputs(compiled, case)) or "agrees")
print("graphs:", counters["stats"]["unique_graphs"])

# %% [markdown] syllabus="5.3g"
# ### Exporting the graph
#
# `torch.export` turns the same graph into a program that you can save and load. A C++ program can load it, too, if
# the operator's library is loaded. In the next cell, the batch size is a symbol instead of a number:


# %%
class Cell(torch.nn.Module):
    def forward(self, input, weights, bias, old_h, old_cell):
        return stage5.lltm(input, weights, bias, old_h, old_cell)


inputs = tuple(tensor.detach() for tensor in Case(16, 32, 128).inputs().values())
batch = {0: torch.export.Dim("B", min=1)}
exported = torch.export.export(Cell(), inputs, dynamic_shapes=(batch, None, None, batch, batch))
print(exported.graph_module.code.strip())

# %% [markdown] syllabus="5.3b"
# ### A wrong fake kernel under inductor (!)
#
# You often read that a wrong fake kernel silently leads to wrong results. We test this with three fake kernels that
# lie about the result of `gated` for inputs of shape (3, 4): about its shape, its strides and its dtype. The first
# test uses inductor:

# %%
LIES = {
    "shape": operator("shape", lambda z, x: z.new_empty(z.size(1), z.size(0))),
    "strides": operator("strides", lambda z, x: z.new_empty(z.size(1), z.size(0)).t()),
    "dtype": operator("dtype", lambda z, x: z.new_empty(z.shape, dtype=torch.float16)),
}
z, x = plain
for name, lie in LIES.items():
    print(f"--- {name}")
    attempt(lambda lie=lie: torch.compile(lambda z, x: lie(z, x).sum(1), fullgraph=True)(z, x), lines=3)

# %% [markdown]
# Each call raises an error that names the operator. The code that inductor generates asserts the sizes, strides and
# dtype of every result of an operator. (The assert for the dtype was added later. torch 2.11 does not have it, and
# computes a wrong sum.)

# %% [markdown] syllabus="5.3c"
# ### Where a wrong fake kernel causes no error
#
# The asserts take a little time in each call, so a user may switch them off. And a package that AOTInductor compiles
# ahead of time does not contain any asserts. The next cell puts all three lies into one module, and runs it in both
# ways:


# %%
class AllLies(torch.nn.Module):
    def forward(self, z, x):
        return tuple(lie(z, x).sum(1) for lie in LIES.values())


with torch._inductor.config.patch(size_asserts=False):
    without_asserts = torch.compile(AllLies(), fullgraph=True)(z, x)
program = torch.export.export(AllLies(), (z, x))
package = torch._inductor.aoti_compile_and_package(program, package_path=str(BUILD / "lies.pt2"))
ahead_of_time = torch._inductor.aoti_load_package(package)(z, x)
print(f"{'':10s}{'right':32s}{'without asserts':42s}ahead of time")
for k, name in enumerate(LIES):
    results = (gated(z, x).sum(1), without_asserts[k], ahead_of_time[k])
    print(f"{name:10s}", *("[" + ", ".join(f"{v:6.2f}" for v in result.tolist()) + "]   " for result in results))

# %% [markdown]
# No sum in the last two columns is right. With the wrong shape, the compiled code sums other rows. With the wrong
# strides, it sums other elements. With the wrong dtype, it reads the bytes of float numbers as half numbers. If the
# declared result were *larger* than the real one (float64 for float32), the compiled code would read and write past
# the end of the tensor, and might crash. So run `opcheck` before you package an operator.

# %% [markdown] syllabus="5.3d"
# ### An undeclared mutation
#
# A schema can be wrong, too. An operator that updates one of its arguments in place must declare this:
# `Tensor(a!) cell`. The next cell calls two operators that do the same, first in eager mode and then compiled. One
# declares the update, and the other hides it:


# %%
def advance_cell(cell, z):
    cell.add_(z.sigmoid())
    return cell.tanh()


like_cell = lambda cell, z: cell.new_empty(cell.shape)  # noqa: E731
SCHEMAS = {"declared": "(Tensor(a!) cell, Tensor z) -> Tensor", "hidden": "(Tensor cell, Tensor z) -> Tensor"}
ADVANCE = {name: operator(name, like_cell, advance_cell, schema) for name, schema in SCHEMAS.items()}


def read_before(advance, cell, z):
    before = 2 * cell
    return advance(cell, z) + before


def on_a_copy(advance, cell, z):
    copy = cell.clone()
    return advance(copy, z) + 0


for function in (read_before, on_a_copy):
    for name, advance in ADVANCE.items():
        for how, call in (("eager", function), ("compiled", torch.compile(function, fullgraph=True))):
            cell = torch.tensor([0.0, 1.0, 2.0])
            result = call(advance, cell, torch.zeros(3))
            shown = [[round(v, 2) for v in tensor.tolist()] for tensor in (result, cell)]
            print(f"{function.__name__:12s}{name:10s}{how:10s}result {shown[0]}   cell {shown[1]}")

# %% [markdown]
# In both functions, the compiled call with the hidden mutation differs from the other three. In the first function,
# inductor computes `2 * cell` after the operator instead of before it, together with the sum. According to the
# schema, this is allowed. In the second function, inductor left out the copy, because the schema does not say that
# the operator writes to its argument. So the operator changed the caller's own cell. There is no error, and no
# assert could find the mistake.

# %% [markdown] syllabus="5.3e"
# ### What `opcheck` finds
#
# The next cell runs `opcheck` on all of these operators:

# %%
FAULTY = {
    "wrong shape": (LIES["shape"], plain),
    "wrong strides": (LIES["strides"], plain),
    "wrong dtype": (LIES["dtype"], plain),
    "hidden mutation": (ADVANCE["hidden"], plain),
    "declared": (ADVANCE["declared"], plain),
}
for name, (faulty, given) in FAULTY.items():
    found = [f"{test}: {said.rpartition('metadata: ')[2]}" for test, said in complaints(faulty, given).items()]
    print(f"{name:16s}", *found or ["nothing"])

# %% [markdown] syllabus="5.3f"
# ### The cache keeps a wrong fake kernel
#
# There is one more trap. Inductor keeps its compiled code on disk for the next process, and looks it up by the
# graph. The graph contains the name of the operator, but not the result of its fake kernel. The next cell runs a
# script with the wrong fake kernel, then the same script with the right one:

# %%
import tempfile

SCRIPT = f"""
import torch
torch.ops.load_library({library!r})
torch.library.register_fake("lab::gated", lambda z, x: FAKE)
compiled = torch.compile(torch.ops.lab.gated, fullgraph=True)
try:
    print(compiled(torch.ones(3, 4), torch.ones(3, 4)).shape)
except AssertionError as error:
    print("AssertionError:", str(error).splitlines()[0])
"""
wrong_fake, right_fake = (SCRIPT.replace("FAKE", fake) for fake in ("z.new_empty(4, 3)", "z.new_empty(z.shape)"))
with tempfile.TemporaryDirectory() as folder:
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
    print("wrong:                ", *process(wrong_fake)[1])
    print("corrected:            ", *process(right_fake)[1])
    os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
    print("corrected, caches off:", *process(right_fake)[1])
    del os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"]
os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(root / "build" / "inductor")

# %% [markdown]
# After every change of a fake kernel, set `TORCHINDUCTOR_FORCE_DISABLE_CACHES=1`, or remove the cache folder.

# %% [markdown] tags=["exercise"]
# **Your turn:** `5/declare_the_mutation` and `5/who_notices`. `show("5/who_notices")` in a cell checks it here.

# %% [markdown]
# ## Summary
#
# - An operator consists of a schema, a kernel for each device, a fake kernel, a gradient, and rules for autocast and
#   vmap. Apart from the schema, each of these is an entry in a table. The effect of an empty entry varies: an error,
#   a warning and None, silent zeros, or a slow loop.
# - Run `opcheck` on every layout, dtype and device before you compile or package an operator. For the values,
#   which `opcheck` does not check, use a reference and `gradcheck`.
# - A wrong fake kernel causes an error under `torch.compile`, but no error in a package that was compiled ahead of
#   time. A hidden mutation never causes an error.
#
# Next: notebook 05b, about half precision, wheels, and operators of your own.
