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
# # 02: the cell in C++ with ATen
#
# In this notebook, we write the recurrent cell of notebook 01 in C++. The name of this cell is LLTM (long long-term
# memory). The C++ code calls ATen, the C++ tensor library that PyTorch is built on. You will build an extension in
# three ways (`load_inline`, `setup.py` and `load`), and see the symptoms of the usual mistakes. Then you will find
# out why the C++ code in most tutorials has a *slower* backward pass than the same cell in Python, and make it
# faster.
#
# You need notebook 01 and a C++ compiler. The notebook takes about 90 minutes. In the first run, some minutes of
# this are spent compiling. The next run finds everything built, under `build/notebooks/`. A heading or a sentence
# with (!) is about a mistake that is common in code and in tutorials.

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

from common import load as load_stage
from common.cell.case import Case, difference, outputs
from common.measure.clock import interleave
from common.workbench import Timings, build_folder, remove_locks, run, torch_compiler, write

BUILD = build_folder()
timed = Timings(BUILD / "seconds.json")
remove_locks()
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# ## A C++ function, called from Python
#
# The first function is the derivative of the sigmoid: if $s = \sigma(z)$, then $\sigma'(z) = s (1 - s)$.
# `load_inline` takes C++ source as a string, compiles it and imports the result. `functions=` lists the functions
# that Python can call.

# %%
from torch.utils.cpp_extension import load_inline

D_SIGMOID = """
at::Tensor d_sigmoid(const at::Tensor& z) {
  at::Tensor s = z.sigmoid();
  return s * (1 - s);
}
"""
with timed("torch/extension.h"):
    first = load_inline("first", D_SIGMOID, functions=["d_sigmoid"])
first.d_sigmoid(torch.zeros(3))

# %% [markdown]
# The first C++ code of this workbook has run. Its result, 0.25, is the derivative of the sigmoid at 0. `timed`
# stores how long the first build takes, because a second run of the notebook finds the extension already built and
# cannot measure the build.

# %% [markdown] syllabus="2.1b 2.1c 2.1d"
# ## Why C++, and what torch's headers contain
#
# Notebook 01 found that a small step spends only a part of its time in arithmetic. Much of the time is spent before
# the arithmetic begins: in Python, and in the dispatch, which selects the code for the device and the dtype of the
# tensors. C++ removes the Python part. Apart from a compiler, you do not have to install anything: the torch package
# contains the headers, and the libraries to link with.

# %%
from torch.utils.cpp_extension import include_paths, library_paths

package = Path(torch.__file__).parent
for kind, paths in (("headers", include_paths()), ("libraries", library_paths())):
    print(kind, *("torch/" + str(Path(path).relative_to(package)) for path in paths), sep="\n    ")

# %% [markdown]
# By default, `load_inline` puts `#include <torch/extension.h>` in front of the source. Tutorials include this
# header, too. This is all that it contains:

# %%
text = (package / "include" / "torch" / "extension.h").read_text()
print(*(line for line in text.splitlines() if line.startswith("#include")), sep="\n")

# %% [markdown]
# These two lines include ATen (the tensors and their operations), pybind11 (the binding to Python), and code of
# torch that converts a Python tensor into an `at::Tensor` and back. The table below calls this last part *glue*.
#
# `g++ -M` lists every file that a source includes, directly or indirectly. The next cell counts these files for
# three sources:
#
# - one that includes `torch/extension.h`
# - one that includes `torch/python.h`, which is only a part of `torch/extension.h`
# - one that includes only the few headers that a small function needs: the *narrow headers*
#
# `torch_compiler()` is the compiler's command with the folders of torch's and Python's headers.

# %%
HEADERS = {
    "torch/extension.h": "#include <torch/extension.h>\n",
    "torch/python.h": "#include <torch/python.h>\n",
    "narrow headers": """\
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
""",
}


def files_behind(name):
    source = write(f"headers/{name.replace('/', '_').replace(' ', '_')}.cpp", HEADERS[name])
    status, listed = run(*torch_compiler(), "-M", source)
    assert status == 0, listed
    return [word for word in listed.split() if word != "\\"]


print(f"{'':20s}{'files':>7s}{'ATen':>7s}{'pybind11':>10s}{'glue':>7s}")
for name in HEADERS:
    files = files_behind(name)
    of = [sum(part in file for file in files) for part in ("/ATen/", "/pybind11/", "/torch/csrc/")]
    print(f"{name:20s}{len(files):7d}{of[0]:7d}{of[1]:10d}{of[2]:7d}")

# %% [markdown]
# The compiler reads all these files again for every source that it compiles. To see how much time this takes, we
# build the function above with fewer headers. With `no_implicit_headers=True`, `load_inline` does not add any
# header: the source includes its own.


# %%
def build_with(name):
    module = "first_" + name.replace("/", "_").replace(".", "_").replace(" ", "_")
    source = HEADERS[name] + D_SIGMOID
    with timed(name):
        return load_inline(module, source, functions=["d_sigmoid"], no_implicit_headers=True)


middle, narrow = build_with("torch/python.h"), build_with("narrow headers")
for name in HEADERS:
    print(f"{name:20s}{timed.seconds[name]:6.1f} s")

# %% [markdown]
# The compiler spends almost all its time on the headers, and reads them again after every edit. That is why stage 2
# includes only the dozen headers that it needs. (If your editor completes names while you type, the narrow headers
# are enough for this, too.) A source with narrow headers includes `ATen/core/Tensor.h` for the type `at::Tensor` and
# its methods, `ATen/ops/NAME.h` for each function `at::NAME`, and `torch/csrc/utils/pybind.h` for the binding.

# %% [markdown] syllabus="2.1a"
# ### C++ removes the Python code between operations
#
# The operations stay the same: both functions below call ATen's `add` a thousand times. The C++ function runs no
# Python code between these calls.
#
# From here on, torch computes with one thread. This notebook compares the time that passes before the arithmetic
# starts, that is, before ATen reaches its *kernel* (on a CPU, the loop that computes). A second thread does not
# shorten this time, and it makes the measurements vary as soon as another program runs on the machine.

# %%
ADD_MANY = """
bool one_type() { return std::is_same_v<torch::Tensor, at::Tensor>; }

at::Tensor add_many(at::Tensor x, int64_t times) {
  for (int64_t k = 0; k < times; ++k) x = x + 1;
  return x;
}
"""
source = HEADERS["torch/python.h"] + ADD_MANY
loop = load_inline("loop", source, functions=["one_type", "add_many"], no_implicit_headers=True)


# %%
def add_many(x, times):
    for _ in range(times):
        x = x + 1
    return x


torch.set_num_threads(1)
x = torch.zeros(16)
python, cpp = interleave([lambda: add_many(x, 1000), lambda: loop.add_many(x, 1000)], "cpu", 11, 0.02)
print("the same numbers:", torch.equal(add_many(x, 1000), loop.add_many(x, 1000)))
print(f"one addition: {python.quartiles()[1] / 1000:.2f} us from Python, {cpp.quartiles()[1] / 1000:.2f} us from C++")

