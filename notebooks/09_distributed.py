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
# # 09: training in many processes
#
# This notebook trains a network with the cells of the earlier stages, first in one process, then in two that average
# their gradients, and then in two that are killed while they train. On a machine with several GPUs, each process has
# a GPU of its own. Here, the processes use the CPU, so a GPU is not necessary. The notebook takes about half an hour.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import subprocess

import torch

from common import load

stage9 = load(9)
torch.set_num_threads(1)

# %% [markdown] syllabus="9.1a"
# ## Handwritten digits as sequences
#
# An image of 8 × 8 pixels is a sequence of 8 rows. The network reads a row a step, and a linear layer computes ten
# scores from the last h. `make_network` takes the cell from a stage: here stage 1's LLTM in Python, then stage 2's in
# C++. Both trainings begin with the same numbers.


# %%
def train(task, cell, stage, steps, every):
    """The history of a training in this process."""
    processes = stage9.Processes(rank=0, world_size=1, local_rank=0, local_world_size=1, timeout=60.0)
    with processes.connected({}):
        samples = stage9.make_task(task, length=20, seed=0, data=None)
        torch.manual_seed(0)
        network = stage9.make_network(samples, cell, stage, 64)
        device = torch.device("cpu")
        training = stage9.Training(samples, network, processes, device, batch_size=64, learning_rate=3e-3, seed=0)
        training.run(steps, every)
    return training.history


in_python = train("rows", "lltm", "1", steps=400, every=100)
in_cpp = train("rows", "lltm", "2", steps=400, every=100)

# %% [markdown]
# The losses agree, because the stages compute the same function: only their rounding and their time differ.

# %% [markdown] syllabus="9.1b"
# ## A task that needs a memory
#
# In the adding problem, each step has a number and a mark, and the target is the sum of the two marked numbers. The
# network must keep the first one until the second one comes. The mean of all sums is 1. A network that always answers
# 1 has a loss of 1/6 = 0.167:

# %%
adding = train("adding", "gru", "nn", steps=600, every=60)

# %% [markdown]
# For some time, the loss is about 0.167: the network has learned only the mean. Then it learns to remember.

# %% [markdown] tags=["exercise"]
# **Your turn:** `9/tasks`. `make check EX=9/tasks` in a terminal gives you the files and checks what you wrote.

# %% [markdown] syllabus="9.2a"
# ## Two processes
#
# `torchrun` starts a program several times, and tells each process its number (its *rank*) in environment variables.
# The network and the seed are the same in all processes. Each takes its share of every batch, and
# `DistributedDataParallel` replaces each gradient by the mean over the processes:

# %%
program = root / "stages" / "stage9_distributed" / "train.py"
torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
options = ["--cell", "lltm", "--stage", "1", "--steps", "200", "--device", "cpu"]
done = subprocess.run([*torchrun, program, *options], capture_output=True, text=True)
print(done.stdout or done.stderr)

# %% [markdown]
# The losses are those of one process with the whole batch (the first two lines above). The next cell compares the
# gradients of one batch of 5 samples, of which one process has 3 and the other 2. Each process says whether they are
# equal, bit for bit, to the sum of the gradients of both shares, and how far they are from those of the whole batch.

# %%
from common.check.distributed import scratch
from common.check.distributed.faults import differences, train_and_kill
from common.check.distributed.launching import launch
from common.check.distributed.workers import gradients
from common.check.distributed.workers import train as train_in_process

with scratch() as folder:
    print(launch(gradients, 2, "lltm", "1", 5, logs=folder))

# %% [markdown]
# They are not equal to those of the whole batch in every bit: one matrix product over five samples adds in another
# order than two products whose results are added. The shares of a batch follow from a seed that all processes share:

# %%
sampler = stage9.Sampler(samples=11, batch_size=4, seed=0)
for step in range(4):
    batch = sampler.batch(step)
    print(step, [stage9.share(batch, rank, world_size=2).tolist() for rank in range(2)])

# %% [markdown]
# Three batches contain every sample once, the last of them with 3 samples. Step 3 begins the next epoch.

