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
# # 02b: building an extension
#
# Notebook 02 built its extensions with `load_inline`, without a look at what this function does. This notebook builds
# stage 2 in two more ways: ahead of time with `setup.py`, as a package that pip installs, and just in time with
# `load`. It shows what is compiled again after a change, and what the errors look like if an extension was built for
# another torch, another Python or another C++ library.
#
# You need notebook 02 and a C++ compiler. The notebook takes about 40 minutes. In the first run, two minutes of this
# are spent compiling. A heading with (!) is about a mistake that is common in code and in tutorials.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
import os
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import include_paths, library_paths, load, load_inline

from common.cell.case import Case
from common.measure.clock import interleave
from common.workbench import Timings, build_folder, remove_locks, run, torch_compiler, write

BUILD = build_folder()
timed = Timings(BUILD / "building.json")
remove_locks()
torch.set_num_threads(1)  # as in notebook 02: the times below are those of calls, not of arithmetic
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown] syllabus="2.4a 2.4b"
# ## Building ahead of time with `setup.py`
#
# The next cell describes the same extension twice: first without torch's help, as a `setuptools.Extension` with the
# folders of torch's headers and libraries, and then as torch's `CppExtension`.

# %%
from setuptools import Extension
from torch.utils.cpp_extension import CppExtension

by_hand = Extension(
    "lltm_stage2._C", ["csrc/lltm.cpp"], language="c++", include_dirs=include_paths(),
    library_dirs=library_paths(), libraries=["c10", "torch", "torch_cpu", "torch_python"],
)  # fmt: skip
short = CppExtension("lltm_stage2._C", ["csrc/lltm.cpp"])
print(type(short))
for name in ("language", "include_dirs", "library_dirs", "libraries"):
    print(f"{name:13s} the same: {getattr(short, name) == getattr(by_hand, name)}")

# %% [markdown]
# `CppExtension` is the short form: it fills in these arguments. This is the whole `setup.py` of stage 2:

# %%
stage2_folder = root / "stages" / "stage2_aten"
print((stage2_folder / "setup.py").read_text())

# %% [markdown] syllabus="2.4b 2.4c"
# ### A package that Python imports from any folder
#
# We install a copy, so that the stage's own folder stays clean. With `--target`, pip installs into the folder that
# you name, and not into the environment. With `-v`, pip prints the commands of the compiler.

# %%
for name in ("__init__.py", "lltm.py", "setup.py", "csrc/lltm.cpp"):
    write(f"stage2_copy/{name}", (stage2_folder / name).read_text())
PIP = [sys.executable, "-m", "pip", "install", "--upgrade", "--target", BUILD / "installed"]
with timed("pip install of stage 2"):
    status, log = run(*PIP, "-v", "--no-build-isolation", BUILD / "stage2_copy")
print(next((line for line in log.splitlines() if "Successfully installed" in line), log))

# %%
TRY = "import torch, lltm_stage2; print(lltm_stage2.lltm); print(lltm_stage2.__file__)"
os.environ["PYTHONPATH"] = str(BUILD / "installed")
status, printed = run(sys.executable, "-c", TRY, folder="/")
del os.environ["PYTHONPATH"]
print(printed.replace(str(root), "..."))

# %% [markdown]
# `setup.py` also names the class `BuildExtension`, which adds the remaining options to each command of the compiler,
# among them the name for the binding and the C++ standard. If ninja (a build tool) is installed, `BuildExtension`
# writes the commands into a file, which the next cell reads. The output of this cell also contains an option `-O`,
# which comes from the flags that Python itself was built with.

# %%
ninja_file = next((BUILD / "stage2_copy").rglob("build.ninja"), None)
flags = (ninja_file.read_text() if ninja_file else log).split()
print(sorted({flag for flag in flags if flag.startswith(("-DTORCH_EXTENSION_NAME", "-std=", "-O"))}))

# %% [markdown]
# While you work on a package, `pip install --no-build-isolation --use-pep517 -e .` installs only a reference to the
# package's folder. After an edit of a `.py` file, the next start of Python uses the new version. After an edit of a
# C++ file, you must build again: `python setup.py build_ext --inplace` compiles only the files that have changed,
# and puts `_C...so` beside the sources.

# %% [markdown] syllabus="2.4d"
# ### With build isolation, the build does not find torch
#
# By default, pip builds in an isolated environment, which contains only the packages that the project requests.
# `setup.py` imports torch on line 4, and torch is not in that environment. The file `pyproject.toml` below makes the
# setuptools of the notebook's environment available in the isolated environment, so that pip does not have to
# download setuptools. Everything else is as if you had forgotten `--no-build-isolation`.
#
# (Isolation is also the reason for `--use-pep517` in the previous section, which older versions of pip need. Without
# this option, pip calls setuptools, and setuptools starts a second pip. The second pip does not get your
# `--no-build-isolation`, so it isolates the build.)