# %% [markdown]
# The difference is a few tenths of a microsecond for each operation. This difference matters in a program with many
# small operations. Compared with the time of a large matrix product, it is negligible.

# %% [markdown] syllabus="2.2b"
# ## Forward and backward in ATen
#
# Some tutorials write `torch::Tensor`, and others write `at::Tensor`. Both names mean the same type. The function
# `one_type` in the extension above makes the compiler compare the two:

# %%
print("torch::Tensor is at::Tensor:", loop.one_type())

# %% [markdown] syllabus="2.2c"
# ### The derivatives of sigmoid, tanh and elu
#
# $\sigma'(z) = s(1-s)$, $\tanh'(z) = 1 - \tanh^2 z$, and $\mathrm{elu}'(z)$ is 1 for $z > 0$ and $e^z$ otherwise.
# The code below contains the derivative of elu twice: `d_elu` uses `where`, which selects one of two values, and
# `d_elu_by_mask` uses masks that are 0 or 1, as many tutorials do.

# %%
DERIVATIVES = """
#include <ATen/ops/where.h>

using at::Tensor;

Tensor d_sigmoid(const Tensor& z) {
  Tensor s = z.sigmoid();
  return s * (1 - s);
}

Tensor d_tanh(const Tensor& z) { return 1 - z.tanh().square(); }

Tensor d_elu(const Tensor& z) { return at::where(z > 0, 1.0, z.exp()); }

Tensor d_elu_by_mask(const Tensor& z) {
  return (z > 0).type_as(z) + (z <= 0).type_as(z) * z.exp();
}
"""

# %% [markdown]
# The forward pass is the Python code of stage 1, translated line for line. It also returns the tensors that the
# backward pass needs.

# %%
FORWARD = """
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>

std::vector<Tensor> forward(const Tensor& input,       // [B,I]
                            const Tensor& weights,     // [3S,S+I]
                            const Tensor& bias,        // [3S]
                            const Tensor& old_h,       // [B,S]
                            const Tensor& old_cell) {  // [B,S]
  Tensor X = at::cat({old_h, input}, 1);               // [B,S+I]
  Tensor z = at::addmm(bias, X, weights.t());          // [B,3S]
  auto parts = z.chunk(3, 1);                          // [B,S] each
  Tensor input_gate = parts[0].sigmoid(), output_gate = parts[1].sigmoid();
  Tensor candidate_cell = at::elu(parts[2]);
  Tensor new_cell = old_cell + candidate_cell * input_gate;
  Tensor new_h = new_cell.tanh() * output_gate;
  return {new_h, new_cell, X, z, input_gate, output_gate, candidate_cell};
}
"""

# %% [markdown]
# The next cell contains the best-known form of the backward pass. It computes each derivative from the
# pre-activation, with the functions above. Two parts of this form are wrong, and one part is slow.

# %%
BACKWARD = """
std::vector<Tensor> backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& weights,
                             const Tensor& new_cell, const Tensor& X, const Tensor& z,
                             const Tensor& input_gate, const Tensor& output_gate,
                             const Tensor& candidate_cell) {
  auto parts = z.chunk(3, 1);
  Tensor d_new_cell = grad_h * output_gate * d_tanh(new_cell) + grad_cell;
  Tensor d_z_i = d_new_cell * candidate_cell * d_sigmoid(parts[0]);
  Tensor d_z_o = grad_h * new_cell.tanh() * d_sigmoid(parts[1]);
  Tensor d_z_g = d_new_cell * input_gate * d_elu_by_mask(parts[2]);
  Tensor d_z = at::cat({d_z_i, d_z_o, d_z_g}, 1);  // [B,3S]

  Tensor d_weights = d_z.t().mm(X);
  Tensor d_bias = d_z.sum(0, /*keepdim=*/true);
  Tensor d_X = d_z.mm(weights);
  const int64_t S = new_cell.size(1);
  Tensor d_old_h = d_X.narrow(1, 0, S), d_input = d_X.narrow(1, S, X.size(1) - S);
  return {d_input, d_weights, d_bias, d_old_h, d_new_cell};
}
"""

# %%
NARROW = HEADERS["narrow headers"]
FUNCTIONS = ["d_sigmoid", "d_tanh", "d_elu", "d_elu_by_mask", "forward", "backward"]
OPTIONS = {"no_implicit_headers": True, "extra_cflags": ["-O2"]}
with timed("plain forward and backward"):
    plain = load_inline("plain", NARROW + DERIVATIVES + FORWARD + BACKWARD, functions=FUNCTIONS, **OPTIONS)

# %%
z = torch.linspace(-4, 4, 9, dtype=torch.float64, requires_grad=True)
for name, function in (("sigmoid", torch.sigmoid), ("tanh", torch.tanh), ("elu", torch.nn.functional.elu)):
    (by_autograd,) = torch.autograd.grad(function(z).sum(), z)
    by_hand = getattr(plain, f"d_{name}")(z.detach())
    print(f"d_{name:8s} largest difference from autograd: {(by_hand - by_autograd).abs().max():.1e}")

# %% [markdown] syllabus="2.2a"
# ### The forward pass gives the same result as stage 1
#
# Stage 1 and the C++ code above call the same operations in the same order, so the results are equal to the last
# bit.

# %%
stage1 = load_stage(1)
case = Case(B=16, I=32, S=128)
inputs = list(case.inputs().values())
with torch.no_grad():
    in_python, in_cpp = stage1.equations(*inputs), plain.forward(*inputs)
for name, one, other in zip(("new_h", "new_cell"), in_python, in_cpp, strict=False):
    print(f"{name:9s} {tuple(one.shape)}  equal: {torch.equal(one, other)}")

# %% [markdown] syllabus="2.2d"
# ### A wrong shape that autograd hides (!)
#
# `d_bias` is summed with `keepdim`, so its shape is (1, 3S), but the shape of bias is (3S). To see the effect, we
# put the forward and the backward pass into a `torch.autograd.Function`, and compute the gradient:


# %%
class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):
        new_h, new_cell, *saved = plain.forward(input, weights, bias, old_h, old_cell)
        ctx.save_for_backward(weights, new_cell, *saved)
        return new_h, new_cell

    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        return tuple(plain.backward(grad_h, grad_cell, *ctx.saved_tensors))


got = outputs(Plain.apply, case)
print("d_bias has shape", tuple(got["d_bias"].shape), "and differs from the reference:", difference(case, got))

# %% [markdown]
# The result looks right, because autograd sums each gradient to the shape of the input that the gradient belongs to.
# Only a direct call of the C++ function shows the wrong shape, so a test of the C++ code has to make such a call.

# %%
with torch.no_grad():
    new_h, new_cell, *saved = plain.forward(*inputs)
    gradients = plain.backward(*case.gradients(), inputs[1], new_cell, *saved)
