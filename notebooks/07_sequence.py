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
# # 07: the whole sequence in one call
#
# A recurrent network calls its cell once for each step of a sequence. With stage 6, a sequence of T steps needs
# T calls, and each call launches kernels. In this notebook, one call computes all steps, and on a suitable GPU
# one kernel launch does. You see what a step costs then, how the blocks of a kernel exchange the state, what
# goes wrong if they do it without a barrier, and for which sizes the effort is worth it.
#
# You need notebook 06 and a C++ compiler. A GPU is not necessary: times of a CPU are measured here, and those
# of a GPU are read from a recorded measurement. The notebook takes about an hour. In its first run, it also
# compiles for a few minutes.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import importlib
import os
import statistics
import subprocess
import tempfile

import matplotlib.pyplot as plt
import torch

from common import load
from common.figures.plots import BLUE, STYLE, VERMILION
from common.measure.clock import interleave
from common.paths import ROOT
from common.studies.sequence import STUDY, step_chart
from common.studies.sequence.sweep_chart import by_size, fastest_rung, plot_sweep, rows_of, speedup_over_cudnn

plt.rcParams.update(STYLE)
torch.manual_seed(0)
torch.set_num_threads(1)
stage6, stage7 = load(6, "host"), load(7, "host")
sweep = STUDY.read_record("sweep")
print("torch", torch.__version__, "- recorded results:", sweep["machine"]["gpu"], sweep["date"][:10])

# %% [markdown] syllabus="7.1a 7.1b"
# ## One call for all steps
#
# The input of every step is known from the beginning, and only h depends on the step before. So the part of the
# pre-activations that depends on the inputs is one matrix product for all steps. Only the product with h remains in
# the loop, and this loop is in C++. The next cell compares T calls of stage 6 with one call of stage 7.


# %%
def milliseconds(calls):
    """The time of each call of a dict, taken in turns: the first quartile."""
    samples = interleave(list(calls.values()), "cpu", 7, 0.01)
    return {name: sample.quartiles()[0] / 1e3 for name, sample in zip(calls, samples, strict=True)}


def step_by_step(inputs, weights, bias, h, cell):
    outputs = []
    for step in inputs:
        h, cell = stage6.lltm(step, weights, bias, h, cell)
        outputs.append(h)
    return torch.stack(outputs)


B, I, S = 16, 32, 128
weights, bias = torch.randn(3 * S, S + I) / S**0.5, torch.randn(3 * S)
h0, cell0 = torch.zeros(B, S), torch.zeros(B, S)
STEPS, TIMES = (8, 32, 128), []
with torch.no_grad():
    for T in STEPS:
        arguments = torch.randn(T, B, I), weights, bias, h0, cell0
        torch.testing.assert_close(
            stage7.lltm_sequence(*arguments)[0], step_by_step(*arguments), rtol=1e-4, atol=1e-4
        )
        TIMES.append(
            milliseconds(
                {
                    "stage 6, T calls": lambda a=arguments: step_by_step(*a),
                    "stage 7, one call": lambda a=arguments: stage7.lltm_sequence(*a),
                }
            )
        )
        print(f"T={T:4d}", *(f"{name}: {time:6.2f} ms" for name, time in TIMES[-1].items()), sep="   ")

# %%
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name, colour in (("stage 6, T calls", VERMILION), ("stage 7, one call", BLUE)):
    axis.loglog(STEPS, [times[name] for times in TIMES], "o-", color=colour, label=name)
axis.set_xticks(STEPS, [str(T) for T in STEPS], minor=False)
axis.set(xlabel="steps T", ylabel="milliseconds", title=f"LLTM on this CPU, one thread, B{B} I{I} S{S}")
axis.minorticks_off()
axis.legend(frameon=False)
plt.show()