# %%
import setuptools

site = Path(setuptools.__file__).parents[1]
write("isolated/setup.py", (stage2_folder / "setup.py").read_text())
PROJECT = """
[build-system]
requires = []
build-backend = "setuptools.build_meta"
backend-path = ["lent"]
"""
write("isolated/pyproject.toml", PROJECT)
(BUILD / "isolated" / "lent").mkdir(exist_ok=True)
for name in ("setuptools", "_distutils_hack"):
    if not (BUILD / "isolated" / "lent" / name).exists():
        (BUILD / "isolated" / "lent" / name).symlink_to(site / name)
status, log = run(*PIP, "--no-color", BUILD / "isolated")
print("exit status", status)
print(next((line.strip() for line in log.splitlines() if "torch" in line and "Error" in line), log))

# %% [markdown] syllabus="2.4e"
# ### `setup.py install` is deprecated (!)
#
# Many tutorials still end with `python setup.py install`. This command works on an empty example, but prints a
# warning:

# %%
write("old_way/setup.py", "from setuptools import setup\nsetup(name='old_way', py_modules=['old_way'])\n")
write("old_way/old_way.py", "")
status, log = run(sys.executable, "setup.py", "install", "--root", "root", folder=BUILD / "old_way")
print("exit status", status)
_, found, warning = log.partition("SetuptoolsDeprecationWarning")
said = [line.strip() for line in (found + warning if found else log).splitlines()]
print(*[line for line in said if line.strip("*! ")][:4], sep="\n")

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/setup_py`. `show("2/setup_py")` in a cell checks it here.

# %% [markdown] syllabus="2.5a 2.5b 2.5c"
# ## Building just in time with `load`
#
# `load` creates a folder, writes a ninja file (a list of build commands), starts ninja to compile and link, and
# imports the result. An example with two small files shows which of these steps `load` takes, and when.

# %%
NUMBER = "int answer() { return 41; }\n"
MODULE = """
#include <pybind11/pybind11.h>
int answer();
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("answer", &answer); }
"""
number, module = write("sources/number.cpp", NUMBER), write("sources/module.cpp", MODULE)
two_files = load("two_files", [str(number), str(module)])
print(two_files.answer(), "from the folder with", sorted(p.name for p in (BUILD / "two_files").iterdir()))

# %% [markdown]
# The ninja file is short enough to read. It contains the compiler, its flags, and one line for each file that is
# built from others.

# %%
ninja = (BUILD / "two_files" / "build.ninja").read_text()
rules = [line for line in ninja.splitlines() if line.startswith(("cxx", "build ", "rule "))]
print("\n".join(rules).replace(str(root), "..."))

# %% [markdown]
# We call `load` again without a change: first in this process, which still has the module, and then in a new
# process, which finds the module already built.

# %%
start = time.perf_counter()
load("two_files", [str(number), str(module)])
print(f"in this process: {1000 * (time.perf_counter() - start):.1f} ms")

FRESH = """
import sys, time
from torch.utils.cpp_extension import load
start = time.perf_counter()
module = load("two_files", sys.argv[1:], verbose=True)
print(f"answer {module.answer()} after {time.perf_counter() - start:.1f} s")
"""


def in_a_new_process():
    status, printed = run(sys.executable, "-c", FRESH, number, module)
    assert status == 0, printed
    shown = [line for line in printed.splitlines() if line.startswith(("[1", "[2", "[3", "ninja:", "answer"))]
    for line in shown:
        words = line.split()
        print(line if len(words) < 12 else " ".join([*words[:2], "...", *words[-4:]]).replace(str(root), ""))


in_a_new_process()

# %% [markdown]
# After an edit of one file, ninja compiles only that file, and links again:

# %%
number.write_text(NUMBER.replace("41", "42"))
in_a_new_process()

# %% [markdown] syllabus="2.5e"
# ### Building again after the module has been imported
#
# Python cannot import a second module of the same name in one process, so `load` gives the rebuilt module another
# name, `two_files_v1`. The module's name is in every command line, so now *all* files are compiled again.
# `verbose=True` shows these commands. The log level INFO also shows the folder.

# %%
import logging

logger = logging.getLogger("torch.utils.cpp_extension")
logger.setLevel(logging.INFO)
edited = load("two_files", [str(number), str(module)], verbose=True)
logger.setLevel(logging.ERROR)
print(two_files.answer(), "is still there beside", edited.answer(), "in", edited.__name__)

# %% [markdown] syllabus="2.5d"
# ### Pass absolute paths
#
# `load` interprets a relative path from the current folder of the process, not from the folder of your script.

# %%
try:
    load("relative", ["sources/number.cpp", "sources/module.cpp"])
except Exception as error:
    print(f"{type(error).__name__}: {error}".splitlines()[0])
before = Path.cwd()
os.chdir(BUILD)
print("from BUILD it works:", load("relative", ["sources/number.cpp", "sources/module.cpp"]).answer())
os.chdir(before)

# %% [markdown] syllabus="2.5f"
# ### `load` compiles without `-O` (!)
#
# An option such as `-O2` or `-O3` tells the compiler to optimise. Below, `load` builds stage 2's own source twice:
# once without options and once with `-O3`. The two builds run at the same time, in two threads.

# %%
source = str(stage2_folder / "csrc" / "lltm.cpp")


def build_stage2(name, flags):
    with timed(f"{name} by load"):
        return load(name, [source], extra_cflags=flags)


with ThreadPoolExecutor(2) as pool:
    no_O, O3 = pool.map(build_stage2, ("stage2_no_O", "stage2_O3"), ([], ["-O3"]))
for module in (no_O, O3):
    ninja = (Path(module.__file__).parent / "build.ninja").read_text()
    flags = next(line for line in ninja.splitlines() if line.startswith("cflags")).split()
    print(f"{module.__name__:15s}", [flag for flag in flags if flag.startswith(("-O", "-std", "-f"))])


# %%
def direct_calls(module, case):
    """Forward and backward of a stage 2 build, called without autograd around them."""
    inputs = [tensor.detach() for tensor in case.inputs().values()]
    _, new_cell, *saved = module.forward(*inputs)
    everything = [*case.gradients(), inputs[1], *saved, new_cell, [True] * 5]
    return lambda: module.forward(*inputs), lambda: module.backward(*everything)


case = Case(B=16, I=32, S=128)
for k, name in enumerate(("forward", "backward")):
    slow, fast = interleave([direct_calls(module, case)[k] for module in (no_O, O3)], "cpu", 15, 0.02)
    print(f"{name:9s} no -O {slow.quartiles()[1]:6.1f} us   -O3 {fast.quartiles()[1]:6.1f} us")

# %% [markdown]
# The kernels are the same, because they are in torch's own library. Without `-O`, the code between the kernels is
# slow: it consists of thousands of small functions from the headers, which the compiler has not inlined (inserted at
# the place of the call, so that there is no call). `extra_cflags=["-O2"]` or `-O3` fixes this.

# %% [markdown] syllabus="2.5g 2.5h"
# ### What `load_inline` adds to `load`
#
# `load_inline` writes the strings into a file, with a header in front and a binding at the end, and then builds
# the file as `load` does. Here is the file of the very first extension of notebook 02, for which we did not write any
# line of pybind11:

# %%
D_SIGMOID = """
at::Tensor d_sigmoid(const at::Tensor& z) {
  at::Tensor s = z.sigmoid();
  return s * (1 - s);
}
"""
with timed("torch/extension.h"):
    load_inline("first", D_SIGMOID, functions=["d_sigmoid"])
lines = (BUILD / "first" / "main.cpp").read_text().splitlines()
print(lines[0], "...", *lines[-5:], sep="\n")

# %% [markdown] syllabus="2.5i"
# ### Precompiled headers
#
# After the compiler has read the headers, it can write what it has read to a file. The next time, it starts from
# this file and does not read the headers again. When a source includes `NAME.h`, the compiler reads the file
# `NAME.h.gch` instead, if that file was made with the same flags.

# %%
NARROW = """\
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
with timed("narrow headers"):
    load_inline("narrow", NARROW + D_SIGMOID, functions=["d_sigmoid"], no_implicit_headers=True)
headers = write("precompiled/narrow.h", NARROW)
ready = headers.with_suffix(".h.gch")
ONCE, THEN = "once: precompile the narrow headers", "then: narrow headers, precompiled"


def build_precompiled():
    source = '#include "narrow.h"' + D_SIGMOID
    options = {"no_implicit_headers": True, "extra_include_paths": [str(headers.parent)]}
    return load_inline("precompiled", source, functions=["d_sigmoid"], **options)


if THEN not in timed.seconds:
    flags = ["-x", "c++-header", "-DTORCH_API_INCLUDE_EXTENSION_H", "-fPIC"]
    with timed(ONCE):
        run(*torch_compiler(), *flags, headers, "-o", ready)
    with timed(THEN):
        build_precompiled()
    print(f"{ready.name} has {ready.stat().st_size / 2**20:.0f} MiB, and is deleted again")
    ready.unlink()
for name in ("narrow headers", ONCE, THEN):
    print(f"{name:38s}{timed.seconds[name]:6.1f} s")

# %% [markdown]
# `load_inline(..., use_pch=True)` does this for `torch/extension.h`. It writes the precompiled header into the torch
# package itself. (This file is larger than the one above.) The next `load_inline` without `use_pch=True` deletes the
# file. So this option is useful during many small edits, if every call of `load_inline` uses the option.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/what_rebuilds`. `make check EX=2/what_rebuilds` in a terminal creates the questions and checks
# your answers. The cell below checks them here.