for name, gradient, tensor in zip(("input", "weights", "bias", "old_h", "old_cell"), gradients, inputs, strict=True):
    remark = "" if gradient.shape == tensor.shape else "   <- not the shape of its input"
    print(f"d_{name:9s}{tuple(gradient.shape)!s:12s}{tuple(tensor.shape)!s:12s}{remark}")

# %% [markdown] syllabus="2.2e"
# ### Zero times infinity (!)
#
# The mask for $z \le 0$ is 0 at a large z, but $e^z$ is infinite there in float32, and $0 \cdot \infty$ is NaN.

# %%
large = torch.tensor([-200.0, 0.5, 88.0, 89.0, 1e4])
print("z            ", large.tolist())
print("d_elu        ", plain.d_elu(large).tolist())
print("d_elu_by_mask", plain.d_elu_by_mask(large).tolist())

# %% [markdown]
# Between 88 and 89, $e^z$ becomes infinite, and the form with masks gives NaN. The form with `where` computes the
# infinite value, too, but does not select it. In the cell, one large pre-activation is enough to make the result
# wrong:

# %%
saturated = Case(B=3, I=5, S=70, bias_shift=1e4)
print("by mask:", difference(saturated, outputs(Plain.apply, saturated)))
print("stage 1:", difference(saturated, outputs(stage1.lltm, saturated)))

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/forward`, `2/backward` and `2/elu_without_nan`. `make check EX=2/forward` in a terminal creates
# the files of the exercise and checks what you wrote. The cell below checks it here.

# %%
from common.exercises import show

show("2/forward")

# %% [markdown] syllabus="2.3a"
# ## The binding
#
# So far, `load_inline` has written the binding, the C++ code through which Python calls our functions. From now on
# we write the binding ourselves. `PYBIND11_MODULE(NAME, m)` defines the function `PyInit_NAME`. When Python imports
# the file `abc.so`, it looks for a function called `PyInit_abc`: the name of the function contains the name of the
# *file*. The build chooses the name of the file, and passes this name to the source as the macro
# `TORCH_EXTENSION_NAME`. A module name that is fixed in the source works only if the file happens to have the same
# name (!).

# %%
from torch.utils.cpp_extension import load

FIXED = """
#include <pybind11/pybind11.h>
PYBIND11_MODULE(my_module, m) { m.def("answer", [] { return 42; }); }
"""
try:
    load("not_my_module", [str(write("sources/fixed.cpp", FIXED))])
except ImportError as error:
    print("ImportError:", error)

# %% [markdown] syllabus="2.3b 2.3c 2.3d"
# ### A binding with argument names, docstrings and errors
#
# The file above compiles, but Python does not find the function `PyInit_not_my_module` in it. The correct binding
# below also gives `scale` a docstring, and names for its arguments. `load` builds this binding from a file. A later
# section shows how `load` works.

# %%
BINDING = r"""
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>

#include <chrono>
#include <stdexcept>
#include <thread>

at::Tensor scale(const at::Tensor& x, double factor) {
  TORCH_CHECK(x.dim() == 2, "scale: x has ", x.dim(), " dimensions, expected 2");
  if (factor == 0) throw std::invalid_argument("scale: factor is 0");
  return x * factor;
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "An example of a binding.";
  m.def("scale", &scale, "Returns x (rows, columns) times factor.", py::arg("x"), py::arg("factor") = 2.0);
  m.def("wait_and_hold", &wait);
  m.def("wait_and_release", &wait, py::call_guard<py::gil_scoped_release>());
}
"""
with timed("a binding by hand"):
    binding = load("binding", [str(write("sources/binding.cpp", BINDING))])
help(binding.scale)

# %%
x = torch.ones(1, 3)
print(binding.scale(x), binding.scale(factor=5, x=x))

# %% [markdown]
# An error in C++ reaches Python with its message. `TORCH_CHECK` raises a RuntimeError, and `std::invalid_argument`
# becomes a ValueError. If an argument cannot be converted, pybind11 raises a TypeError before our code runs.

# %%
for arguments in ((torch.ones(3),), (x, 0), ([1.0],)):
    try:
        binding.scale(*arguments)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")

# %% [markdown]
# The built file, `binding.so`, does not record where torch's libraries are. The dynamic loader (the part of the
# system that loads the libraries of a program) finds torch's libraries only if torch has already loaded them, so
# `import torch` must come first. We try this in new processes:

# %%
for imports in ("import binding", "import torch; import binding"):
    status, printed = run(sys.executable, "-c", f"{imports}; print('works')", folder=BUILD / "binding")
    print(f"{imports:30s} -> {printed.splitlines()[-1]}")

# %% [markdown]
# A crash does not become a Python exception: the process ends, and no message names a line of C++. "Looking into
# the C++" in `docs/troubleshooting.md` shows how to find the line with `faulthandler` and `gdb`, and how to print
# a tensor from C++.

# %% [markdown] syllabus="2.3e"
# ### The GIL
#
# Python code runs only in the thread that holds Python's global interpreter lock (GIL). A thread that runs C++ still
# holds the lock, so every other Python thread of the process waits, unless the binding releases the lock. Below, a
# second thread counts milliseconds while a call into C++ takes half a second.

# %%
import threading


def counted_during(call):
    ticks, over = [], threading.Event()

    def count():
        while not over.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = len(ticks)
    call(0.5)
    counted = len(ticks) - before
    over.set()
    thread.join()
    return counted


print("held:    ", counted_during(binding.wait_and_hold), "ticks")
print("released:", counted_during(binding.wait_and_release), "ticks")

# %% [markdown]
# `py::call_guard<py::gil_scoped_release>()` is all that stage 2 needs to release the lock. Code that runs without
# the lock must not access any Python object.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/bind_a_function`. `show("2/bind_a_function")` in a cell checks it here.

# %% [markdown] syllabus="2.4a 2.4b"
# ## Building ahead of time with `setup.py`
#
# The next cell describes the same extension twice: first without torch's help, as a `setuptools.Extension` with the
# folders and libraries that we saw above, and then as torch's `CppExtension`.

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
# the file as `load` does. Here is the file of the very first extension, for which we did not write any line of
# pybind11:

# %%
lines = (BUILD / "first" / "main.cpp").read_text().splitlines()
print(lines[0], "...", *lines[-5:], sep="\n")

# %% [markdown] syllabus="2.5i"
# ### Precompiled headers
#
# After the compiler has read the headers, it can write what it has read to a file. The next time, it starts from
# this file and does not read the headers again. When a source includes `NAME.h`, the compiler reads the file
# `NAME.h.gch` instead, if that file was made with the same flags.

# %%
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
# **Your turn:** `2/what_rebuilds`. `show("2/what_rebuilds")` in a cell checks it here.

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
shutil.copy(BUILD / "binding" / "binding.so", BUILD / "other_python" / "binding.cpython-39-x86_64-linux-gnu.so")
print(run(sys.executable, "-c", "import torch, binding", folder=BUILD / "other_python")[1].splitlines()[-1])
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

