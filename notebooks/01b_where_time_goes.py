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
# # 01b: where the time of a step goes
#
# The cell of notebook 01 is right. How fast is it? In this notebook you measure how long a step of the cell takes,
# and how much of this time each part of the step needs. The results are the reason for every later stage.
#
# You need notebook 01, and for the last part a C++ compiler. The notebook takes about 30 minutes.

# %%
import os
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(root / "build" / "inductor"))  # for torch.compile below

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from common import load
from common.cell.case import Case, difference, outputs

torch.manual_seed(0)
lltm = load(1).equations  # the six lines of notebook 01
print("torch", torch.__version__, "on Python", sys.version.split()[0])

# %% [markdown]
# ## How to measure time
#
# Several mistakes lead to wrong times. The next sections show each mistake, and what to do instead. Unless a section
# uses the GPU, this notebook measures with CPU tensors and one thread, because the times vary less then, and a small
# cell has no work for more threads. (The notebook `compare` uses all threads, and the GPU.)

# %%
import time

torch.set_num_threads(1)
SMALL, LARGE = (16, 32, 128), (64, 1024, 128)  # B, I, S


def microseconds(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


# %% [markdown] syllabus="1.3a"
# ### The first calls are slower
#
# This cell starts a new Python process, and times its first five steps:

# %%
import subprocess

script = """
import time, torch
from common import load
from common.cell.case import Case
torch.set_num_threads(1)
lltm, arguments = load(1).equations, Case(16, 32, 128).inputs().values()
for call in range(1, 6):
    start = time.perf_counter()
    lltm(*arguments)
    print(f"call {call}: {(time.perf_counter() - start) * 1e6:6.0f} us")
"""
print(subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True).stdout)

# %% [markdown]
# The first call includes work that happens only once: code is read from disk, libraries initialise themselves, and
# memory is allocated from the system. The first call is many times slower than the fifth call. If you time only one
# call, you measure the first call. So **make a few calls before you start the clock.**

# %% [markdown] syllabus="1.3b"
# ### A GPU call returns before the GPU has finished
#
# A GPU takes its work from a queue. A call of an operation on CUDA tensors only *puts work in this queue* and
# returns. Python continues while the GPU is busy. If you stop the clock at this moment, you have measured only the
# time to put the work in the queue.
#
# If this machine has a GPU, the next cells use it. Otherwise they use a substitute that is like a GPU in one respect
# only: a worker thread takes jobs from a queue, in order. To wait until the queue is empty, the code adds one more
# job at the end of the queue and waits for that job.

# %%
from concurrent.futures import ThreadPoolExecutor

on_gpu = torch.cuda.is_available()
worker = ThreadPoolExecutor(max_workers=1)


def launch(job):
    job() if on_gpu else worker.submit(job)


def synchronize():
    torch.cuda.synchronize() if on_gpu else worker.submit(lambda: None).result()


print("on", torch.cuda.get_device_name() if on_gpu else "the stand-in: no GPU here")

# %%
big = Case(4096, 1024, 1024, device="cuda") if on_gpu else Case(256, 512, 512)
big = tuple(big.inputs().values())


def step():
    launch(lambda: lltm(*big))


for _ in range(3):  # warm up
    step()
synchronize()

# %%
print(f"wrong: no synchronisation  {microseconds(step):8.0f} us")
print(f"the next synchronisation   {microseconds(synchronize):8.0f} us")
print(f"right: call, then wait     {microseconds(lambda: (step(), synchronize())):8.0f} us")

# %% [markdown]
# The wrong time is far too short. The rest of the time is not lost: it is added to the next call that waits for the
# GPU, often a `print(loss)` that then looks slow. So **synchronise before each reading of the clock**, or let the
# GPU itself record the time, with CUDA events.
#
# On an NVIDIA H200 with torch 2.11 the cell above printed
#
#     wrong: no synchronisation       113 us
#     the next synchronisation       1025 us
#     right: call, then wait         1156 us

# %% [markdown] syllabus="1.3c"
# ### Report the median
#
# Here 500 calls are timed one by one, on a machine that also does other work. To make sure that there is such a
# disturbance, every 50th call is delayed by 3 milliseconds, as another program might delay it:

# %%
small = tuple(Case(*SMALL).inputs().values())


def disturbed(call):
    lltm(*small)
    if call % 50 == 0:
        time.sleep(0.003)