# %%
from common.exercises import show

show("2/what_rebuilds")

# %% [markdown] syllabus="2.6a"
# ## Compilers and binary interfaces
#
# An extension calls functions in the libraries of torch and of Python. So it must be built for the same torch, for
# the same Python, and with a C++ library whose `std::string` has the same layout. Such conventions between compiled
# files are the *application binary interface* (ABI). The next cell shows what this torch and this Python need:

# %%
import sysconfig

from torch.utils.cpp_extension import get_compiler_abi_compatibility_and_version

print("torch", torch.__version__, "with the C++11 ABI:", torch.compiled_with_cxx11_abi())
print("Python wants files that end in", sysconfig.get_config_var("EXT_SUFFIX"))
print("the compiler fits, and its version:", get_compiler_abi_compatibility_and_version(torch_compiler()[0]))

# %% [markdown] syllabus="2.6b"
# ### What a wrong ABI or a wrong Python looks like
#
# A `std::string` of the old layout is a different type, so a function with such an argument has a different name in
# the compiled library:

# %%
STRING = """
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
void positive(double x) { TORCH_CHECK(x > 0, "x is ", x, ", expected more than 0"); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("positive", &positive); }
"""
try:
    load("old_abi", [str(write("sources/old_abi.cpp", STRING))], extra_cflags=["-D_GLIBCXX_USE_CXX11_ABI=0"])