# %% [markdown] syllabus="2.7a"
# ## The Function around the extension
#
# Stage 2's `lltm.py` is a correct version of `Plain`. We look at its parts one by one. First, `backward` returns
# as many gradients as `forward` has arguments.

# %%
stage2 = load_stage(2)
print((stage2_folder / "lltm.py").read_text().partition("\n\n\ndef lltm")[0].partition("import _C\n\n\n")[2])


# %% [markdown]
# In published versions of this cell, the C++ code returns six gradients (the sixth is that of the gates), and the
# Python code unpacks them into five names (!). It is an error to return six gradients to autograd, and also to
# unpack six values into five names. Both errors appear only at the first `backward()`:


# %%
class Six(Plain):
    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        gradients = Plain.backward(ctx, grad_h, grad_cell)
        return (*gradients, gradients[0])


class SixIntoFive(Plain):
    @staticmethod
    def backward(ctx, grad_h, grad_cell):
        d_input, d_weights, d_bias, d_old_h, d_old_cell = Six.backward(ctx, grad_h, grad_cell)
        return d_input, d_weights, d_bias, d_old_h, d_old_cell


for function in (Six, SixIntoFive):
    try:
        sum(out.sum() for out in function.apply(*inputs)).backward()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown] syllabus="2.7b"
# ### Second derivatives: silently wrong
#
# The gates are computed inside `forward`, where autograd records nothing. In `backward`, autograd treats the gates
# as constants, so a second derivative misses every path through them. The `backward` of a Function receives the
# *upstream gradient*, the gradient of the loss with respect to the outputs. The loss below contains a gradient
# penalty: the squares of its own gradients. `Once` is `Plain` with the decorator `once_differentiable`, which should
# turn the wrong result into an error:


# %%
from torch.autograd.function import once_differentiable


class Once(Plain):
    backward = staticmethod(once_differentiable(Plain.backward))


def penalised_gradient(lltm, of_output=torch.square):
    """The gradient for the bias of a loss with a gradient penalty."""
    inputs = list(Case(B=2, I=3, S=4, dtype=torch.float64).inputs().values())
    loss = sum(of_output(out).sum() for out in lltm(*inputs))
    first = torch.autograd.grad(loss, inputs, create_graph=True)
    penalty = sum(gradient.square().sum() for gradient in first)
    return torch.autograd.grad(loss + penalty, inputs[2])[0][:4]


print("of stage 1", penalised_gradient(stage1.lltm))
print("of Plain  ", penalised_gradient(Plain.apply))
print("of Once   ", penalised_gradient(Once.apply))

# %% [markdown]
# Both results are wrong, and there is neither an error nor a warning. `Once` returns the gradient of the loss
# without the penalty: its error is raised in a node that no path from the penalty to the bias contains, as notebook
# 00b shows.
#
# `gradcheck` passes, because the first derivative is right. `gradgradcheck` finds the mistake:

# %%
from torch.autograd.gradcheck import GradcheckError

small = tuple(Case(B=2, I=3, S=4, dtype=torch.float64).inputs().values())
print("gradcheck:", torch.autograd.gradcheck(Plain.apply, small))
try:
    torch.autograd.gradgradcheck(Plain.apply, small)
except GradcheckError as error:
    print("gradgradcheck:", str(error).splitlines()[0])

# %% [markdown] syllabus="2.7c"
# ### Second derivatives: an error for every caller
#
# The second class of stage 2's `lltm.py`, `LLTMBackward`, raises an error for every caller. It is the gradient as a
# Function of its own, so it has a node in the graph, and `apply` connects this node with all tensors that it gets.
# (In `backward`, grad mode is on only if the caller has set `create_graph=True`. Otherwise there is nothing to
# connect, and `backward` calls the C++ function directly, which is a few microseconds faster.)

# %%
try:
    penalised_gradient(stage2.lltm)
except RuntimeError as error:
    print("RuntimeError:", error)

# %% [markdown]
# Which tensors does `LLTMBackward` get? X and the gates are intermediate results of `forward`, so they lead nowhere.
# The weights are an argument, and lead to themselves. `new_cell` is a *result* of `LLTMFunction`: autograd returns
# it from `saved_tensors` with its `grad_fn`, and this node leads to all five arguments. This is why stage 2 saves
# `new_cell` and not tanh(new_cell), which `backward` needs. Both have the same size, but tanh(new_cell) would be
# another intermediate result. To save it would avoid one tanh, about 1 % of the time of `backward`. The next cell
# saves a copy of `new_cell`, which is an intermediate result, too. The loss is a plain sum, so that the upstream
# gradients are constants and lead nowhere, either:


# %%
class SavesIntermediates(stage2.LLTMFunction):
    @staticmethod
    def forward(ctx, *inputs):
        new_h, new_cell, *saved = stage2._C.forward(*inputs)
        ctx.save_for_backward(inputs[1], *saved, new_cell.clone())
        ctx.set_materialize_grads(False)
        return new_h, new_cell


print("of stage 1           ", penalised_gradient(stage1.lltm, torch.clone))
print("of SavesIntermediates", penalised_gradient(SavesIntermediates.apply, torch.clone))
try:
    penalised_gradient(stage2.lltm, torch.clone)
except RuntimeError as error:
    print("of stage 2: RuntimeError:", error)

# %% [markdown]
# `SavesIntermediates` calls `LLTMBackward`, too, and is silently wrong again. So test an error for second derivatives
# with `autograd.grad` and with both losses.

# %% [markdown] syllabus="2.7e"
# ### The Function, not C++, hides operations from autograd
#
# Autograd records ATen's operations, whether Python or C++ calls them. So C++ code that consists of ATen
# operations needs no backward function at all, and has derivatives of every order. The Function hides these
# operations: while its `forward` runs, recording is off. Here is the same C++ code, called directly:


# %%
def without_function(*inputs):
    return tuple(plain.forward(*inputs)[:2])


print("new_h came from", type(without_function(*small)[0].grad_fn).__name__)
print("gradcheck:", torch.autograd.gradcheck(without_function, small))
print("gradgradcheck:", torch.autograd.gradgradcheck(without_function, small))
print("with a gradient penalty:", penalised_gradient(without_function))

# %% [markdown]
# So write a backward pass of your own only if it is faster or needs less memory. For a kernel of your own you have
# to write a backward pass, because autograd cannot record what a kernel does. Stage 3 does this.

# %% [markdown] syllabus="2.7f"
# ### Under autocast (!)
#
# `torch.autocast` computes matrix products in a 16-bit type. This includes the products in the `forward` of a
# Function, and those that C++ code calls. The type is bfloat16 on a CPU and float16 on a GPU, unless you name
# another type. `backward()` is usually called outside the autocast block, and then autocast is off in `backward`. So
# here, `backward` gets bfloat16 gates and float32 weights:

# %%
with torch.autocast("cpu", torch.bfloat16):
    new_h, new_cell = stage2.lltm(*inputs)
try:
    (new_h + new_cell).sum().backward()
except RuntimeError as error:
    print("stage 2:", error)