# %% [markdown] syllabus="7.1c 7.1d"
# ## The rungs
#
# A *rung* is one implementation of the loop over steps. On a CPU there is one, `cpu`. On a GPU there are four, and
# each removes a cost of the one before. These words describe them:
#
# | word | meaning |
# |---|---|
# | multiprocessor | one of the processors of a GPU (an H200 has 132); a block runs on one of them until it ends |
# | global memory | the large memory of the GPU, which all blocks can access |
# | on chip | in the registers and the shared memory of a multiprocessor: fast, small, gone when the kernel ends |
# | persistent kernel | a kernel that is launched once for all steps, so that what it has on chip stays there |
# | barrier | a point in the code where blocks wait until all of them have reached it |
# | cluster | up to 16 blocks that run at the same time and can access each other's shared memory |
#
# NVIDIA's Hopper GPUs (compute capability 9.0), such as the H200, were the first with clusters. On an H200, a block
# can use 227 KB of shared memory.
#
# **`loop`** launches two kernels in each step: a matrix product and a pointwise kernel. The CPU has to launch them in
# time, and each product loads the weights from memory again.
#
# **`graph`** records these launches once, in a CUDA graph. Then one call starts all of them, and the GPU does not
# wait for the CPU between steps. The weights are still loaded in each step.
#
# **`grid`** is a persistent kernel. Each block computes some units of the state, and keeps the weights of these units
# on chip for all steps. Between two steps, the blocks exchange h through global memory: each one writes its units,
# waits at a barrier, and reads the units of all others.
#
# **`cluster`** is a persistent kernel, too, but its blocks form a cluster. A block writes its units of h directly
# into the shared memory of the other blocks, so the exchange does not use global memory. It works only if the weights
# fit into 16 blocks.
#
# `explain` says which rung the library chooses, and why:

# %%
for cell, T, B, S in (("lltm", 128, 16, 128), ("lstm", 128, 64, 512), ("gru", 1024, 16, 768)):
    print(f"{cell} T{T} B{B} S{S}, CPU: {stage7.explain(cell, T, B, S)}")

# %% [markdown]
# This is what a step cost on the recorded GPU, for the forward pass of an LSTM in bfloat16. The time of the call is
# divided by T, so it contains the product for the inputs, too.


# %%
def recorded(T, B, S, which="forward"):
    """The recorded microseconds of each implementation at one size."""
    return {
        row["name"]: row["median"]
        for row in rows_of(sweep)
        if (row["T"], row["B"], row["S"], row["pass"]) == (T, B, S, which)
    }


for B in (8, 32, 128):
    print(f"{sweep['machine']['gpu']}, T128 B{B} S512, us for one step")
    for name, time in recorded(128, B, 512).items():
        print(f"   {name:18s}{time / 128:6.2f}")

# %% [markdown]
# Some sizes cannot run on a rung. The record contains the reason, which is the text of the error:

# %%
print(
    next(entry["reason"] for entry in sweep["not_run"] if "cluster" in entry["what"] or "cluster" in entry["reason"])
)

# %% [markdown]
# ## Who computes which units
#
# In both persistent kernels, each block computes one slice of the units. It needs only the rows of the weights that
# belong to its units, and these stay on chip. But it needs all of h. So in each step, each block sends its slice of
# the new h to all blocks. The picture shows 4 blocks.

# %%
step_chart.plot_exchange()

# %% [markdown]
# The next picture shows where the time of a step goes. The product, the exchange and the barriers were measured
# separately (`common/studies/sequence/step_limits.cu`). What is left of the step is the pointwise part: each thread
# adds the parts of its sums, loads the input parts, computes the gates, and stores what backward needs.
#
# The exchange in `cluster` uses *asynchronous* stores (the instruction `st.async`): the thread that stores does not
# wait until the data has arrived. In each step, a block stores 512 bytes into each of 16 blocks. The receiving block
# knows how many bytes it has to get in a step, and the GPU counts the bytes as they arrive. When the count is
# complete, the block begins the next step. So this rung needs no barrier between steps.

# %%
step_chart.plot_step(sweep, STUDY.read_record("limits"))

# %% [markdown]
# **Your turn:** `7/slices`. In a terminal, `make check EX=7/slices` gives you the files and checks what you wrote.
# The next cell runs the check here.

# %%
from common.exercises import show

show("7/slices")

# %% [markdown]
# ## A missing barrier, and a wrong parity (!)
#
# A block must not overwrite h while another block still reads it. So there are two arrays for h: a step reads from
# one and writes to the other, and the *parity* of the step, `step % 2`, says which is which. At the end of a step,
# all blocks of the grid wait at a barrier. The program below has the two arrays and the barrier. With the macro
# `WRONG_PARITY` it uses only one array, and with `NO_BARRIER` it does not wait.

