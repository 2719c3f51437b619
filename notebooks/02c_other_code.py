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
# # 02c: other people's code
#
# Two things that C++ brings with it. There are decades of libraries that torch does not have, and an extension may
# call any of them. And there are years of extensions on the web that no longer build, because torch has moved on.
# You will link a library, first one of the system's and then one of your own, and bring old code to today.
#
# You need notebook 02. About 40 minutes; the first run compiles for a minute or two in between.

# %%
import os
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import sysconfig
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import include_paths, load, load_inline

from common.workbench import build_folder, run, write

BUILD = build_folder()
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# `run` runs a command, and `write` writes a file, both in a folder for builds. A third tool asks the compiler what it
# thinks of a text.

# %%
COMPILER = os.environ.get("CXX", "c++")
INCLUDE = [word for path in [*include_paths(), sysconfig.get_path("include")] for word in ("-isystem", path)]
STANDARD = "-std=c++20" if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12) else "-std=c++17"


def complaints(source, *flags, standard=STANDARD):
    """The lines of the compiler's answer to a C++ text that have an error or a warning in them."""
    command = [COMPILER, "-x", "c++", "-fsyntax-only", "-Wall", standard, *INCLUDE, *flags, "-"]
    said = run(*command, text=source)[1]
    return [line for line in said.splitlines() if " error: " in line or " warning: " in line]


# %% [markdown] syllabus="2.10a"
# ## A library that torch does not have
#
# zlib packs bytes without loss; nearly every machine has it, and torch does not. It stands for whatever you need: a
# codec, a solver, a file format, a camera. What calls it is small:

# %%
folder = root / "stages" / "stage2_aten" / "another_library"
source = (folder / "pack.cpp").read_text()
print(source.partition("// Returns the bytes")[0])
print("...", source[source.index("  uLong size = compressBound") : source.index("// Returns what was packed")])

# %% [markdown]
# A tensor is memory and a size, which is all that a C library wants. What it cannot know are strides: hence
# `contiguous()`, with a name.

# %% [markdown] syllabus="2.10b"
# ### Linked
#
# `extra_ldflags=["-lz"]` links `libz.so`. (`zlib.h: No such file or directory` means that the library's headers are
# missing: `sudo apt install zlib1g-dev`, or `conda install zlib`.)

# %%
pack = load("pack", [str(folder / "pack.cpp")], extra_cflags=["-O2"], extra_ldflags=["-lz"])
print(pack.pack.__doc__)

# %% [markdown]
# Does it work? Python has a zlib of its own, which must understand what ours wrote.

# %%
x = torch.randn(50, 40).t()
packed = pack.pack(x)
print("back again:", torch.equal(pack.unpack(packed, x), x))
print("by Python: ", zlib.decompress(packed.numpy().tobytes()) == x.contiguous().numpy().tobytes())
try:
    pack.unpack(packed, torch.empty(3))
except RuntimeError as error:
    print(str(error).splitlines()[0])

# %% [markdown] syllabus="2.10b 2.11g"
# ### The same in `setup.py`, and `setup.py install` (!)
#
# There it is `libraries=["z"]`, without the `-l`. Such folders used to be installed by `python setup.py install`.
# That is deprecated; setuptools says so, if one looks:

# %%
print((folder / "setup.py").read_text())
write("old_install/setup.py", "from setuptools import setup\nsetup(name='old', py_modules=['old'])\n")
write("old_install/old.py", "")
status, said = run(sys.executable, "setup.py", "install", "--root", "root", folder=BUILD / "old_install")
print(*[line.strip().rpartition(": ")[2] for line in said.splitlines() if "deprecat" in line][:2], sep="\n")

# %% [markdown]
# pip builds and installs, and without isolation it sees torch. `--target` stands for the environment that you would
# install into, and the copy keeps the sources' folder clean.

# %%
for name in ("pack.cpp", "setup.py"):
    write(f"pack_copy/{name}", (folder / name).read_text())
PIP = [sys.executable, "-m", "pip", "install", "--upgrade", "--target", BUILD / "installed"]
status, said = run(*PIP, "--no-build-isolation", BUILD / "pack_copy")
print(said.splitlines()[-1] if status == 0 else said)
os.environ["PYTHONPATH"] = str(BUILD / "installed")
TRY = "import torch, pack; print(len(pack.pack(torch.zeros(1000))), 'bytes for a thousand zeros')"
print(run(sys.executable, "-c", TRY)[1])
del os.environ["PYTHONPATH"]

# %% [markdown] syllabus="2.10b"
# ### In a folder of its own
#
# A library that you built yourself is where no compiler looks. Here is the smallest one, and a module that calls it:

# %%
header = write("ruler/include/ruler.h", 'extern "C" double inches(double metres);\n')
library = write("ruler/ruler.cpp", '#include "ruler.h"\ndouble inches(double metres) { return metres / 0.0254; }\n')
(BUILD / "ruler" / "lib").mkdir(exist_ok=True)
command = [COMPILER, "-shared", "-fPIC", "-Iinclude", "ruler.cpp", "-o", "lib/libruler.so"]
assert run(*command, folder=BUILD / "ruler") == (0, "")
MODULE = """
#include <pybind11/pybind11.h>
#include <ruler.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("inches", &inches); }
"""
module = str(write("ruler/module.cpp", MODULE))