# %% [markdown]
# Stages 3 and 4 raise an error already in the forward pass: `not implemented for 'BFloat16'`. A Function can choose
# the dtype that it computes in. With `custom_fwd` and `cast_inputs`, `forward` gets inputs of that dtype, and
# autocast is off in `forward`. `custom_bwd` gives `backward` the autocast state that `forward` had, here off, even if
# `backward()` is called inside an autocast block. Here is the smallest Function that needs both decorators:


# %%
class Mm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.mm(w)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad.mm(w.t()), x.t().mm(grad)


class CastingMm(Mm):
    forward = staticmethod(torch.amp.custom_fwd(Mm.forward, device_type="cpu", cast_inputs=torch.float32))
    backward = staticmethod(torch.amp.custom_bwd(Mm.backward, device_type="cpu"))


# %%
x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True)
for function in (Mm, CastingMm):
    with torch.autocast("cpu", torch.bfloat16):
        y = function.apply(x, w)
    try:
        print(
            f"{function.__name__:10s}{y.dtype}, gradients", *(g.dtype for g in torch.autograd.grad(y.sum(), (x, w)))
        )
    except RuntimeError as error:
        print(f"{function.__name__:10s}{y.dtype}, {error}")

# %% [markdown]
# Usually you write `custom_fwd` and `custom_bwd` as decorators, below `@staticmethod`. The drawback of
# `cast_inputs=torch.float32` is that this Function no longer computes anything in bfloat16. Stage 5 gives an
# operator its own rule for autocast.

# %% [markdown] syllabus="2.7g"
# ### Under `torch.compile`
#
# `torch.compile` records Python code until it reaches a call that it cannot trace, such as a pybind11 function.
# There it *breaks* the graph: it compiles the code before the call, makes the call as usual, and continues to record
# after the call. The *backend* is the function that compiles each recorded graph. The backend below does not compile
# anything. It only counts the graphs.

# %%
import warnings

graphs = []


def counting(graph, _):
    graphs.append(graph)
    return graph


def around(lltm):
    return lambda input, *others: lltm(2 * input, *others)[0].exp()


for name, lltm in (("stage 1", stage1.equations), ("stage 2", stage2.lltm)):
    graphs.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning recommends an operator, and so does the error below
        compiled = torch.compile(around(lltm), backend=counting)(*inputs)
    torch.testing.assert_close(compiled, around(lltm)(*inputs))
    print(name, "compiled agrees, in", len(graphs), "graph" if len(graphs) == 1 else "graphs")

# %% [markdown]
# The result is right, but operations before the break are never fused (combined into one kernel) with operations
# after it. `fullgraph=True` turns a break into an error:

# %%
try:
    torch.compile(around(stage2.lltm), backend="eager", fullgraph=True)(*inputs)
except Exception as error:
    lines = [line.strip() for line in str(error).splitlines()]
    print(type(error).__name__, lines[0], *(line for line in lines if "custom operator" in line), sep="\n")

# %% [markdown]
# The message says what to do. Since version 2.4, PyTorch recommends that you *register an operator*, a function that
# the compiler keeps in its graph as one call, without tracing what happens inside. Stage 5 does this, and so does
# PyTorch's tutorial on [custom C++ and CUDA
# operators](https://docs.pytorch.org/tutorials/advanced/cpp_custom_ops.html).

# %% [markdown] syllabus="2.7d"
# ### The same extension on a GPU
#
# ATen chooses the kernel for the device of the tensors. The extension does not have to be built again for this:

# %%
devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
for device in devices:
    there = Case(B=16, I=32, S=128, device=device)
    wrong = difference(there, outputs(stage2.lltm, there))
    print(f"stage 2 on {device}: {wrong or 'agrees with the float64 reference'}")