for _ in range(10):
    lltm(*small)
calls = torch.tensor([microseconds(lambda call=call: disturbed(call)) for call in range(1, 501)])

# %%
q1, median, q3 = calls.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
print(f"fastest {calls.min():.0f} us, slowest {calls.max():.0f} us")
print(f"mean    {calls.mean():.0f} us")
print(f"median  {median:.0f} us, quartiles {q1:.0f} and {q3:.0f} us")

# %%
plt.hist(calls, bins=torch.logspace(calls.min().log10(), calls.max().log10(), 80))
plt.xscale("log")
plt.axvline(median, color="black", label=f"median: {median:.0f} us")
plt.axvline(calls.mean(), color="black", linestyle="--", label=f"mean: {calls.mean():.0f} us")
plt.title("The same call, 500 times")
plt.xlabel("microseconds")
plt.ylabel("calls")
plt.legend()
plt.show()

# %% [markdown]
# A disturbance never makes a call faster, so all disturbances change the time in one direction. Ten delayed calls in
# 500 increase the mean by 60 microseconds, but they hardly change the median. A single run may be in any of the bars
# of the histogram. So **report the median, with quartiles to show how reliable it is.**

# %% [markdown] syllabus="1.3d"
# ### Small and large sizes behave differently
#
# `torch.utils.benchmark` does all of this: it warms up, synchronises on a GPU, repeats, and reports the median and
# the spread (IQR, the interquartile range, is the distance between the quartiles). It uses one thread unless you set
# another number. In all other code, PyTorch uses every core by default. When you publish a time, say how many
# threads you used.

# %%
from torch.utils.benchmark import Timer

Timer("lltm(*small)", globals={"lltm": lltm, "small": small}).blocked_autorange(min_run_time=2)

# %% [markdown]
# If you compare two calls, there is one more rule: the calls should **take turns**. Otherwise the call that runs
# while the machine is busy looks slower. The workbook's function `interleave` makes the calls alternately: in each
# round, it times both calls. For CPU tensors, it uses the class `Timer` of `torch.utils.benchmark`, as the cell
# above does. `ratio_to` divides the two times of each round, and returns the median of these ratios. So the ratio
# can differ a little from the quotient of the two medians.

# %%
from common.measure.clock import interleave


def take_turns(*calls):
    """Samples of each call, in microseconds, taken in rounds; the first is the one to compare with."""
    return interleave(calls, "cpu", rounds=15, block_seconds=0.015)


def both_passes(cell, arguments, gradients):
    return torch.autograd.grad(cell(*arguments), arguments, gradients)


# %% [markdown]
# How much of a step's time do the matrix products take? Forward has one matrix product, and backward has two more.


# %%
def matrix_products(arguments, backward):
    """A call that makes the matrix products of a step and nothing else."""
    input, weights, bias, old_h, _ = (tensor.detach() for tensor in arguments)
    X, d_z = torch.cat([old_h, input], dim=1), torch.randn(input.size(0), weights.size(0))

    def products():
        F.linear(X, weights, bias)
        if backward:
            d_z @ weights, d_z.T @ X

    return products


# %%
def passes(cell, size, device="cpu"):
    """The two calls to time, by name."""
    case = Case(*size, device=device)
    arguments, gradients = tuple(case.inputs().values()), case.gradients()
    return {
        "forward": lambda: cell(*arguments),
        "forward+backward": lambda: both_passes(cell, arguments, gradients),
    }


def name_of(size):
    return "B{} I{} S{}".format(*size)


# %%
products = {}
for size in (SMALL, LARGE):
    arguments = tuple(Case(*size).inputs().values())
    for name, call in passes(lltm, size).items():
        step, alone = take_turns(call, matrix_products(arguments, name != "forward"))
        products[size, name] = alone.ratio_to(step)
        q1, median, q3 = step.quartiles()
        print(f"{name_of(size):14} {name:16} {median:6.0f} us ({q1:.0f} to {q3:.0f}),", end=" ")
        print(f"matrix products {products[size, name]:4.0%} of this")

# %% [markdown]
# The large step does nearly 30 times the arithmetic, but takes far less than 30 times as long: most of the time of
# the small step is not arithmetic. The large step spends most of its time on matrix products, so a faster
# implementation of the rest will not gain much. We use these two sizes until the end of the notebook.

