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
# # 02e: other people's code
#
# This notebook is about two kinds of code that other people wrote. The first kind is libraries: torch does not
# contain most of the libraries that exist, but an extension may call any of them. The second kind is old extensions:
# many extensions on the web are years old and no longer build, because torch has changed. You will link a library of
# the system, link a library of your own, bind a C++ class, take arrays of other libraries, and then update an old
# extension.
#
# You need notebook 02. This notebook takes about 50 minutes. In the first run, two minutes of this are spent
# compiling. A heading with (!) is about a mistake that is common in code and in tutorials.

# %%
import os
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import load, load_inline

from common.workbench import build_folder, run, torch_compiler, write

BUILD = build_folder()
torch.manual_seed(0)
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# `run` runs a command, and `write` writes a file, both in a folder for builds. A third function, `complaints`,
# returns the compiler's errors and warnings for a source text. It calls `torch_compiler()`, the compiler's command
# with the folders of torch's and Python's headers.


# %%
def complaints(source, *flags, standard=None):
    """The lines with an error or a warning that the compiler prints for a C++ text."""
    _, said = run(*torch_compiler(standard), "-x", "c++", "-fsyntax-only", "-Wall", *flags, "-", text=source)
    return [line for line in said.splitlines() if " error: " in line or " warning: " in line]


# %% [markdown] syllabus="2.10a"
# ## A library that torch does not have
#
# zlib compresses bytes without loss. Nearly every machine has zlib, and torch does not contain it. Here zlib is an
# example of any library that you need: a codec, a solver, a file format, a camera. The code that calls zlib is
# short:

# %%
folder = root / "stages" / "stage2_aten" / "another_library"
source = (folder / "pack.cpp").read_text()
print(source.partition("// Returns the bytes")[0])
begin, end = source.index("  uLong size = compressBound"), source.index("// Returns the tensor that")
print("...", source[begin:end])

# %% [markdown]
# A C library gets a pointer and a size, but no strides. That is why the code calls `contiguous()`. The contiguous
# copy gets a name, so that the copy lives until zlib has read it (notebook 02d).

# %% [markdown] syllabus="2.10b"
# ### Linking a library of the system
#
# `extra_ldflags=["-lz"]` links `libz.so`. (`zlib.h: No such file or directory` means that the library's headers are
# missing: `sudo apt install zlib1g-dev`, or `conda install zlib`.)

# %%
pack = load("pack", [str(folder / "pack.cpp")], extra_cflags=["-O2"], extra_ldflags=["-lz"])
print(pack.pack.__doc__)

# %% [markdown]
# Does it work? Python has its own zlib, which must be able to read what our extension wrote.

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
# ### The library in `setup.py`, and `setup.py install` (!)
#
# In `setup.py`, the argument is `libraries=["z"]`, without the `-l`. In the past, `python setup.py install` was the
# command to install a package. This command is deprecated, and setuptools says so in its output:

# %%
print((folder / "setup.py").read_text())
write("old_install/setup.py", "from setuptools import setup\nsetup(name='old', py_modules=['old'])\n")
write("old_install/old.py", "")
status, said = run(sys.executable, "setup.py", "install", "--root", "root", folder=BUILD / "old_install")
print(*[line.strip().rpartition(": ")[2] for line in said.splitlines() if "deprecat" in line][:2], sep="\n")

# %% [markdown]
# pip builds and installs the package. With `--no-build-isolation`, the build finds torch. With `--target`, pip
# installs into the folder that you name, and not into the environment. We build a copy, so that the folder of the
# sources stays clean.

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
# ### Linking a library in a folder of its own
#
# A library that you built yourself is in a folder that no compiler searches. Here is the smallest such library,
# and a module that calls it:

# %%
header = write("ruler/include/ruler.h", 'extern "C" double inches(double metres);\n')
library = write("ruler/ruler.cpp", '#include "ruler.h"\ndouble inches(double metres) { return metres / 0.0254; }\n')
(BUILD / "ruler" / "lib").mkdir(exist_ok=True)
command = [torch_compiler()[0], "-shared", "-fPIC", "-Iinclude", "ruler.cpp", "-o", "lib/libruler.so"]
assert run(*command, folder=BUILD / "ruler") == (0, "")
MODULE = """
#include <pybind11/pybind11.h>
#include <ruler.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("inches", &inches); }
"""
module = str(write("ruler/module.cpp", MODULE))