if devices == ["cpu"]:
    print("No GPU that torch can use is here, so the same call on CUDA tensors did not run.")

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/function`. `show("2/function")` in a cell checks it here.

# %% [markdown] syllabus="2.8a 2.8c 2.8d 2.8e 2.8f 2.8g"
# ## Why the plain C++ backward pass can be slower than autograd's
#
# In its backward pass, `Plain` computes sigmoid, tanh and the exponential again. Autograd keeps the results of
# sigmoid and tanh from the forward pass. `Plain` also builds each derivative from several small operations. Three
# steps lead from `Plain` to stage 2.
#
# The first step computes each derivative from the *activated* value. Let $s$, $t$ and $a$ be the values of sigmoid,
# tanh and elu. Then the derivatives are $s(1-s)$, $1-t^2$ and $\min(a+1, 1)$. So the pre-activations do not have to
# be kept at all.

# %%
REUSE = """
using at::Tensor;

std::vector<Tensor> forward(const Tensor& input, const Tensor& weights, const Tensor& bias,
                            const Tensor& old_h, const Tensor& old_cell) {
  Tensor X = at::cat({old_h, input}, 1);
  auto parts = at::addmm(bias, X, weights.t()).chunk(3, 1);
  Tensor input_gate = parts[0].sigmoid(), output_gate = parts[1].sigmoid();
  Tensor candidate_cell = at::elu(parts[2]);
  Tensor new_cell = old_cell + candidate_cell * input_gate;
  Tensor new_h = new_cell.tanh() * output_gate;
  return {new_h, new_cell, X, input_gate, output_gate, candidate_cell};
}

std::vector<Tensor> through_linear(const Tensor& d_z, const Tensor& d_new_cell, const Tensor& weights,
                                   const Tensor& X) {
  const int64_t S = d_new_cell.size(1);
  Tensor d_X = d_z.mm(weights);
  Tensor d_old_h = d_X.narrow(1, 0, S), d_input = d_X.narrow(1, S, X.size(1) - S);
  return {d_input, d_z.t().mm(X), d_z.sum(0), d_old_h, d_new_cell};
}

std::vector<Tensor> backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& weights,
                             const Tensor& new_cell, const Tensor& X, const Tensor& input_gate,
                             const Tensor& output_gate, const Tensor& candidate_cell) {
  Tensor t = new_cell.tanh();
  Tensor d_new_cell = grad_h * output_gate * (1 - t * t) + grad_cell;
  Tensor d_z_i = d_new_cell * candidate_cell * input_gate * (1 - input_gate);
  Tensor d_z_o = grad_h * t * output_gate * (1 - output_gate);
  Tensor d_z_g = d_new_cell * input_gate * (candidate_cell + 1).clamp_max(1);
  return through_linear(at::cat({d_z_i, d_z_o, d_z_g}, 1), d_new_cell, weights, X);
}
"""

# %% [markdown]
# The second step leaves each derivative to ATen, which computes it in one pass over memory. `aten_backward` below
# calls the functions that autograd itself calls:

# %%
ATEN = """
std::vector<Tensor> aten_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& weights,
                                  const Tensor& new_cell, const Tensor& X, const Tensor& input_gate,
                                  const Tensor& output_gate, const Tensor& candidate_cell) {
  Tensor t = new_cell.tanh();
  Tensor d_new_cell = at::tanh_backward(grad_h * output_gate, t) + grad_cell;
  Tensor d_z_i = at::sigmoid_backward(d_new_cell * candidate_cell, input_gate);
  Tensor d_z_o = at::sigmoid_backward(grad_h * t, output_gate);
  Tensor d_z_g = at::elu_backward(d_new_cell * input_gate, 1, 1, 1, /*is_result=*/true, candidate_cell);
  return through_linear(at::cat({d_z_i, d_z_o, d_z_g}, 1), d_new_cell, weights, X);
}
"""
NAMES = ("addmm", "cat", "elu", "elu_backward", "sigmoid_backward", "tanh_backward")
OPERATIONS = "".join(f"#include <ATen/ops/{name}.h>\n" for name in NAMES)
FUNCTIONS = ["forward", "backward", "aten_backward"]
with timed("the two steps"):
    steps = load_inline("steps", NARROW + OPERATIONS + REUSE + ATEN, functions=FUNCTIONS, **OPTIONS)

# %% [markdown]
# The third step is stage 2. Open its source, `stages/stage2_aten/csrc/lltm.cpp`, beside this notebook and find each
# of these changes:
#
# - The gradients of the three gates are written directly into one tensor (B, 3S). There, they are overwritten with
#   the gradients of the pre-activations, which the matrix products read.
# - One call computes both sigmoids.
# - Gradients that are not needed are not computed.
#
# We put a Function around each of these versions, and compare the results with the reference before we measure any
# time. We also include `without_function`, whose backward pass is autograd's, and *eager*, which is stage 1: each
# operation runs as soon as Python calls it.


# %%
def function_around(forward, backward):
    class Around(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            new_h, new_cell, *saved = forward(*inputs)
            ctx.save_for_backward(inputs[1], new_cell, *saved)
            return new_h, new_cell

        @staticmethod
        def backward(ctx, grad_h, grad_cell):
            gradient = AroundBackward.apply if torch.is_grad_enabled() else backward
            return tuple(gradient(grad_h, grad_cell, *ctx.saved_tensors))

    class AroundBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            return tuple(backward(*arguments))

        @staticmethod
        def backward(ctx, *gradients):
            raise RuntimeError("there are no second derivatives")

    return Around.apply


VERSIONS = {
    "eager": stage1.equations,
    "C++ without Function": without_function,
    "plain C++": function_around(plain.forward, plain.backward),
    "activations reused": function_around(steps.forward, steps.backward),
    "ATen's derivatives": function_around(steps.forward, steps.aten_backward),
    "stage 2": stage2.lltm,
}
for name, version in VERSIONS.items():
    print(f"{name:20s}", difference(case, outputs(version, case)) or "agrees with the reference")


# %% [markdown]
# The versions are measured in rounds. Each round calls them in a new random order, so that any other load on the
# machine affects all of them alike. We measure once with gradients for all five inputs, and once with gradients for
# weights and bias only, as in the first step of a sequence, where the state needs no gradient.


# %%
def passes(lltm, case):
    """Two calls without arguments: forward alone, and forward with backward."""
    inputs = list(case.inputs().values())
    leaves, gradients = [tensor for tensor in inputs if tensor.requires_grad], case.gradients()
    return lambda: lltm(*inputs), lambda: torch.autograd.grad(lltm(*inputs), leaves, gradients)


def measure(versions, case):
    """For each version, the median microseconds and the ratio to the first one, forward and with backward."""
    both = [passes(lltm, case) for lltm in versions.values()]
    columns = [interleave([pair[k] for pair in both], "cpu", 15, 0.02) for k in (0, 1)]
    return {
        name: [(column[k].quartiles()[1], column[k].ratio_to(column[0])) for column in columns]
        for k, name in enumerate(versions)
    }


def print_times(measured):
    print(f"{'':22s}{'forward':>12s}{'':9s}{'forward+backward':>18s}")
    for name, ((forward, forward_ratio), (both, both_ratio)) in measured.items():
        print(f"{name:22s}{forward:9.1f} us{forward_ratio:7.2f} x{both:14.1f} us{both_ratio:7.2f} x")


everything = Case(B=16, I=32, S=128)
parameters = Case(B=16, I=32, S=128, requires_grad=("weights", "bias"))
of_everything, of_parameters = measure(VERSIONS, everything), measure(VERSIONS, parameters)
print("Gradients for all five inputs")
print_times(of_everything)
print("\nGradients for weights and bias only")
print_times(of_parameters)

# %% [markdown]
# Compare the columns `forward` and `forward+backward`. The forward passes in C++ are faster, because they avoid the
# time that Python needs. But the plain backward pass is slower than autograd's: it is not enough to move the same
# work to C++. The work itself has to change. The versions that reuse activations and call ATen's own derivatives
# make up for this loss.
#
# When all gradients are needed, writing into one tensor makes little further difference at this size. When only the
# gradients of weights and bias are needed, stage 2 is clearly the fastest, because it skips the product for `d_X`.
# The other backward passes in C++ compute `d_X` and discard it.
#
# Before you write a backward pass at all, measure C++ without a Function: the forward pass is in C++, and autograd
# provides the backward pass.

# %% [markdown] syllabus="2.8b 2.8e"
# ### Counting operations, allocations and bytes
#
# The profiler records every call that reaches ATen, from Python or from C++, and how much memory each call
# allocates. We count allocations of at least the size of a (B, S) tensor: results and temporaries. The saved bytes
# are the bytes that are stored for the backward pass. Inputs and outputs do not count, because the caller keeps them
# anyway.

# %%
os.environ["KINETO_LOG_LEVEL"] = "6"  # hides the profiler's messages about itself
from torch.profiler import ProfilerActivity, profile

VIEWS = {f"aten::{name}" for name in ("chunk", "detach", "narrow", "slice", "split", "t", "unbind")}


def counts(call, large):
    """The numbers of outermost operations, of outermost views, and of allocations of at least `large` bytes."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        call()

    def outermost(event):
        while (event := event.cpu_parent) is not None:
            if event.name.startswith("aten::"):
                return False
        return True

    events = [event for event in profiler.events() if event.name.startswith("aten::")]
    called = [event.name in VIEWS for event in events if outermost(event)]
    allocations = sum(event.self_cpu_memory_usage >= large for event in events)
    return called.count(False), called.count(True), allocations


def saved_bytes(lltm, inputs):
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        results = lltm(*inputs)
    held = {tensor.untyped_storage().data_ptr() for tensor in (*inputs, *results)}
    return sum(size for pointer, size in kept.items() if pointer not in held)


# %%
def count(versions):
    table = {}
    for name, version in versions.items():
        _, both = passes(version, everything)
        both()
        saved = saved_bytes(version, list(everything.inputs().values())) / 1024
        table[name] = (*counts(both, large=16 * 128 * 4), saved)
    return table


print(f"{'':22s}{'operations':>12s}{'views':>8s}{'allocations':>14s}{'saved':>10s}")
for name, (operations, views, allocations, saved) in count(VERSIONS).items():
    print(f"{name:22s}{operations:12d}{views:8d}{allocations:14d}{saved:6.0f} KiB")

# %% [markdown]
# The plain version makes the most calls and the most allocations, and this is why it is slow. Both eager and the
# plain version keep all of `z`: eager does so because elu stores its input, which is a view of `z`. Eager also keeps
# the result of tanh, so the plain version keeps fewer bytes. The versions "activations reused" and "ATen's
# derivatives" do not keep pre-activations, and store about half as many bytes as eager. Stage 2 stores as many: X and
# the gates. `new_cell` does not count, because the caller keeps it. So the backward pass of stage 2 repeats only one
# operation of the forward pass, the tanh. The views in stage 2 are cheap, but not free.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/fewer_bytes`. `show("2/fewer_bytes")` in a cell checks it here.

