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
# # Stages side by side
#
# Every stage computes the same cell. This notebook shows how much time each stage takes, on this machine and on the
# machines whose measurements are recorded in `docs/results/`. The tables and charts show every stage that exists: if
# you add a stage, it appears here without further changes.

# %%
# %matplotlib inline
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
from IPython.display import Markdown, display

from common import stages
from common.figures import plots
from common.measure import bench
from common.pages.tables import ladder
from common.results import formatting, records, sources
from common.results.rows import device_name, select, unique

# %% [markdown]
# ## The stages
#
# Stages without a command do not exist yet.

# %%
Markdown(ladder.stages_table(here / "compare.ipynb"))

# %% [markdown]
# ## The measurement
#
# This notebook uses the last measurement of `make bench` or `make tour` on this machine. If there is none, the next
# cell measures the stages. That takes a minute or two, and no other program should run meanwhile.

# %%
if records.read_measured() is None:
    bench.measure_for_tour(stages.cell_stages())
result = records.read_measured()
recorded = records.read_recorded()
devices = unique(result["rows"], "device")

# %%
for one in [result, *recorded]:
    hardware = {device_name(one, device): None for device in unique(one["rows"], "device")}
    kind = "two sizes, fewer rounds" if one["quick"] else "full"
    print(f"{one['name']}: {' and '.join(hardware)}, torch {one['versions']['torch']}, {one['date'][:10]}, {kind}")
if not recorded:
    print("No other machine is recorded yet.")

# %% [markdown]
# A row is stale if it was measured with sources that differ from those in `stages/` now. Such a row describes the
# old code, not the current code. The list also names every implementation that could not run, with the reason.

# %%
for one in [result, *recorded]:
    stale = {row["name"] for row in one["rows"] if sources.is_stale(row, one)}
    print(f"{one['name']}: stale: {', '.join(sorted(stale)) or 'nothing'}")
    for entry in one["not_run"]:
        print(f"  not run: {entry['name']}, {entry['what']} ({entry['device'].upper()} tensors): {entry['reason']}")

# %% [markdown]
# ## Time, by stage and size
#
# `eager` is stage 1 without its checks of the arguments. All other times are compared with the time of `eager`. In
# one run, all implementations were measured in turns, and each was checked against the float64 reference before and
# after.

# %%
for device in devices:
    display(plots.plot_times(result, device))

# %% [markdown]
# The solid part of a bar is forward, the hatched part is what backward adds, and the whiskers are the quartiles.
# Compare the scales of the panels first: at the smallest size, most of the time is the cost of calls, and at the
# largest, it is arithmetic. Where whiskers overlap, the measurement shows no difference.

# %%
for device in devices:
    for grads in unique(select(result, device=device), "grads"):
        display(Markdown(ladder.device_ladder(result, device, grads)))

# %% [markdown]
# The numbers in brackets say how many times as fast as eager in the same run an implementation is, so a number
# above one means faster than eager. Compare a stage with the strongest peer, too: at small sizes on a GPU, this is
# eager or `torch.compile` under a CUDA graph, which replays all launches of a call at once.

# %% [markdown]
# ## Speed-up against eager

# %%
for device in devices:
    display(plots.plot_speedups(result, device))

# %% [markdown]
# A mark to the right of the grey line means faster than eager, and a mark to the left means slower. A stage mainly
# removes calls, and at large sizes the calls take only a small part of the time. So a stage that gains much in the
# left panel (a small size) gains less in the right panel (a large size). Backward has more calls to remove than
# forward.

# %% [markdown]
# ## Where a stage is slower than PyTorch without an extension
#
# A *peer* is an implementation for which you do not write an extension: eager PyTorch, `torch.compile`, Triton, or
# one of the first two under a CUDA graph. Differences below 3 % are not counted.

# %%
for one in [result, *recorded]:
    for device in unique(one["rows"], "device"):
        rows = select(one, device=device)
        lines = [f"{formatting.describe_origin(one, rows)} ({one['name']})"]
        for stage in stages.cell_stages():
            mine = [row for row in rows if row["stage"] == stage.number]
            if mine:
                summary = ladder.summarise_comparison(stage, one, rows)
                lines += ["", f"Stage {stage.number}, {stage.title}:", "", summary]
        display(Markdown("\n".join(lines)))

# %% [markdown]
# The bold parts say in how many cases the stage is slower, how slow at worst, and, in brackets, at which sizes.
# Stage 1 is eager with a check of the arguments, so the cases in which stage 1 is slower show what the check costs.

# %% [markdown]
# ## Memory stored for backward

# %%
for device in devices:
    display(plots.plot_saved_bytes(result, device))

# %% [markdown]
# These bytes are occupied between forward and backward, once for every step of a sequence. For a hundred steps,
# there are a hundred times as many bytes. Inputs, weights and outputs are not counted, because the caller holds them
# anyway.

# %% [markdown]
# ## The pointwise kernels alone

# %%
kernels = [figure for one in [result, *recorded] if (figure := plots.plot_kernels(one))]
for figure in kernels:
    display(figure)
if not kernels:
    print("Not measured here, and not recorded yet: `make bench` on a machine with a GPU measures them.")

# %% [markdown]
# The chart shows the speed of each kernel in percent of the speed of a copy. A kernel that only moves numbers can
# reach 100 %, or a little more if it reads more than it writes. The difference to 100 % is what a better kernel
# could still gain without moving fewer bytes. A kernel that moves fewer bytes can gain more than that.

# %% [markdown]
# ## Stages that only the emulator runs here
#
# The times of the emulator say nothing about a GPU, so they are not measured. The times that were recorded on GPUs
# are shown instead.

# %%
for stage in stages.cell_stages():
    if bench.is_only_emulated(stage) and "cuda" not in devices:
        print(formatting.format_recorded_times(stage), "\n")

# %% [markdown]
# ## Time to build

# %%
builds = plots.plot_build_seconds([result, *recorded])
builds or "No stage with anything to build has been measured yet."

# %% [markdown]
# An extension is built once and then found in the cache. `torch.compile` compiles at the first call in every new
# process, and takes less time if its own cache already contains the code. The build time after an edit matters
# during development, because you wait for it after each change.

# %% [markdown]
# ## This machine compared with the recorded machines

# %%
plots.plot_machines([result, *recorded], size=unique(result["rows"])[0])

# %% [markdown]
# Times of different machines say little about the code. Ratios to eager in the same run say more. Where the panels
# differ, the code is the same and the machine is different. So a gain on one machine has to be measured again on
# another.

# %%
for one in recorded:
    for device in unique(one["rows"], "device"):
        display(plots.plot_ladder(one, device))
if not recorded:
    print("No other machine is recorded yet: docs/results/README.md says how to add yours.")

# %% [markdown]
# Each mark is one size. The further right the marks of a stage are, the more the stage gains. Marks that are spread
# widely belong to a stage whose gain depends on the size. If the marks of a stage lie on both sides of the grey
# line, choose the stage only for the sizes at which it is faster.