# %% [markdown]
# Four attempts, each one argument further:

# %%
include, lib = str(BUILD / "ruler" / "include"), str(BUILD / "ruler" / "lib")
ATTEMPTS = [
    ("nothing", {}),
    ("headers", {"extra_include_paths": [include]}),
    ("linked", {"extra_include_paths": [include], "extra_ldflags": [f"-L{lib}", "-lruler"]}),
    ("found", {"extra_include_paths": [include], "extra_ldflags": [f"-L{lib}", "-lruler", f"-Wl,-rpath,{lib}"]}),
]
for name, options in ATTEMPTS:
    try:
        print(f"{name:8s}", load(f"ruler_{name}", [module], **options).inches(1), "inches")
    except (RuntimeError, ImportError) as error:
        lines = [line for line in str(error).splitlines() if "error: " in line or "ruler" in line]
        said = next((line for line in lines if "error: " in line), lines[0])
        print(f"{name:8s}", type(error).__name__, said.replace(str(BUILD), "..."))

# %% [markdown]
# Three places, three answers. The compiler looks for headers: `extra_include_paths`. The linker looks for the
# library: `-L` and `-l`; if nobody tells it, the module is made all the same, since the functions may yet come from
# somewhere before it is imported. And the *loader* looks, each time the module is imported: `-rpath` writes the
# folder into the module. (An `LD_LIBRARY_PATH` helps it, too, until somebody forgets to set it.) In `setup.py` these
# are `include_dirs`, `library_dirs`, `libraries` and `runtime_library_dirs`; all options of a build are in
# [docs/build.md](../docs/build.md).

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/link_a_library`. `make check EX=2/link_a_library` in a terminal hands out the files and checks
# what you wrote; the cell below checks it here.

# %%
from common.exercises import show

show("2/link_a_library")

# %% [markdown]
# ## From old code to new
#
# This is how extensions were written in 2019. Each piece is still in tutorials, and in the repositories of papers.

# %%
OLD = """#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

at::Tensor twice(at::Tensor x) {
  AT_CHECK(x.dim() == 1, "twice: x must have one dimension");
  at::Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.type(), "twice", [&] {
    scalar_t* from = x.data<scalar_t>();
    scalar_t* to = y.data<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) to[k] = 2 * from[k];
  });
  return y;
}
"""

# %% [markdown]
# And so it is written today:

# %%
NEW = """#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor twice(const at::Tensor& x) {
  TORCH_CHECK(x.dim() == 1, "twice: x has shape ", x.sizes(), ", expected one dimension");
  const at::Tensor dense = x.contiguous();
  at::Tensor y = at::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    const scalar_t* from = dense.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    for (int64_t k = 0; k < x.numel(); ++k) to[k] = 2 * from[k];
  });
  return y;
}

void assert_dimension(const at::Tensor& x) { AT_ASSERT(x.dim() == 1); }
void internal_assert_dimension(const at::Tensor& x) { TORCH_INTERNAL_ASSERT(x.dim() == 1); }
"""


def build_new():
    functions = ["twice", "assert_dimension", "internal_assert_dimension"]
    return load_inline("brought_to_today", NEW, functions=functions, no_implicit_headers=True)


with ThreadPoolExecutor(2) as pool:
    said_of_old, new = pool.submit(complaints, OLD), pool.submit(build_new)
said_of_old, new = said_of_old.result(), new.result()
print(len(said_of_old), "errors and warnings for the old;", "the new one works:", new.twice(torch.ones(3)))

# %% [markdown] syllabus="2.11a"
# ### `tensor.type()` in a dispatch macro (!)
#
# `type()` was once dtype, device and layout in one. It is deprecated; where a dtype belongs it is an error:

# %%
for line in said_of_old:
    if "type()" in line or "ScalarType" in line:
        print(line[:150])

# %% [markdown]
# The replacement is `x.scalar_type()`. For `x.type().is_cuda()` it is `x.is_cuda()`, and for
# `at::empty(..., x.type())` it is `x.options()`.

# %% [markdown] syllabus="2.11b"
# ### `data<T>()` (!)
#
# Only a warning, once for each type of the dispatch:

# %%
for line in said_of_old:
    if "data<T>()" in line:
        print(line)

# %% [markdown]
# `data_ptr<T>()` replaces it; better `const_data_ptr` and `mutable_data_ptr`, which say what you will do with it. The
# old function walks `x` whatever its strides are, as many of its time do: the new one names a contiguous copy.

# %% [markdown] syllabus="2.11c"
# ### `AT_CHECK` and `AT_ASSERT` (!)
#
# The first has been removed. (What the compiler guesses is no replacement: `CHECK` and `DCHECK` belong to torch's
# logging.)

# %%
print(*[line for line in said_of_old if "AT_CHECK" in line], sep="\n")

# %% [markdown]
# `AT_ASSERT` has been deprecated for years, but only in a comment: it compiles without a word. What it says shows why
# it was never the right one for arguments.

# %%
wrong = torch.ones(2, 2)
for function in (new.assert_dimension, new.internal_assert_dimension, new.twice):
    try:
        function(wrong)
    except RuntimeError as error:
        print(f"{function.__name__}:\n    {str(error).splitlines()[0].replace(str(BUILD), '...')}")

# %% [markdown]
# The first two ask the caller to report a bug to PyTorch. `TORCH_INTERNAL_ASSERT` is for what cannot be false unless
# *you* made a mistake, `TORCH_CHECK` for what the caller can do wrong; it names the argument, what it is, and what it
# should be.

# %% [markdown] syllabus="2.11d"
# ### `torch/torch.h` (!)
#
# It is the C++ frontend, torch for programs without Python. It has nothing of the binding, and yet old extensions
# include it and still build: torch's build adds a macro to every command, for their sake. What becomes of a binding
# after the preprocessor, without that macro and with it:

# %%
MACRO = "-DTORCH_API_INCLUDE_EXTENSION_H"
BINDING = 'PYBIND11_MODULE(example, m) { m.def("same", &same); }'


def preprocessed(*flags):
    text = f"#include <torch/torch.h>\n{BINDING}\n"
    said = run(COMPILER, "-x", "c++", "-E", "-P", STANDARD, *INCLUDE, *flags, "-", text=text)[1]
    return "... " + " ".join(said.split())[-90:]


print("bare:          ", preprocessed())
print("with the macro:", preprocessed(MACRO))

# %% [markdown]
# Bare, it is no macro, and the compiler reads the line as it stands:

# %%
print(*complaints(BINDING), sep="\n")

# %% [markdown]
# With CMake, or by hand, nobody adds the macro. Include what you use: `torch/extension.h`, or the narrow headers.

# %% [markdown] syllabus="2.11h"
# ### `-std=c++11` (!)
#
# Many an old `setup.py` says `extra_compile_args=["-std=c++11"]`. Torch adds the standard that it needs only where
# none is given, so the old one is obeyed, and torch's headers stumble:

# %%
said = complaints("#include <ATen/core/Tensor.h>\n", standard="-std=c++11")
print(
    len(said), "errors and warnings, the first of them:\n", said[0].replace(str(Path(torch.__file__).parent), "torch")
)

# %% [markdown]
# Leave the flag out.

# %% [markdown] syllabus="2.11e"
# ### `torch.nn.Function` (!)
#
# It has moved to `torch.autograd.Function`:

# %%
try:

    class Old(torch.nn.Function):
        pass

except AttributeError as error:
    print(error)

# %% [markdown]
# And a Function is no object any more, made for one call, which keeps what it wants in `self`:


# %%
class OldSquare(torch.autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, grad):
        (x,) = self.saved_tensors
        return 2 * x * grad


x = torch.ones(3, requires_grad=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        OldSquare()(x)
    except RuntimeError as error:
        print(error)

# %% [markdown] syllabus="2.11f"
# ### `saved_variables` (!)
#
# Static methods, `ctx` for what is kept, and `apply` to call it. One old word still works, with a warning that Python
# hides unless it is asked for:


# %%
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_variables
        return 2 * x * grad


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    Square.apply(x).sum().backward()
print(x.grad, *(f"{warning.category.__name__}: {warning.message}" for warning in caught), sep="\n")

# %% [markdown]
# `ctx.saved_tensors` replaces it: tensors and variables have been one type since torch 0.4.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/revive_2019`, a whole old extension, is yours to bring to today. `show("2/revive_2019")` in a cell
# checks it here.