# %% [markdown] syllabus="2.9a"
# ## The loop over time, and autograd, in C++
#
# The Function is still Python code, which is called twice for every step. C++ has a class for the same purpose,
# `torch::autograd::Function`. We append the code below to stage 2's own source, and call the `forward` and
# `backward` that are defined there. While the object `below_autograd` exists, that is, until `forward` returns,
# calls of ATen's operations skip autograd, so autograd does not record these operations.
#
# A C++ Function may also have to handle two cases that do not occur in this cell. A value that is not a tensor is
# stored in `ctx->saved_data["name"]`. An argument of `forward` that may be missing is a `std::optional<Tensor>`.
# (With such arguments, `needs_input_grad(k)` counts only the tensors that are present: if the first of three is
# missing, `needs_input_grad(0)` is about the second, and `needs_input_grad(2)` throws. So record in `saved_data`
# which arguments were present.)
#
# The first line of `backward` is a simple way to reject second derivatives: it raises an error as soon as the caller
# sets `create_graph=True`. It is stricter than `LLTMBackward`, because it also stops a caller who needs the second
# derivative of another part of a model.

# %%
AUTOGRAD = """
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct LLTMFunction : torch::autograd::Function<LLTMFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& weights,
                               const Tensor& bias, const Tensor& old_h, const Tensor& old_cell) {
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    auto [new_h, new_cell, X, gates] = ::forward(input, weights, bias, old_h, old_cell);
    ctx->save_for_backward({weights, X, gates, new_cell});
    ctx->set_materialize_grads(false);
    return {new_h, new_cell};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    TORCH_CHECK(!at::GradMode::is_enabled(), "lltm: second derivatives are not implemented");
    auto given = [](const Tensor& grad) { return grad.defined() ? std::optional<Tensor>(grad) : std::nullopt; };
    std::array<bool, 5> needs_input_grad;
    for (size_t k = 0; k < 5; ++k) needs_input_grad[k] = ctx->needs_input_grad(k);
    variable_list saved = ctx->get_saved_variables();
    auto [d_input, d_weights, d_bias, d_old_h, d_old_cell] = ::backward(
        given(grads[0]), given(grads[1]), saved[0], saved[1], saved[2], saved[3], needs_input_grad);
    return {d_input, d_weights, d_bias, d_old_h, d_old_cell};
  }
};

std::tuple<Tensor, Tensor> lltm(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                const Tensor& old_h, const Tensor& old_cell) {
  variable_list results = LLTMFunction::apply(input, weights, bias, old_h, old_cell);
  return {results[0], results[1]};
}
"""

# %% [markdown]
# The loop moves to C++ as well, so Python makes one call for a whole sequence:

# %%
SEQUENCE = """
std::tuple<Tensor, Tensor, Tensor> lltm_sequence(const Tensor& inputs,  // [T,B,I]
                                                 const Tensor& weights, const Tensor& bias,
                                                 Tensor h, Tensor cell) {  // [B,S]
  std::vector<Tensor> outputs;
  for (const Tensor& input : inputs.unbind(0)) {
    std::tie(h, cell) = lltm(input, weights, bias, h, cell);
    outputs.push_back(h);
  }
  return {at::stack(outputs), h, cell};  // [T,B,S], [B,S], [B,S]
}
"""
LOOP_HEADERS = """
#include <ATen/ops/stack.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/custom_function.h>
"""

# %%
cell_source = (stage2_folder / "csrc" / "lltm.cpp").read_text().partition("PYBIND11_MODULE")[0]
source = LOOP_HEADERS + cell_source + AUTOGRAD + SEQUENCE
with timed("stage 2 with autograd and loop"):
    in_cpp = load_inline("in_cpp", source, functions=["lltm", "lltm_sequence"], **OPTIONS)
print(difference(everything, outputs(in_cpp.lltm, everything)) or "the cell agrees with the reference")

# %% [markdown]
# The loop in C++ gives the same results as the loop in Python, both the outputs and the gradients through all
# steps:

# %%
from common.build.cell_module import lltm_sequence


def sequence_inputs(T, B, I, S):
    inputs = Case(B, I, S).inputs()
    parameters = [inputs["weights"], inputs["bias"]]
    steps = torch.randn(T, B, I, generator=torch.Generator().manual_seed(T))
    return [steps, *parameters, inputs["old_h"].detach(), inputs["old_cell"].detach()], parameters


arguments, parameters_of = sequence_inputs(T=20, B=3, I=5, S=70)
by_python, (last_h, last_cell) = lltm_sequence(stage1.lltm, *arguments)
by_cpp, cpp_h, cpp_cell = in_cpp.lltm_sequence(*arguments)
pairs = [("outputs", by_python, by_cpp), ("last h", last_h, cpp_h), ("last cell", last_cell, cpp_cell)]
for name, k in (("d_weights", 0), ("d_bias", 1)):
    grads = [torch.autograd.grad(out.sum(), parameters_of, retain_graph=True)[k] for out in (by_python, by_cpp)]
    pairs.append((name, *grads))
for name, one, other in pairs:
    print(f"{name:10s} largest difference {(one - other).abs().max():.1e} of {one.abs().max():.2g}")

# %% [markdown]
# ### Measuring autograd in C++
#
# We first measure one step, as before:

# %%
VERSIONS["autograd in C++"] = in_cpp.lltm
implementations = {name: VERSIONS[name] for name in ("eager", "stage 2", "autograd in C++")}
for kept, sizes in ((of_everything, everything), (of_parameters, parameters)):
    measured = measure(implementations, sizes)
    kept["autograd in C++"] = measured["autograd in C++"]
    print("Gradients for", ", ".join(sizes.requires_grad))
    print_times(measured)

# %% [markdown]
# Stage 2 and the version with autograd in C++ run the same kernels, and the same number of them. The only difference
# is that the Function is no longer in Python. In the forward pass, stage 2 takes less time than eager. With autograd
# in C++, this gain is about twice as large. The autograd functions of PyTorch's own operations are in C++, and now
# those of this cell are, too.

# %% [markdown] syllabus="2.9b"
# ### Measuring the loop
#
# We measure forward and backward over whole sequences, and print the time per step. There are four versions. Three
# loops are in Python: they call eager, stage 2, and the cell with autograd in C++. The fourth loop is in C++.