except ImportError as error:
    symbol = str(error).split("undefined symbol: ")[1]
    print("undefined symbol:", symbol)
    print(run("c++filt", symbol)[1])

# %% [markdown]
# The build succeeded, and the import failed. `Ss` at the end of the name is the old string. An *undefined symbol* is
# a name, mostly of a function, that no loaded library defines. If the name contains `c10` or `at`, the error usually
# means that the library was built for another torch, or with another ABI. But such a name can also belong to a
# function of your own with a `Tensor` argument, if the source file of this function is missing from `sources`.
#
# Python ignores a library that was built for another version of *Python*:

# %%
import shutil

(BUILD / "other_python").mkdir(exist_ok=True)
shutil.copy(BUILD / "first" / "first.so", BUILD / "other_python" / "first.cpython-39-x86_64-linux-gnu.so")
print(run(sys.executable, "-c", "import torch, first", folder=BUILD / "other_python")[1].splitlines()[-1])
print("and yet there is", *(path.name for path in (BUILD / "other_python").iterdir()))

# %% [markdown] syllabus="2.6c"
# ### Torch checks the compiler and its version
#
# Before it builds, torch checks the compiler and its version. The two compilers here are only scripts: the first has
# the name of an old g++, and the second has a name that torch does not know.

# %%
logger.setLevel(logging.WARNING)
for name in ("g++-4", "tinycc"):
    pretender = write(f"compilers/{name}", "#!/bin/sh\necho 4.8.5\n")
    pretender.chmod(0o755)
    print(name, get_compiler_abi_compatibility_and_version(str(pretender)))
logger.setLevel(logging.ERROR)

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/repair_the_build`. `show("2/repair_the_build")` in a cell checks it here.

# %% [markdown]
# ## In a picture
#
# How long each build took: the headers determine the time, not your code.

# %%
from common.figures.plots import BLUE, STYLE

plt.rcParams.update(STYLE)
seconds = timed.seconds
figure, axis = plt.subplots(figsize=(9, 0.35 * len(seconds) + 0.9), layout="constrained")
names = sorted(seconds, key=seconds.get)
bars = axis.barh(names, [seconds[name] for name in names], color=BLUE)
axis.bar_label(bars, fmt="%.1f s", padding=3)
axis.set_title("Build time of each extension here, first build (some ran two at a time)")
plt.show()

# %% [markdown]
# ## Summary
#
# - `CppExtension` and `BuildExtension` fill in the folders, the libraries and the flags. Install with
#   `--no-build-isolation`.
# - `load` compiles only what has changed, unless the process has already imported the module. Pass absolute paths and
#   `-O2`.
# - An extension fits one torch, one Python and one C++ library. An undefined symbol with `c10` or `at` in its name
#   usually means that it was built for others.
#
# Next: notebook `02c_faster_backward` makes the backward pass of stage 2 faster. [docs/build.md](../docs/build.md)
# is a reference of everything that builds an extension.