# %% [markdown] tags=["exercise"]
# **Your turn:** `1/honest_clock`. `make check EX=1/honest_clock` in a terminal creates the files of the exercise and
# checks what you wrote. The cell below checks it here.

# %%
from common.exercises import show

show("1/honest_clock")

# %% [markdown] syllabus="1.4a"
# ## Where the time goes
#
# The profiler records every operation of ATen, torch's library in C++, that PyTorch calls, and every kernel (a
# program for the GPU) that a GPU runs. The next code cells profile one step:

# %%
from torch.profiler import ProfilerActivity, profile

os.environ["KINETO_LOG_LEVEL"] = "6"  # hides the messages of the profiler itself
activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu


def profiled(call):
    """The ATen operations that `call()` makes on the CPU, in order, and the kernels that it starts on the GPU."""
    call()  # warm up
    with profile(activities=activities, acc_events=True) as profiler:
        call()
    events = profiler.events()
    operations = [event for event in events if event.name.startswith("aten::")]
    return operations, [event for event in events if event.device_type.name == "CUDA"]


# %%
counts = {name: profiled(call)[0] for name, call in passes(lltm, SMALL).items()}
for name, events in counts.items():
    print(f"{name:16} {len(events)} ATen calls")
ours = [event.name.removeprefix("aten::") for event in counts["forward"] if event.cpu_parent is None]
print(f"{len(ours)} of them are ours:", ", ".join(ours))

# %% [markdown]
# The equations consist of ten operations, and these operations call others: `linear` transposes, expands and
# multiplies, and `chunk` splits and makes three views. Each of these calls goes through PyTorch's dispatcher, which
# selects the code for the device and the dtype, and most calls need memory for a result.

# %%
if on_gpu:
    both = passes(lltm, SMALL, "cuda")["forward+backward"]
    _, kernels = profiled(both)
    busy = sum(kernel.device_time for kernel in kernels)
    (step,) = interleave([both], "cuda", rounds=15, block_seconds=0.015)
    print(f"{len(kernels)} kernels and copies keep the GPU busy for {busy:.0f} us", end=" ")
    print(f"of the {step.quartiles()[1]:.0f} us that the step takes")
else:
    print("no GPU here")

# %% [markdown]
# On an NVIDIA H200 with torch 2.11 this cell printed
#
#     23 kernels and copies keep the GPU busy for 83 us of the 540 us that the step takes
#
# So during most of a small step, the GPU waits for the CPU. The time of such a step depends mostly on the CPU and on
# what else it does: the tables in the README come from another run on an H200, with a shorter time for the same
# step.

# %% [markdown]
# How much time does each kind of operation take? These times include the profiler's own work, so compare the
# proportions and not the sums.

# %%
KINDS = {
    "matrix products": "addmm mm",
    "pointwise": "sigmoid tanh elu mul add sigmoid_backward tanh_backward elu_backward",
}


def by_kind(events):
    """Microseconds for each kind of operation. An operation's time does not include the operations that it calls."""
    total = dict.fromkeys([*KINDS, "views, copies, memory, sums"], 0.0)
    for event in events:
        name = event.name.removeprefix("aten::")
        kind = next((kind for kind, names in KINDS.items() if name in names.split()), "views, copies, memory, sums")
        total[kind] += event.self_cpu_time_total
    return total


# %%
def draw_shares(shares, title):
    """One bar for each row, from left to right the share of each kind."""
    plt.figure(figsize=(8, 0.6 + 0.45 * len(shares)))
    left = [0.0] * len(shares)
    for kind in next(iter(shares.values())):
        widths = [row[kind] / sum(row.values()) for row in shares.values()]
        plt.barh(list(shares), widths, left=left, label=kind)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    plt.gca().invert_yaxis()
    plt.title(title)
    plt.xlabel("share of the time")
    plt.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


# %%
shares = {}
for size in (SMALL, LARGE):
    both = passes(lltm, size)["forward+backward"]
    shares[name_of(size)] = by_kind(profiled(lambda both=both: [both() for _ in range(50)])[0])
draw_shares(shares, "Inside the operations of a step, forward and backward")

# %% [markdown]
# At the small size, a good part of the time is spent on views, copies and memory allocation, which compute nothing.
# At the large size, the matrix products leave little time for the rest.

# %% [markdown] syllabus="1.4b"
# ### The overhead of a step
#
# Overhead is the time that a step needs in addition to its arithmetic. The profiler records operations, but not the
# Python code between them. A simple measurement gives the whole overhead: how long does a step take if there is
# *nothing to compute*? With B = I = S = 1, the step makes all the calls, and there is almost no arithmetic.