# %% [markdown]
# **Your turn:** `9/shares`, `9/average` and `9/metrics`. In a terminal, `make check EX=9/shares` gives you the files
# and checks what you wrote. The next cell runs the check here.

# %%
from common.exercises import show

show("9/shares")

# %% [markdown] syllabus="9.2b"
# ## The device of a launch
#
# With `--device cuda`, process n trains on GPU n. Its *current device*, on which CUDA allocates memory and launches
# kernels, is GPU 0 unless something changes it. So each function that launches a kernel needs a *device guard*, an
# object that makes the tensor's device current until the function ends. The next cell has one launcher without a
# guard, and one that sets a guard and calls the first:

# %%
from common.inline import inline

GUARDS_CU = """
#include <cuda_runtime.h>
#include <cstdint>

__global__ void add_one_kernel(float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) x[k] += 1;
}

void launch_add_one(float* x, int64_t count, cudaStream_t stream) {
  add_one_kernel<<<(count + 255) / 256, 256, 0, stream>>>(x, count);
}
"""
GUARDS_CPP = """
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

using at::Tensor;

void launch_add_one(float* x, int64_t count, cudaStream_t stream);

void without_guard(const Tensor& x) {
  launch_add_one(x.mutable_data_ptr<float>(), x.numel(), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void with_guard(const Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.device());
  without_guard(x);
}
"""
guards = inline("guards", GUARDS_CPP, GUARDS_CU, ["without_guard", "with_guard"], target="emulator")

# %% [markdown]
# The emulator can have several devices. `EMULATOR_DEVICES=2` gives it two, and `EMULATOR_TENSOR_DEVICE` says to which
# of them the memory of the tensors belongs. The current device is 0. The next cell calls both functions, first with a
# tensor of GPU 0, then with one of GPU 1:

# %%
import os

os.environ["EMULATOR_DEVICES"] = "2"
for gpu in ("0", "1"):
    os.environ["EMULATOR_TENSOR_DEVICE"] = gpu
    for add_one in (guards.without_guard, guards.with_guard):
        x = torch.zeros(5)
        print(f"x on GPU {gpu}, {add_one.__name__}:")
        try:
            add_one(x)
            print(x.tolist())
        except RuntimeError as error:
            print(error)
del os.environ["EMULATOR_DEVICES"], os.environ["EMULATOR_TENSOR_DEVICE"]

# %% [markdown]
# On GPU 0, both functions are right, so no test on a machine with one GPU finds the mistake. On GPU 1, the kernel
# without a guard runs on device 0 and accesses memory of device 1. A real GPU reports an illegal memory access, or,
# if it may access the memory of the other GPU, computes the right result over the slow connection between the two.

# %% [markdown]
# **Your turn:** `9/guard`. In a terminal, `make check EX=9/guard STARTER=1` shows what the emulator reports about it.

# %% [markdown] syllabus="9.2c"
# ## Processes that are killed
#
# With `--checkpoint`, the program saves a checkpoint at every evaluation, and continues with the newest one when it
# starts. A checkpoint is written to a folder with another name, synchronised with the disk, and renamed. If a process
# dies, `torchrun --max-restarts 3` starts all of them again. The next cell trains twice: undisturbed, and with three
# kills (signal SIGKILL) at random moments.

# %%
short = ["--steps", "300", "--every", "20", "--timeout", "60"]
with scratch() as folder:
    launch(train_in_process, 2, str(folder / "undisturbed"), short, logs=folder / "logs")
    moments = train_and_kill(folder / "killed", 3, 1, short, longest_life=0.6)
    print(f"{len(moments)} kills:", moments)
    print("different numbers in the last checkpoints:", differences(folder / "killed", folder / "undisturbed"))

# %% [markdown]
# `newest` is the step of the newest checkpoint at the moment of a kill, and `is_writing` says whether another one was
# being written. No weight, no number of the optimizer and no loss differs.

# %% [markdown]
# **Your turn:** `9/atomic`.

# %% [markdown]
# ## The recorded trainings
#
# [Stage 9's README](../stages/stage9_distributed/README.md) describes each fault. This is the record of trainings
# with all cells that run on a CPU:

# %%
from common.studies.distributed import STUDY
from common.studies.distributed.training_chart import plot_training

plot_training(STUDY.read_record("training"))

# %% [markdown] syllabus="9.2d"
# ## Scaling, measured
#
# Are two GPUs twice as fast as one? The question has two meanings. *Weak scaling* gives each GPU the same number of
# samples, so two GPUs have twice the batch. Ideally, a step takes the same time. *Strong scaling* divides the same
# batch among the GPUs. Ideally, a step on two GPUs takes half the time. The *efficiency* is the ideal time divided by
# the measured time. The next cell reads a record from a machine with four GPUs, where a network with four layers of
# stage 7's LLTM was trained. Before anything was timed, the gradients of several GPUs were compared with those of
# one:

# %%
from common.studies.distributed.traces import ideal_step

scaling = STUDY.read_record("scaling")
for row in scaling["gradients"]:
    print(f"gradients of {row['processes']} GPUs: off by {row['difference']:.0e}; bit for bit: {row['equal']}")
for row in scaling["rows"]:
    step, efficiency = row["step"], ideal_step(row, scaling["rows"]) / row["step"]
    print(f"{row['scaling']}, {row['processes']} GPUs, batch {row['batch']}: {step / 1e3:.1f} ms, {efficiency:.1%}")
    print(f"    communication {row['communication'] / step:.1%}, not hidden {row['not_hidden'] / step:.1%}")

# %% [markdown]
# Two GPUs have the sum of the gradients of both shares, bit for bit. Four numbers can be added in several orders, and
# NCCL's is not the order of the processes. So the last bits may differ, here by 6e-16 of the largest gradient.
#
# With weak scaling, the efficiency on four GPUs is 93.3%. With strong scaling, it is 64.7%, so four GPUs are 2.59
# times as fast as one. Communication is the smaller cause: in 2.1% of the step, the GPU exchanges gradients and
# computes nothing. The larger cause is that half the batch takes more than half the time: a GPU takes 20.7 ms for 256
# samples, 12.4 ms for 128, and 8.0 ms for 64. The matrix products take half the time for half the batch, but the
# kernels of the recurrence do not: their 64 steps follow each other, and in each step the blocks wait for the others,
# no matter how few rows they have. The smaller the share of each GPU, the more this matters.

# %%
from common.studies.distributed.scaling_chart import plot_scaling

plot_scaling(scaling)

# %% [markdown]
# The picture on the right shows one step of strong scaling. Backward computes the gradients of the last layer first,
# because the others depend on its results. `DistributedDataParallel` collects gradients in *buckets*. Once all
# gradients of a bucket are computed, NCCL adds those of all processes, in a stream of its own, while backward
# computes the next ones. The first bucket has the gradients of the last LLTM layer and of the linear layer after it.
# With weak scaling, matrix products run at the same time, so this exchange is *hidden*. The second bucket has the
# gradients of the other three layers. It is complete when backward ends, and the optimizer needs them, so almost
# nothing is left that could hide this exchange.
#
# With strong scaling, the first exchange is not hidden, either: nothing runs until it ends, and then the recurrence
# of the next layer starts, within two microseconds. This is a property of persistent kernels. All of their blocks
# must run at the same time, because they wait for each other. As long as NCCL's kernel occupies multiprocessors that
# they need, the GPU does not start them.
#
# Both steps on four GPUs exchange the same number of bytes, but the exchange takes 1.03 ms with weak scaling and
# 0.17 ms with strong scaling. A kernel of NCCL starts when its own process has the gradients, and ends when it has
# received those of the others. So if the processes do not arrive together, the time contains a wait.

# %% [markdown]
# ## Summary
#
# - Each process trains on its share of a batch. The gradients are averaged, so that each sample counts once.
# - Metrics are added over the processes first, and divided afterwards.
# - A launcher without a device guard is right on GPU 0 and wrong on every other GPU.
# - The exchange of gradients costs little as long as backward still computes others, and a persistent kernel does not
#   have to wait for it.
# - A checkpoint is complete or absent, and a resumed run computes the same numbers as an undisturbed one.
#
# Next: `make stage-9` repeats these checks on your machine.