# %%
PROGRAM = r"""
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>

__global__ void steps_kernel(int* h, int n) {
  const auto grid = cooperative_groups::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; ++step) {
#ifdef WRONG_PARITY
    const int from = n, to = n;
#else
    const int from = step % 2 * n, to = (step + 1) % 2 * n;
#endif
    const int other = h[from + (i + 32) % n];
    h[to + i] = other + 1;
#ifndef NO_BARRIER
    grid.sync();
#endif
  }
}

int main() {
  int n = 128, result[256];
  int* h;
  cudaMalloc(&h, sizeof result);
  cudaMemset(h, 0, sizeof result);
  void* arguments[] = {&h, &n};
  cudaLaunchCooperativeKernel((const void*)steps_kernel, dim3(4), dim3(32), arguments, 0, nullptr);
  cudaDeviceSynchronize();
  cudaMemcpy(result, h, sizeof result, cudaMemcpyDeviceToHost);
  printf("h[0] after 3 steps: %d\n", result[n]);
  cudaFree(h);
}
"""


def run_emulator(folder, *words, **settings):
    """Builds and runs a program with the emulator: the words are those of `cuemu run`."""
    command = [sys.executable, "-m", "common.emulator", "run", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def emulate(program, *macros):
    """What the emulator prints for a program with these macros."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "steps.cu").write_text(program)
        done = run_emulator(folder, *(f"-D{macro}" for macro in macros), "steps.cu")
        return done.stdout + done.stderr


print(emulate(PROGRAM))

# %%
print(emulate(PROGRAM, "NO_BARRIER"))

# %%
print(emulate(PROGRAM, "WRONG_PARITY"))

# %% [markdown]
# The result of a race depends on which block is first, so on a GPU the number can change from run to run, and it can
# be right. The emulator reports the race whatever the number is.

# %% [markdown]
# **Your turn:** `7/parity` and `7/barrier`.

# %% [markdown] syllabus="7.2a 7.2c"
# ## Three cells from one kernel
#
# `csrc/cells.h` has a small struct for each cell, a *policy*: its number of gates, and forward and backward of
# one unit. Everything else is the same source. The LSTM and the GRU take the weights of torch's modules, so you
# can compare their values and gradients with those of `torch.nn.LSTM` and `torch.nn.GRU`:


# %%
def compare_modules(theirs, ours, T=20, B=5):
    """The largest difference between two recurrent modules with the same weights: outputs and all gradients."""
    ours.load_state_dict(theirs.state_dict())
    like = theirs.weight_hh_l0
    inputs = torch.randn(T, B, theirs.input_size, dtype=like.dtype, device=like.device)
    upstream = torch.randn(T, B, theirs.hidden_size, dtype=like.dtype, device=like.device)
    results = []
    for module in (theirs, ours):
        x = inputs.clone().requires_grad_()
        outputs, _ = module(x)
        results.append([outputs, *torch.autograd.grad(outputs, [x, *module.parameters()], upstream)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    return max((a - b).abs().max().item() for a, b in zip(*results, strict=True))


I, S = 7, 24
for theirs, ours in ((torch.nn.LSTM, stage7.FastLSTM), (torch.nn.GRU, stage7.FastGRU)):
    print(f"{ours.__name__}: the largest difference is {compare_modules(theirs(I, S), ours(I, S)):.1e}")

# %% [markdown]
# **Your turn:** `7/peephole`. You write the policy of a cell that torch does not have.

# %% [markdown] syllabus="7.2b"
# ### Equal to cuDNN
#
# On a GPU, `torch.nn.LSTM` and `torch.nn.GRU` call cuDNN. If you have a GPU, the next cell compares the modules
# there, in float64, with the same function as before.

# %%
if torch.cuda.is_available():
    like = {"dtype": torch.float64, "device": "cuda"}
    on_gpu = load(7, "cuda")
    for theirs, ours in ((torch.nn.LSTM, on_gpu.FastLSTM), (torch.nn.GRU, on_gpu.FastGRU)):
        difference = compare_modules(theirs(I, S, **like), ours(I, S, **like))
        print(f"{ours.__name__} and cuDNN: the largest difference is {difference:.1e}")
else:
    print("no GPU here")

# %% [markdown]
# The recorded measurement also compares values. Before and after an implementation is timed, its outputs and
# gradients are compared with those of a loop in float64, and an implementation that is wrong is not timed. So at
# each of these sizes, the results of cuDNN and of stage 7 agreed with the loop, as closely as bfloat16 allows:

# %%
timed = [{row["name"] for row in group} for group in by_size(rows_of(sweep))]
print(f"cuDNN and stage 7 at {sum({'cuDNN LSTM', 'stage 7'} <= names for names in timed)} sizes and passes")

# %% [markdown] syllabus="7.2d"
# ### The gradient of the weights
#
# Backward goes through the steps from the last to the first and computes `d_z`, the gradients of the
# pre-activations. The gradient of the recurrent weights is the sum over all steps of `d_z[t].T @ h[t-1]`. With
# all steps and rows in one dimension, this sum is one matrix product. If the inputs have as many numbers as
# there are pre-activations, and their weights are the identity, then the gradient of the inputs is `d_z`:

# %%
T, B, S = 20, 5, 24
identity = torch.eye(4 * S)
weight_hh = (torch.randn(4 * S, S) / S**0.5).requires_grad_()
x = torch.randn(T, B, 4 * S, requires_grad=True)
start = torch.zeros(B, S)
outputs, _ = stage7.lstm_sequence(x, identity, weight_hh, None, None, start, start)
d_z, d_weights = torch.autograd.grad(outputs, [x, weight_hh], torch.randn_like(outputs))
h_before = torch.cat([start[None], outputs[:-1]]).detach()
one_product = d_z.flatten(0, 1).T @ h_before.flatten(0, 1)
torch.testing.assert_close(one_product, d_weights, rtol=1e-4, atol=1e-4)
print(f"one product of {tuple(d_z.flatten(0, 1).T.shape)} and {tuple(h_before.flatten(0, 1).shape)}: equal")

# %% [markdown]
# ### Second derivatives
#
# The cells of the earlier stages raise an error for second derivatives. `FastLSTM` and `FastGRU` replace modules of
# torch whose second derivatives are right on a CPU, so theirs have to be right, too. This takes two steps:
#
# - Backward computes with z and the cells of all steps. If they were saved intermediate results, they would be
#   constants for autograd (notebook 00b). So the autograd function returns them as further results, and its backward
#   also adds the gradients that arrive for them. Callers of the stage do not see these results.
# - Autograd cannot record a kernel. If the caller sets `create_graph=True`, grad mode is on in backward. Then
#   `csrc/operators/differentiable.cpp` computes the gradient in torch's own operations, which autograd records. It
#   uses the same policies of `cells.h`, with a type of numbers that holds a tensor.
#
# This backward takes longer than the kernels. Without `create_graph=True`, backward runs the kernels as before. The
# next cell compares the gradients of a loss with a gradient penalty, and a derivative in
# forward mode, with those of torch's modules:


# %%
def penalised_gradients(module, inputs):
    """The gradients for all parameters of a loss that contains the gradient for the inputs."""
    outputs, _ = module(inputs)
    value = outputs.square().sum()
    (first,) = torch.autograd.grad(value, inputs, create_graph=True)
    return torch.autograd.grad(value + first.square().sum(), list(module.parameters()))


def tangent(module, inputs):
    """The derivative of the outputs along a direction, in forward mode."""
    return torch.func.jvp(lambda x: module(x)[0], (inputs.detach(),), (inputs.detach().cos(),))[1]


I, S = 7, 24
inputs = torch.randn(10, 3, I, dtype=torch.float64, requires_grad=True)
for theirs, ours in ((torch.nn.LSTM, stage7.FastLSTM), (torch.nn.GRU, stage7.FastGRU)):
    theirs, ours = theirs(I, S, dtype=torch.float64), ours(I, S, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    for derivative in (penalised_gradients, tangent):
        torch.testing.assert_close(derivative(ours, inputs), derivative(theirs, inputs), rtol=1e-10, atol=1e-10)
    print(f"{type(ours).__name__}: second derivatives and forward mode agree with {type(theirs).__name__}")

# %% [markdown]
# ### Rows of different lengths
#
# With `lengths`, each row of the batch takes only its own number of steps, and then keeps its state while the other
# rows continue. So the state after the last step is the last state of every row, and a row has the same results as in
# a batch of its own:

# %%
lengths = torch.tensor([20, 3, 11, 20, 7])
with torch.no_grad():
    outputs, (h, _) = stage7.lstm_sequence(x, identity, weight_hh, None, None, start, start, lengths=lengths)
    for row, steps in enumerate(lengths):
        alone = x[:steps, row : row + 1], identity, weight_hh, None, None, start[:1], start[:1]
        torch.testing.assert_close(h[row], stage7.lstm_sequence(*alone)[1][0][0])
print("each row ends with the state that it has alone; row 1 after step 3 and after step 20:")
print(outputs[2, 1, :3], outputs[19, 1, :3])

# %% [markdown]
# ### Backward between blocks
#
# In forward, each block sends its units to all blocks. In backward, a block has `d_z` of its own units and multiplies
# it by its own rows of the weights. The result is a part of the gradient of *all* units of h, and the parts of all
# blocks must be added. Each block needs only the sums of its own units. This exchange is a *reduce-scatter*.

# %%
blocks = 4
rows_of_block = torch.arange(4 * S).view(4, blocks, S // blocks).transpose(0, 1).flatten(1)  # [blocks,4*S/blocks]
step = d_z[10]  # [B,4*S]
with torch.no_grad():
    parts = torch.stack([step[:, rows] @ weight_hh[rows] for rows in rows_of_block])  # [blocks,B,S]
    in_order, reverse = parts[0] + parts[1] + parts[2] + parts[3], parts[3] + parts[2] + parts[1] + parts[0]
    torch.testing.assert_close(in_order, step @ weight_hh)
print(f"the sum of {blocks} parts is the gradient of h")
print(f"added in the other order, {(in_order != reverse).sum()} of {in_order.numel()} numbers have other bits")

# %% [markdown]
# With atomics, the order is that of arrival, and the last bits of a gradient can change from run to run. The kernels
# of this stage add the parts in a fixed order, so they return the same bits in every run.

# %% [markdown]
# **Your turn:** `7/lengths` and `7/reduce_scatter`.

# %% [markdown]
# ## Train with FastLSTM
#
# `example_fast_lstm.py` trains a small network twice, from the same weights and data: with `torch.nn.LSTM`,
# then with `FastLSTM`. One line differs.

# %%
train = importlib.import_module(f"{stage7.__name__}.example_fast_lstm").train

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for lstm_class, colour, style in ((torch.nn.LSTM, VERMILION, "-"), (stage7.FastLSTM, BLUE, "--")):
    losses, seconds = train(lstm_class, updates=60)
    axis.plot(losses, style, color=colour, label=f"{lstm_class.__name__}, {seconds:.1f} s")
    print(f"{lstm_class.__name__:10s} last loss {losses[-1]:.6f}, {seconds:.1f} s")
axis.set(xlabel="update", ylabel="loss", yscale="log")
axis.legend(frameon=False)
plt.show()

# %% [markdown] syllabus="7.3a"
# ## When it is faster, and when not
#
# The chart compares stage 7 with cuDNN's LSTM on the recorded GPU, for combinations of T, B and S. The number in a
# square says how many times as fast as cuDNN the stage is, and the colour says which implementation was fastest.

# %%
plot_sweep(sweep)

# %%
groups = by_size(rows_of(sweep))
speedups = [(speedup, group) for group in groups if (speedup := speedup_over_cudnn(group)) is not None]
speedups.sort(key=lambda pair: pair[0])
print(f"faster than cuDNN at {sum(speedup > 1 for speedup, _ in speedups)} of {len(speedups)} sizes and passes")
for speedup, group in [*speedups[:4], *speedups[-2:]]:
    row = group[0]
    print(
        f"   T{row['T']} B{row['B']} S{row['S']} {row['pass']}: {speedup:.2f} times as fast; "
        f"fastest: {fastest_rung(group)['name']}"
    )

# %% [markdown]
# The gain is largest for many steps, where the launch counts least, and smallest for the largest batch and the
# largest state. The weights of 1024 units do not fit into the shared memory of the 16 blocks of a cluster, as the
# error above says. The blocks of the whole GPU can hold them, so the library chooses `grid` there. But `graph` is
# faster than `grid` at a batch of 128. The library never chooses `graph` by itself: you must name it.

# %% [markdown] syllabus="7.3b"
# ### The GRU, and float32
#
# The GRU was measured, too, and the LSTM in float32, all with 128 steps. In IEEE float32, cuDNN's LSTM misses the
# bound of the check at some sizes. These are not timed and have no number in the chart.

# %%
plot_sweep(sweep, "gru")

# %%
plot_sweep(sweep, "lstm", "float32", "TF32")

# %%
plot_sweep(sweep, "lstm", "float32", "IEEE")

# %%
for kind in (
    ("lstm", "bfloat16", "IEEE"),
    ("gru", "bfloat16", "IEEE"),
    ("lstm", "float32", "TF32"),
    ("lstm", "float32", "IEEE"),
):
    found = [
        speedup for group in by_size(rows_of(sweep, *kind)) if (speedup := speedup_over_cudnn(group)) is not None
    ]
    print(
        f"{' '.join(kind):18s} {statistics.median(found):.1f} times as fast as cuDNN at the median of "
        f"{len(found)} sizes and passes, {min(found):.2f} to {max(found):.1f}"
    )

# %% [markdown]
# Stage 7 is slower in two places. For 64 units in float32, cuDNN has a persistent kernel of its own, which takes down
# to half our time in forward. And with a batch of 128 and 1024 units, a step is mostly a matrix product: cuDNN uses a
# faster one.

# %% [markdown] syllabus="7.3c"
# ### GPUs with 100 KB of shared memory
#
# On the recorded GPU, a block can use 227 KB of shared memory. GPUs of compute capability 8.6, 8.9 and 12.0 have
# 100 KB per multiprocessor, and a block can use 99 KB of them. Those before 9.0 have no clusters either. The
# registers are the same, and a persistent kernel keeps weights in them, too: nvcc gives a thread of the kernels for
# bfloat16 246 to 255 registers, so one block takes all registers of a multiprocessor.
#
# `plans.cu` prints what the library chooses on a device. It runs on the emulator, which can have the limits of
# another device. Such a choice is not a measurement: this stage has not been measured on a GPU with 100 KB.

# %%
LARGE = "multiProcessorCount=132 maxBlocksPerMultiProcessor=1"
SMALL = (
    "multiProcessorCount=84 maxBlocksPerMultiProcessor=1 "
    "sharedMemPerBlockOptin=101376 sharedMemPerMultiprocessor=102400 clusterLaunch=0"
)


def plans(device, batch):
    """Where an LSTM in bfloat16 runs on this device, by state size."""
    persistent = ROOT / "stages" / "stage7_sequence" / "csrc" / "persistent"
    source = ROOT / "common" / "studies" / "sequence" / "plans.cu"
    return run_emulator(ROOT, "-I", persistent, source, "--", batch, EMULATOR_DEVICE=device).stdout


print("227 KB for a block, clusters, 132 multiprocessors\n", plans(LARGE, 16), sep="")
print("99 KB for a block, no clusters, 84 multiprocessors\n", plans(SMALL, 16), sep="")

# %% [markdown]
# Up to 1024 units, the weights stay on chip on both. Without clusters, the blocks exchange the state through global
# memory, and a barrier of the grid costs more than one of a cluster (see the picture of a step above). Larger states
# need `loop` on the smaller GPU, which loads the weights again in each step.

# %% [markdown]
# **Your turn:** `7/cluster_size` and `7/step_time`.

# %% [markdown]
# ## Summary
#
# - Compute what does not depend on h in one product for all steps. Move the loop out of Python.
# - A persistent kernel keeps the weights on chip. A step then costs its exchange, its barrier and its pointwise part.
# - Two arrays and a barrier keep steps apart. The emulator reports a race if either is wrong.
# - With the cell as a policy, the same kernels compute LLTM, LSTM and GRU.
#
# Next: `make stage-7` checks the stage and measures it on your machine.