# %%
overhead = {}
for size in (SMALL, LARGE):
    for name, call in passes(lltm, size).items():
        step, nothing = take_turns(call, passes(lltm, (1, 1, 1))[name])
        overhead[size, name] = nothing.ratio_to(step)
        print(f"{name_of(size):14} {name:16} {step.quartiles()[1]:6.0f} us,", end=" ")
        print(f"with nothing to compute {nothing.quartiles()[1]:4.0f} us")

# %%
shares = {}
for (size, name), share in overhead.items():
    arithmetic = products[size, name]
    shares[f"{name_of(size)}  {name}"] = {
        "overhead: Python, dispatch, autograd": share,
        "matrix products": arithmetic,
        "all other arithmetic": max(0, 1 - share - arithmetic),  # two measurements: their sum is not exact
    }
draw_shares(shares, "What a step is made of")

# %% [markdown]
# At the small size, overhead is about half of the time of forward, and more than half of the time of forward and
# backward together. The calls from Python and PyTorch's dispatcher take about the same time at every size, so they
# matter less when there is more to compute. C++ and fused kernels can reduce this overhead: C++ makes each call
# cheaper, and a fused kernel replaces several calls by one. Neither makes the arithmetic itself faster.

# %% [markdown] syllabus="1.4d"
# ### A timeline
#
# Sums do not show *when* something ran. The profiler also stores the beginning and the duration of each operation,
# and `export_chrome_trace` writes all of them into a file. Open it in a browser, at ui.perfetto.dev or in
# `chrome://tracing`. The file is JSON, so a few lines can draw it, too. `record_function` adds a span of your own,
# with a name of your choice:

# %%
import json

from torch.profiler import record_function


def timeline(call, path):
    """Writes the trace of one call to a file; returns the outermost operations of torch and the span of the call."""
    call()  # warm up
    with profile(activities=activities, acc_events=True) as profiler, record_function("one step"):
        call()
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    (whole,) = (event for event in events if event.get("cat") == "user_annotation" and event["name"] == "one step")
    outermost, end = [], 0.0
    for event in sorted((event for event in events if event.get("cat") == "cpu_op"), key=lambda event: event["ts"]):
        if event["ts"] >= end:
            outermost.append(event)
            end = event["ts"] + event["dur"]
    return outermost, whole


path = root / "build" / "notebooks" / "step.json"
path.parent.mkdir(parents=True, exist_ok=True)
figure, panels = plt.subplots(2, 1, figsize=(10, 2.4), layout="constrained")
for axes, size in zip(panels, (SMALL, LARGE), strict=True):
    operations, whole = timeline(passes(lltm, size)["forward"], path)
    axes.broken_barh([(event["ts"] - whole["ts"], event["dur"]) for event in operations], (0, 1))
    inside = sum(event["dur"] for event in operations) / whole["dur"]
    axes.set(
        title=f"{name_of(size)}, forward: {inside:.0%} of the time inside operations",
        yticks=[],
        xlim=(0, whole["dur"]),
    )
panels[-1].set_xlabel("microseconds")
plt.show()

# %% [markdown]
# The gaps between the bars are Python, and the profiler's own work. On a GPU, the trace also has a row for each
# stream, and you see whether the kernels follow one another or wait for the CPU.
#
# NVIDIA's Nsight Systems records the same for a whole program, with calls of the CUDA runtime and of libraries.
# These two commands record it and print a summary (they need a GPU, and were not run here):
#
#     nsys profile --trace=cuda,nvtx,osrt --output=step python train.py
#     nsys stats step.nsys-rep
#
# `torch.cuda.nvtx.range("one step")` is a context that adds a span of your own there, and
# `torch.autograd.profiler.emit_nvtx()` adds one for each operation.

# %% [markdown] tags=["exercise"]
# **Your turn:** `1/count_calls`. `show("1/count_calls")` in a cell checks it here.

# %% [markdown] syllabus="1.4c"
# ## What `torch.compile` gains without any C++
#
# Before you write C++, find out what PyTorch can do alone. `torch.compile` traces the function: it reads the code
# and records the operations. Then it combines the pointwise operations into generated kernels, and calls a compiler
# for these kernels. The first call takes up to half a minute when nothing is cached, so wait for it. (The cache is
# in the workbook's `build/` folder, so a second run of this notebook is quicker.)