# %%
LOOPS = {
    "loop in Python, eager": lambda *arguments: lltm_sequence(stage1.equations, *arguments)[0],
    "loop in Python, stage 2": lambda *arguments: lltm_sequence(stage2.lltm, *arguments)[0],
    "loop in Python, autograd in C++": lambda *arguments: lltm_sequence(in_cpp.lltm, *arguments)[0],
    "loop in C++": lambda *arguments: in_cpp.lltm_sequence(*arguments)[0],
}
SIZES = {"B1 I32 S64": (1, 32, 64), "B16 I32 S128": (16, 32, 128), "B64 I64 S256": (64, 64, 256)}


def measure_loops(T, size):
    """For each loop, microseconds per step, forward and backward, and the ratio to the first."""
    arguments, parameters = sequence_inputs(T, *size)
    calls = [lambda loop=loop: torch.autograd.grad(loop(*arguments).sum(), parameters) for loop in LOOPS.values()]
    samples = interleave(calls, "cpu", 9, 0.01)
    return [(sample.quartiles()[1] / T, sample.ratio_to(samples[0])) for sample in samples]


by_length = {T: measure_loops(T, SIZES["B16 I32 S128"]) for T in (4, 16, 64)}
by_size = {name: measure_loops(16, size) for name, size in SIZES.items()}
print(f"{'us per step':34s}" + "".join(f"{f'T={T}':>14s}" for T in by_length) + "   (B16 I32 S128)")
for k, name in enumerate(LOOPS):
    print(f"{name:34s}" + "".join(f"{rows[k][0]:7.0f}{rows[k][1]:5.2f} x" for rows in by_length.values()))
print(f"\n{'us per step':34s}" + "".join(f"{name:>14s}" for name in by_size) + "   (T=16)")
for k, name in enumerate(LOOPS):
    print(f"{name:34s}" + "".join(f"{rows[k][0]:7.0f}{rows[k][1]:5.2f} x" for rows in by_size.values()))

# %% [markdown]
# Compare the last two lines of each table. Both versions have autograd in C++. The *loop* in C++ also avoids one
# call from Python for each step, and this makes each step a few microseconds faster. This gain per step is the same
# at every length of the sequence. In a large step, these few microseconds are a small part of the time. A sequence
# can gain much more from other changes: one matrix product for all inputs, and fewer, larger kernels.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/loop_in_cpp`. `show("2/loop_in_cpp")` in a cell checks it here.

# %% [markdown]
# ## In pictures
#
# The first chart shows how long each build takes. The headers determine the time, not your code.

# %%
from common.figures.plots import BLUE, COLOURS, GREEN, ORANGE, PURPLE, SKY, STYLE, VERMILION

plt.rcParams.update(STYLE)
seconds = timed.seconds
figure, axis = plt.subplots(figsize=(9, 0.35 * len(seconds) + 0.9), layout="constrained")
names = sorted(seconds, key=seconds.get)
bars = axis.barh(names, [seconds[name] for name in names], color=BLUE)
axis.bar_label(bars, fmt="%.1f s", padding=3)
axis.set_title("Build time of each extension here, first build (some ran two at a time)")
plt.show()

# %% [markdown]
# The next chart shows all versions of one step, each compared with eager in the same run. Points to the left of the
# line are faster than eager.

# %%
INK_OF = [COLOURS["eager"], PURPLE, VERMILION, ORANGE, SKY, BLUE, GREEN]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharex=True, sharey=True, layout="constrained")
for axis, measured in zip(axes, (of_everything, of_parameters), strict=True):
    title = "all inputs" if measured is of_everything else "weights and bias"
    rows = list(measured)[::-1]
    for k, name in enumerate(rows):
        (_, forward), (_, both) = measured[name]
        colour = INK_OF[list(measured).index(name)]
        axis.plot(forward, k + 0.13, "o", color=colour, markerfacecolor="white", markersize=8)
        axis.plot(both, k - 0.13, "o", color=colour, markersize=8)
    axis.axvline(1, color="#1a1a1a", linewidth=1)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlabel("time as a multiple of eager's")
    axis.set_title(f"B16 I32 S128, gradients for {title}")
axes[0].set_xlim(left=0)  # for both axes; set last, because a limit set earlier would cut off later points
axes[0].plot([], [], "o", color="#555555", markerfacecolor="white", label="forward")
axes[0].plot([], [], "o", color="#555555", label="forward+backward")
axes[0].legend(loc="lower left", frameon=False)
plt.show()

# %% [markdown]
# The next charts explain these times. They show the number of operations, the number of allocations, and the bytes
# that are stored for the backward pass.

# %%
counted = count(VERSIONS)
figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
rows = list(counted)[::-1]
panels = {0: "operations", 2: "allocations of (B, S) or more", 3: "KiB saved for backward"}
for axis, (k, title) in zip(axes, panels.items(), strict=True):
    bars = axis.barh(rows, [counted[name][k] for name in rows], color=INK_OF[::-1])
    axis.bar_label(bars, fmt="%.0f", padding=3)
    axis.set_title(title)
    axis.margins(x=0.15)
figure.suptitle("One step forward and backward, B16 I32 S128")
plt.show()

# %% [markdown]
# The last chart shows the loop over time.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained")
for axis, table, title in zip(axes, (by_length, by_size), ("B16 I32 S128, T steps", "T=16"), strict=True):
    places = [f"T={key}" if isinstance(key, int) else key for key in table]
    for k, (name, colour) in enumerate(zip(LOOPS, (COLOURS["eager"], BLUE, GREEN, VERMILION), strict=True)):
        axis.plot(places, [rows[k][1] for rows in table.values()], "o-", color=colour, label=name)
    axis.set_title(title)
    axis.margins(x=0.15)
    axis.grid(axis="y")
axes[0].set_ylim(bottom=0)
axes[0].set_ylabel("time as a multiple of eager's loop")
axes[0].legend(frameon=False, loc="lower left")
plt.show()

# %% [markdown]
# ## Summary
#
# - C++ removes the Python code between operations. C++ does not make an operation faster, and does not reduce the
#   number of operations: you have to do this yourself.
# - Include narrow headers, use `TORCH_EXTENSION_NAME` and `--no-build-isolation`, and with `load` always pass
#   `-O2`.
# - Compare with a reference, and call the C++ directly as well, because autograd hides wrong shapes.
# - Raise an error for second derivatives that you have not verified: in a Function of its own for the gradient, which
#   gets a saved argument or a saved result.
# - Keep activated values instead of pre-activations, use ATen's own derivatives, write all gradients of gates into
#   one tensor, and skip gradients that are not needed.
#
# Next: `make diff-1-2` shows what changed from stage 1 to stage 2. Each step still runs more than a dozen small
# kernels. Stage 3 combines the elementwise kernels into one kernel for each pass. Stage 3 uses raw pointers, which
# `02b_tensors_in_cpp` explains.
