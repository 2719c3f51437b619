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
# memory). The C++ code calls ATen, the C++ tensor library that PyTorch is built on. You will write the forward and
# the backward pass, the binding through which Python calls them, and the `autograd.Function` around them, and see
# the symptoms of the usual mistakes.
#
# You need notebooks 01 and 01b, and a C++ compiler. The notebook takes about an hour. In the first run, two minutes
# of this are spent compiling. The next run finds everything built, under `build/notebooks/`. A heading or a sentence
# with (!) is about a mistake that is common in code and in tutorials.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
import time

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
# Notebook 01b found that a small step spends only a part of its time in arithmetic. Much of the time is spent before
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

# %%
from common.figures.plots import BLUE, STYLE

plt.rcParams.update(STYLE)
figure, axis = plt.subplots(figsize=(8, 1.8), layout="constrained")
bars = axis.barh(list(HEADERS)[::-1], [timed.seconds[name] for name in list(HEADERS)[::-1]], color=BLUE)
axis.bar_label(bars, fmt="%.1f s", padding=3)
axis.set_title("Build time of the same function of three lines, by what it includes")
plt.show()

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
# below also gives `scale` a docstring, and names for its arguments. `load` builds this binding from a file. Notebook
# 02b shows how `load` works.

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

# %% [markdown] syllabus="2.7a"
# ## The Function around the extension
#
# Stage 2's `lltm.py` is a correct version of `Plain`. We look at its parts one by one. First, `backward` returns
# as many gradients as `forward` has arguments.

# %%
stage2, stage2_folder = load_stage(2), root / "stages" / "stage2_aten"
print((stage2_folder / "lltm.py").read_text().partition("\n\n\ndef lltm")[0].partition("import _C\n\n\n")[2])


# %% [markdown]
# A backward pass in C++ may return more than the gradients of the arguments, for example that of the gates as a
# sixth (!). It is an error to pass all six on to autograd, and also to unpack six values into five names. Both
# errors appear only at the first `backward()`:


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

# %% [markdown]
# ## Summary
#
# - C++ removes the Python code between operations. C++ does not make an operation faster, and does not reduce the
#   number of operations: you have to do this yourself.
# - Include narrow headers, and use `TORCH_EXTENSION_NAME` in the binding.
# - Compare with a reference, and call the C++ directly as well, because autograd hides wrong shapes.
# - Raise an error for second derivatives that you have not verified: in a Function of its own for the gradient, which
#   gets a saved argument or a saved result.
#
# Next: `make diff-1-2` shows what changed from stage 1 to stage 2. Notebook `02b_building` shows how an extension is
# built and shipped, and `02c_faster_backward` makes its backward pass faster.