# %% [markdown]
# We make four attempts. Each attempt adds to the arguments of the previous one:

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
# Three programs have to find something, and each program has its own argument for this:
#
# - The compiler needs the headers: `extra_include_paths`.
# - The linker needs the library: `-L` and `-l`. Without these options, there is no error at build time: the linker
#   assumes that another library will define the missing functions when the module is imported. So the error appears
#   only at the import.
# - The *dynamic loader* needs the library each time the module is imported: `-rpath` writes the folder into the
#   module. (`LD_LIBRARY_PATH` works as well, but only in processes in which it is set.)
#
# In `setup.py` these are `include_dirs`, `library_dirs`, `libraries` and `runtime_library_dirs`.
# [docs/build.md](../docs/build.md) describes all options of a build.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/link_a_library`. `make check EX=2/link_a_library` in a terminal creates the files of the
# exercise and checks what you wrote. The cell below checks it here.

# %%
from common.exercises import show

show("2/link_a_library")

# %% [markdown] syllabus="2.3f"
# ## A C++ class
#
# A library often has objects with a state: an encoder, an open file, a running sum. `py::class_` binds such a class,
# so that Python can use it. Here is a class that computes the mean of all rows that were added to it:

# %%
MEANS = """
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/utils/pybind.h>

using at::Tensor;

struct RunningMean {
  explicit RunningMean(int64_t S) : sum(at::zeros({S}, at::kDouble)) {}
  void add(const Tensor& x) {
    sum = sum + x.to(at::kDouble).sum(0, /*keepdim=*/false);
    rows += x.size(0);
  }
  Tensor mean() const { return sum / rows; }
  Tensor sum;  // [S]
  int64_t rows = 0;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean>(m, "RunningMean", py::module_local())
      .def(py::init<int64_t>(), py::arg("S"))
      .def("add", &RunningMean::add, "Adds the rows of x (B, S).", py::arg("x"))
      .def_property_readonly("mean", &RunningMean::mean)
      .def_readonly("rows", &RunningMean::rows)PICKLED;
}
"""
running = load("running_mean", [str(write("running/mean.cpp", MEANS.replace("PICKLED", "")))])
means = running.RunningMean(S=3)
means.add(torch.ones(5, 3))
means.add(x=torch.zeros(1, 3))
print(means.mean, "of", means.rows, "rows")

# %% [markdown]
# `py::init` stands for the constructor with these argument types. `def` binds a method, `def_readonly` binds a
# member, and `def_property_readonly` binds a method without arguments, which Python then reads like a member. The
# Python object owns the C++ object: when the Python object is destroyed, so is the C++ object with its tensors.
#
# With `py::module_local()`, the class belongs to this module alone. Otherwise, only one module in a process can bind
# a class with this C++ name, and the import of a second module (such as the next version below) fails:
# `type "RunningMean" is already registered`.
#
# You will want to copy and save a model that contains such an object. For both, Python needs the state of the
# object:

# %%
import copy

try:
    copy.deepcopy(means)
except TypeError as error:
    print(error)

# %% [markdown]
# `py::pickle` takes two functions: one returns the state of an object as a tuple, and the other makes an object from
# such a tuple. `copy`, `pickle` and `torch.save` all use these two functions.

# %%
PICKLED = """
      .def(py::pickle([](const RunningMean& self) { return py::make_tuple(self.sum, self.rows); },
                      [](const py::tuple& state) {
                        RunningMean self(0);
                        self.sum = state[0].cast<Tensor>();
                        self.rows = state[1].cast<int64_t>();
                        return self;
                      }))"""
running = load("running_mean_2", [str(write("running/mean_2.cpp", MEANS.replace("PICKLED", PICKLED)))])
means = running.RunningMean(3)
means.add(torch.ones(5, 3))
another = copy.deepcopy(means)
another.add(torch.zeros(5, 3))
print("the object:", means.mean.tolist(), "  its copy:", another.mean.tolist())

# %% [markdown]
# Keep *parameters* out of such a class. A `torch.nn.Module` finds its parameters among its own attributes, so a
# tensor inside a C++ object is neither in `parameters()` nor in `state_dict()`, and does not move with `to("cuda")`:

# %%
layer = torch.nn.Linear(2, 2)
layer.means = means
print("parameters:", [name for name, _ in layer.named_parameters()], "  state:", list(layer.state_dict()))

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/bind_a_class`. `show("2/bind_a_class")` in a cell checks it here.

# %% [markdown] syllabus="2.10c"
# ## Arrays of other libraries: DLPack
#
# NumPy, CuPy, JAX and torch all have arrays. *DLPack* is a C struct that describes one: a pointer, a shape, strides,
# a dtype and a device. An array has a method `__dlpack__`, which returns this struct in a capsule (a Python object
# that holds a pointer). Nothing is copied. The next extension does not include any header of torch except that of
# the struct, and adds up the numbers of an array of any library:

# %%
DLPACK = """
#include <ATen/dlpack.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

// The sum of an array with one dimension, any strides, in float32 on the CPU.
double sum(const py::object& array) {
  const py::capsule capsule = array.attr("__dlpack__")();  // owns the memory until the end of this function
  const DLTensor& x = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"))->dl_tensor;
  if (x.device.device_type != kDLCPU || x.dtype.code != kDLFloat || x.dtype.bits != 32 || x.ndim != 1)
    throw py::value_error("sum: expected an array of float32 on the CPU, with one dimension");
  const float* numbers = reinterpret_cast<const float*>(static_cast<char*>(x.data) + x.byte_offset);
  double sum = 0;
  for (int64_t k = 0; k < x.shape[0]; ++k) sum += numbers[k * (x.strides ? x.strides[0] : 1)];
  return sum;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("sum", &sum); }
"""
any_array = load("any_array", [str(write("dlpack/sum.cpp", DLPACK))], extra_cflags=["-O2"])

# %%
import numpy

x = torch.arange(6.0)
for array in (x, x[::2], x.numpy(), x.double(), x.clone().requires_grad_()):
    try:
        print(f"{type(array).__name__:8s}{array.dtype!s:15s}", any_array.sum(array))
    except Exception as error:
        print(f"{type(array).__name__:8s}{array.dtype!s:15s}", f"{type(error).__name__}: {error}")

# %% [markdown]
# torch refuses to hand over what the struct cannot express: a tensor that needs a gradient, or one with a conjugate
# bit. In the other direction, `torch.from_dlpack` makes a tensor of another library's array. Both share the memory:

# %%
array = numpy.zeros(3, dtype=numpy.float32)
torch.from_dlpack(array)[1] = 7
print(array)

# %% [markdown] syllabus="2.10d"
# ### Streams
#
# Suppose that a library has launched a kernel that computes the array, and the kernel has not run yet. Who waits?
# The consumer passes its own stream, `__dlpack__(stream=...)`, and the producer makes that stream wait.
# `torch.from_dlpack` does this. An object that records how its method is called shows it. The object says that it is
# on a GPU, and we replace the current stream, because there may be no GPU here:


# %%
import contextlib


class Recorder:
    """An array that records how it is asked for its memory, and refuses."""

    def __init__(self, device):
        self.device, self.asked = device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.asked.append(keywords)
        raise BufferError("not handed over")


def asked_by(consumer, device):
    """The keywords with which a consumer asks an array on that device, (1, 0) for the CPU, (2, 0) for a GPU."""
    recorder = Recorder(device)
    with contextlib.suppress(BufferError, RuntimeError, TypeError):
        consumer(recorder)
    return recorder.asked[0]


from types import SimpleNamespace
from unittest import mock

with mock.patch("torch.cuda.current_stream", return_value=SimpleNamespace(cuda_stream=4711)):
    print("torch.from_dlpack, a GPU:  ", asked_by(torch.from_dlpack, (2, 0)))
print("torch.from_dlpack, the CPU:", asked_by(torch.from_dlpack, (1, 0)))
print("our extension:             ", asked_by(any_array.sum, (1, 0)))

import inspect

print("torch's default:            stream =", inspect.signature(torch.Tensor.__dlpack__).parameters["stream"].default)

# %% [markdown]
# Our extension passes no stream, and for torch that means -1: no stream waits. This is right for the CPU. If the
# extension launched a kernel, it would have to launch it on torch's current stream, or to pass the stream on which
# it launches: `__dlpack__(stream=s)`, with the address of the stream as a number. A default stream counts as 1.

# %% [markdown] syllabus="2.3g"
# ### nanobind instead of pybind11
#
# nanobind is a younger library for bindings, by the author of pybind11. Its `nb::ndarray` takes an array of any
# library by DLPack, and checks dtype, dimensions and device for you. torch's tools do not know nanobind. It consists
# of headers and one source, which you compile with your own. The next cell downloads it (0.3 MB) if this Python does
# not have it:

# %%
import importlib.util

NANOBIND = """
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

double sum(nb::ndarray<const float, nb::ndim<1>, nb::device::cpu> x) {
  double sum = 0;
  for (size_t k = 0; k < x.shape(0); ++k) sum += x(k);
  return sum;
}

NB_MODULE(by_nanobind, m) { m.def("sum", &sum, nb::arg("x").noconvert()); }
"""


def build_by_nanobind(package, folder):
    """Builds the module in a folder, with the nanobind in the folder `package`; returns it imported."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "by_nanobind.cpp").write_text(NANOBIND)
    library = folder / "by_nanobind.so"
    include = [f"-I{package / part}" for part in ("include", "ext/robin_map/include")]
    flags = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
    sources = ["by_nanobind.cpp", package / "src" / "nb_combined.cpp"]
    if not library.exists():
        status, said = run(*torch_compiler(), *flags, *include, *sources, "-o", library, folder=folder)
        assert status == 0, said
    spec = importlib.util.spec_from_file_location("by_nanobind", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_nanobind():
    """The folder of nanobind: that of this Python, or one into which pip installs it. None without a network."""
    found = importlib.util.find_spec("nanobind")
    if found:
        return Path(found.origin).parent
    place = BUILD / "nanobind_package"
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", place, "nanobind"]
    return place / "nanobind" if (place / "nanobind").exists() or run(*command)[0] == 0 else None


# %%
package = find_nanobind()
if package:
    by_nanobind = build_by_nanobind(package, BUILD / "by_nanobind")
    print("torch:", by_nanobind.sum(x[::2]), "  NumPy:", by_nanobind.sum(x.numpy()))
    for wrong in (x.double(), x.view(2, 3)):
        try:
            by_nanobind.sum(wrong)
        except TypeError as error:
            print(str(error).splitlines()[0], str(error).splitlines()[-1])
    print("nanobind asks with:", asked_by(by_nanobind.sum, (1, 0)))
else:
    print("nanobind is not installed, and there is no network")

# %% [markdown]
# Without `noconvert()`, nanobind would accept the doubles, too: it would convert them, into a copy. It passes no
# stream either, so a kernel belongs on torch's current stream. Use pybind11 with torch's headers if your code calls
# torch's operations. Use nanobind or plain DLPack if it does not: the extension then works with any library, and
# does not have to be built again for another version of torch.

# %% [markdown]
# ## Updating an old extension
#
# Extensions were written like this in 2019. Each piece of this code is still in tutorials, and in the repositories
# of papers.

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
# Today the same function is written like this:

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
# `AT_DISPATCH_FLOATING_TYPES` is a *dispatch macro*: it compiles the code inside once for each dtype, and selects
# the right version by the dtype that it gets. `type()` once returned dtype, device and layout together. Today
# `type()` is deprecated, and the compiler reports an error where a dtype is expected, as here:

# %%
for line in said_of_old:
    if "type()" in line or "ScalarType" in line:
        print(line[:150])

# %% [markdown]
# The replacement here is `x.scalar_type()`. For `x.type().is_cuda()` the replacement is `x.is_cuda()`, and for the
# argument in `at::empty(..., x.type())` the replacement is `x.options()`.

# %% [markdown] syllabus="2.11b"
# ### `data<T>()` (!)
#
# `data<T>()` only causes a warning, once for each dtype of the dispatch macro:

# %%
for line in said_of_old:
    if "data<T>()" in line:
        print(line)

# %% [markdown]
# `data_ptr<T>()` replaces `data<T>()`. `const_data_ptr` and `mutable_data_ptr` are better, because they show whether
# the code writes to the memory. The old function reads the elements of `x` one after the other in memory, whatever
# the strides of `x` are, as many functions of that time do. The new function makes a contiguous copy and gives the
# copy a name.

# %% [markdown] syllabus="2.11c"
# ### `AT_CHECK` and `AT_ASSERT` (!)
#
# `AT_CHECK` has been removed. (The names that the compiler suggests are not replacements: `CHECK` and `DCHECK`
# belong to torch's logging.)

# %%
print(*[line for line in said_of_old if "AT_CHECK" in line], sep="\n")

# %% [markdown]
# `AT_ASSERT` has been deprecated for years, but only in a comment, so it compiles without a warning. Its message
# shows why this macro was never the right check for arguments.

# %%
wrong = torch.ones(2, 2)
for function in (new.assert_dimension, new.internal_assert_dimension, new.twice):
    try:
        function(wrong)
    except RuntimeError as error:
        print(f"{function.__name__}:\n    {str(error).splitlines()[0].replace(str(BUILD), '...')}")

# %% [markdown]
# The first two messages ask the caller to report a bug to PyTorch. `TORCH_INTERNAL_ASSERT` is for conditions that
# are false only if *you*, the author of the extension, made a mistake. `TORCH_CHECK` is for mistakes of the caller:
# its message names the argument, and says what it is and what it should be.

# %% [markdown] syllabus="2.11d"
# ### `torch/torch.h` (!)
#
# This header is the C++ frontend: torch for programs without Python. By itself, the header does not include the
# binding. Old extensions include this header although they need the binding. They still build, because torch's build
# tools add a macro to every compiler command, and with this macro the header includes the binding, too. The next
# cell shows the output of the preprocessor for a binding, without the macro and with the macro:

# %%
MACRO = "-DTORCH_API_INCLUDE_EXTENSION_H"
BINDING = 'PYBIND11_MODULE(example, m) { m.def("same", &same); }'


def preprocessed(*flags):
    text = f"#include <torch/torch.h>\n{BINDING}\n"
    said = run(*torch_compiler(), "-x", "c++", "-E", "-P", *flags, "-", text=text)[1]
    return "... " + " ".join(said.split())[-90:]


print("bare:          ", preprocessed())
print("with the macro:", preprocessed(MACRO))

# %% [markdown]
# Without the macro, `PYBIND11_MODULE` is not defined, and the compiler reads the line as it is written:

# %%
print(*complaints(BINDING), sep="\n")

# %% [markdown]
# If you build with CMake or by hand, the macro is missing. Include the headers that you use: `torch/extension.h`,
# or the narrow headers.

# %% [markdown] syllabus="2.11h"
# ### `-std=c++11` (!)
#
# Many old `setup.py` files contain `extra_compile_args=["-std=c++11"]`. Torch adds the C++ standard that its headers
# need, but only if the arguments do not name a standard. So the old standard is used, and torch's headers do not
# compile:

# %%
said = complaints("#include <ATen/core/Tensor.h>\n", standard="-std=c++11")
print(
    len(said), "errors and warnings, the first of them:\n", said[0].replace(str(Path(torch.__file__).parent), "torch")
)

# %% [markdown]
# Leave out `-std=c++11`.

# %% [markdown] syllabus="2.11e"
# ### `torch.nn.Function` (!)
#
# The class has moved to `torch.autograd.Function`:

# %%
try:

    class Old(torch.nn.Function):
        pass

except AttributeError as error:
    print(error)

# %% [markdown]
# Also, a Function used to be an object that was made for one call and kept its values in `self`. Today, calling such
# an object is an error:


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
# Today the methods are static, `ctx` keeps the values, and `apply` calls the Function. One old name still works,
# with a warning that Python hides by default:


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
# `ctx.saved_tensors` replaces `ctx.saved_variables`: tensors and variables have been one type since torch 0.4.

# %% [markdown] tags=["exercise"]
# **Your turn:** `2/revive_2019` is a whole old extension. Update it so that it works today.
# `show("2/revive_2019")` in a cell checks it here.

# %% [markdown]
# ## In pictures
#
# The chart shows how much zlib compresses tensors like those in training, in bits for each number. Without
# compression, a number takes 32 bits in float32 and 16 bits in bfloat16.

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
# The mantissas (the digits) of random numbers are noise, which cannot be compressed. Zeros take almost no space. At
# level 0, zlib only copies.

# %% [markdown]
# ## Summary
#
# - A library needs three things: its headers, its name for the linker, and a folder in which the dynamic loader
#   finds it.
# - The first line with `error:` says which piece of old code to change. In most cases the replacement is one word.
# - Old code that builds again may still compute wrong results. Test it with strided inputs, and with gradients from
#   `sum()`.
#
# Next: stage 3 writes the kernels.
