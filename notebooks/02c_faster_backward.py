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
# # 02c: a faster backward pass
#
# The C++ code in most tutorials has a *slower* backward pass than the same cell in Python. This notebook finds out
# why, and makes it faster, in the three steps that lead to stage 2. Then autograd's Function and the loop over time
# move to C++, too.
#
# You need notebook 02 and a C++ compiler. The notebook takes about 50 minutes. In the first run, a minute of this is
# spent compiling.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
import os

import matplotlib.pyplot as plt
import torch
from torch.utils.cpp_extension import load_inline

from common import load as load_stage
from common.cell.case import Case, difference, outputs
from common.measure.clock import interleave
from common.workbench import build_folder, remove_locks

build_folder()
remove_locks()
torch.set_num_threads(1)  # the versions differ in the time before the arithmetic, which more threads do not shorten
torch.manual_seed(0)
stage1, stage2 = load_stage(1), load_stage(2)
stage2_folder = root / "stages" / "stage2_aten"
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# ## The plain version
#
# We start from the form of notebook 02, which many tutorials have. Its backward pass computes each derivative from
# the pre-activation z.

# %%
NARROW = """\
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
PLAIN = """
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>

using at::Tensor;

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

Tensor d_sigmoid(const Tensor& z) {
  Tensor s = z.sigmoid();
  return s * (1 - s);
}

Tensor d_tanh(const Tensor& z) { return 1 - z.tanh().square(); }

Tensor d_elu_by_mask(const Tensor& z) {
  return (z > 0).type_as(z) + (z <= 0).type_as(z) * z.exp();
}
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
  Tensor d_bias = d_z.sum(0);
  Tensor d_X = d_z.mm(weights);
  const int64_t S = new_cell.size(1);
  Tensor d_old_h = d_X.narrow(1, 0, S), d_input = d_X.narrow(1, S, X.size(1) - S);
  return {d_input, d_weights, d_bias, d_old_h, d_new_cell};
}
"""
OPTIONS = {"no_implicit_headers": True, "extra_cflags": ["-O2"]}
plain = load_inline("plain_version", NARROW + PLAIN, functions=["forward", "backward"], **OPTIONS)


# %% [markdown]
# ATen's operations have derivatives of their own, so the same forward pass works without a backward function, too.
# This is the version to beat:


# %%
def without_function(*inputs):
    return tuple(plain.forward(*inputs)[:2])


case = Case(B=16, I=32, S=128)
print(difference(case, outputs(without_function, case)) or "agrees with the reference")

# %% [markdown] syllabus="2.8a 2.8c 2.8d 2.8e 2.8f 2.8g"
# ## Why the plain C++ backward pass can be slower than autograd's
#
# In its backward pass, the plain version computes sigmoid, tanh and the exponential again. Autograd keeps the results
# of sigmoid and tanh from the forward pass. The plain version also builds each derivative from several small
# operations. Three steps lead from it to stage 2.
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
    """For each version, the median microseconds and times as fast as the first one, forward and with backward."""
    both = [passes(lltm, case) for lltm in versions.values()]
    columns = [interleave([pair[k] for pair in both], "cpu", 15, 0.02) for k in (0, 1)]
    return {
        name: [(column[k].quartiles()[1], column[0].ratio_to(column[k])) for column in columns]
        for k, name in enumerate(versions)
    }


def print_times(measured):
    print(f"{'':22s}{'forward':>12s}{'':9s}{'forward+backward':>18s}")
    for name, ((forward, forward_speedup), (both, both_speedup)) in measured.items():
        print(f"{name:22s}{forward:9.1f} us{forward_speedup:7.2f} x{both:14.1f} us{both_speedup:7.2f} x")


everything = Case(B=16, I=32, S=128)
parameters = Case(B=16, I=32, S=128, requires_grad=("weights", "bias"))
of_everything, of_parameters = measure(VERSIONS, everything), measure(VERSIONS, parameters)
print("Gradients for all five inputs")
print_times(of_everything)
print("\nGradients for weights and bias only")
print_times(of_parameters)

# %% [markdown]
# Behind each time, you see how many times as fast as eager the version is: above 1, it is faster. Compare the columns
# `forward` and `forward+backward`. The forward passes in C++ are faster, because they avoid the
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
# **Your turn:** `2/fewer_bytes`. `make check EX=2/fewer_bytes` in a terminal creates the files of the exercise and
# checks what you wrote. The cell below checks it here.

# %%
from common.exercises import show

show("2/fewer_bytes")

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
    """For each loop, microseconds per step, forward and backward, and times as fast as the first."""
    arguments, parameters = sequence_inputs(T, *size)
    calls = [lambda loop=loop: torch.autograd.grad(loop(*arguments).sum(), parameters) for loop in LOOPS.values()]
    samples = interleave(calls, "cpu", 9, 0.01)
    return [(sample.quartiles()[1] / T, samples[0].ratio_to(sample)) for sample in samples]


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
# The first chart shows all versions of one step, each compared with eager in the same run. Points to the right of the
# line are faster than eager.

# %%
from common.figures.plots import BLUE, COLOURS, GREEN, ORANGE, PURPLE, SKY, STYLE, VERMILION

plt.rcParams.update(STYLE)
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
    axis.set_xlabel("times as fast as eager")
    axis.set_title(f"B16 I32 S128, gradients for {title}")
axes[0].set_xlim(left=0)  # for both axes; set last, because a limit set earlier would cut off later points
axes[0].plot([], [], "o", color="#555555", markerfacecolor="white", label="forward")
axes[0].plot([], [], "o", color="#555555", label="forward+backward")
axes[0].legend(loc="upper left", frameon=False)
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
axes[0].set_ylabel("times as fast as eager's loop")
axes[0].legend(frameon=False, loc="lower left")
plt.show()

# %% [markdown]
# ## Summary
#
# - Measure C++ without a Function first. A backward pass that repeats the forward pass can be slower than autograd's.
# - Keep activated values instead of pre-activations, use ATen's own derivatives, write all gradients of gates into
#   one tensor, and skip gradients that are not needed.
# - A Function in C++ saves a few microseconds for each call, and a loop in C++ a few for each step.
#
# Next: each step still runs more than a dozen small kernels. Stage 3 combines the elementwise kernels into one kernel
# for each pass. Stage 3 uses raw pointers, which notebook `02d_tensors_in_cpp` explains.