# %%
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no worker processes during measurements
compiled = torch.compile(lltm, dynamic=False)
both = passes(compiled, SMALL)["forward+backward"]
print(f"first call  {microseconds(both) / 1e6:10.6f} s")
print(f"second call {microseconds(both) / 1e6:10.6f} s")

# %% [markdown]
# If a compiled call is faster than a call of the original function (without compilation, which PyTorch calls
# *eager*), divide the time of the first call by the time that you gain with each later call. The quotient is the
# number of calls after which the compilation has paid off. But first check the results of the compiled function,
# because the time of a wrong result means nothing:

# %%
for size in (SMALL, LARGE):
    print(name_of(size), difference(Case(*size), outputs(compiled, Case(*size))) or "agrees with the reference")

# %%
for name, call in passes(compiled, SMALL).items():
    events = profiled(call)[0]
    print(f"{name:16} {len(events)} ATen calls (eager: {len(counts[name])})", end=" ")
    print("from", ", ".join(sorted({event.name.removeprefix("aten::") for event in events})))

# %% [markdown]
# Sigmoid, tanh, elu, pointwise products and sums are no longer in the list, because generated kernels compute them.
# The matrix products remain, and also a few calls that compute nothing. On a GPU, you can count the kernels:

# %%
if on_gpu:
    _, kernels = profiled(passes(compiled, SMALL, "cuda")["forward+backward"])
    print(f"{len(kernels)} kernels and copies, forward and backward")
else:
    print("no GPU here")

# %% [markdown]
# On an NVIDIA H200 with torch 2.11 the compiled cell runs 8 kernels and copies, and the eager cell runs 23. (torch
# warns there that TF32 would be faster. TF32 rounds the factors of a matrix product to fewer bits, so the results
# would be less precise. We do not use it, because the comparison would not be fair.) Is the compiled cell faster?

# %%
from lltm_stage1 import by_hand  # `load(1)` has imported stage 1's folder as this package

cells = {"eager": lltm, "by hand": by_hand.lltm, "torch.compile": compiled}
measured = {}
for size in (SMALL, LARGE):
    for name in ("forward", "forward+backward"):
        samples = take_turns(*(passes(cell, size)[name] for cell in cells.values()))
        measured[size, name] = dict(zip(cells, samples, strict=True))

# %%
for (size, name), samples in measured.items():
    eager = samples["eager"]
    row = [f"{cell} {taken.quartiles()[1]:.0f} us ({eager.ratio_to(taken):.2f})" for cell, taken in samples.items()]
    print(f"{name_of(size):14} {name:16} ", ", ".join(row))

# %%
figure, panels = plt.subplots(1, 2, figsize=(11, 4))
for axes, size in zip(panels, (SMALL, LARGE), strict=True):
    for k, cell in enumerate(cells):
        q1, median, q3 = torch.tensor([measured[size, name][cell].quartiles() for name in passes(lltm, size)]).T
        whiskers = torch.stack([median - q1, q3 - median]).numpy()
        axes.bar([0.27 * k, 0.27 * k + 1], median, width=0.25, yerr=whiskers, capsize=3, label=cell)
    axes.set_xticks([0.27, 1.27], ["forward", "forward+backward"])
    axes.set_title(name_of(size))
    axes.set_ylabel("microseconds")
    axes.legend()
plt.show()

# %% [markdown]
# The number in parentheses says how many times as fast as eager the cell is: if it is above 1, the cell is faster.
# Look at the numbers of your machine. `torch.compile` removes operations. But before each call, it checks
# whether the shapes and types are still those for which it compiled, and this check takes time. So at a small size,
# it may lose as much time as it gains. If the matrix products take most of the time, there is little left to gain.
#
# The gradient by hand of notebook 01 is not faster than eager. It consists of about the same operations, but now
# Python also calls those of backward. (Speed was not the aim.) Stage 2 calls the operations from C++, and from stage
# 3 on, your own kernels replace the pointwise operations.
#
# ## Summary
#
# - You can measure times that you can trust, and you have two sizes: at the small size, overhead takes most of the
#   time, and at the large size, matrix products do.
# - You know the reason for the next stages: at small sizes, half of the time of a step or more is overhead, the cost
#   of the calls, and not arithmetic.
#
# Next: notebook `02_aten` makes these calls from C++.