# %% [markdown]
# ## In pictures
#
# What zlib makes of tensors that training makes, in bits for each number. float32 takes 32, bfloat16 16.

# %%
from common.figures.plots import BLUE, GREEN, ORANGE, STYLE, VERMILION

plt.rcParams.update(STYLE)
normal = torch.randn(256, 256)
TENSORS = {
    "normal, float32": (normal, BLUE),
    "the same in bfloat16": (normal.bfloat16(), GREEN),
    "after relu, float32": (normal.relu(), ORANGE),
    "90 % zeros, float32": (normal * (torch.rand_like(normal) < 0.1), VERMILION),
}
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
for name, (tensor, colour) in TENSORS.items():
    assert torch.equal(pack.unpack(pack.pack(tensor), tensor), tensor)
    bits = [8 * pack.pack(tensor, level).numel() / tensor.numel() for level in range(10)]
    axis.plot(range(10), bits, "o-", color=colour, label=name)
axis.set_xlabel("level of zlib")
axis.set_ylabel("bits for each number")
axis.set_ylim(bottom=0)
axis.grid(axis="y")
axis.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
plt.show()

# %% [markdown]
# Random mantissas are noise, which nothing packs; zeros nearly vanish. Level 0 only copies.

# %% [markdown]
# ## What to take along
#
# - A library needs three things: its headers, its name for the linker, and a way for the loader to find it again.
# - The first line with `error:` says which piece of old code is meant; the replacement is one word in most cases.
# - Old code that builds again is not yet right: give it strided inputs, and gradients from `sum()`.
#
# Next: stage 3 writes the kernels.
