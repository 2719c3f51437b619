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
# Every stage computes the same cell. Here is what each costs: on this machine, and beside it on the machines whose
# measurements are recorded in `docs/results/`. The rows are whatever stages there are; a new stage appears by itself.

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
# Those without a command are not here yet.

# %%
Markdown(ladder.stages_table(here / "compare.ipynb"))

# %% [markdown]
# ## The measurement
#
# What `make bench` or `make tour` has measured here last is used. When there is nothing yet, the stages are measured
# now: that takes a minute or two, and nothing else should run meanwhile.

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
# A row that was measured with other sources than those in `stages/` now is stale: it says what that code was worth,
# and nothing about this one. And what could not run is named, never left out in silence.

# %%
for one in [result, *recorded]:
    stale = {row["name"] for row in one["rows"] if sources.is_stale(row, one)}
    print(f"{one['name']}: stale: {', '.join(sorted(stale)) or 'nothing'}")
    for entry in one["not_run"]:
        print(f"  not run: {entry['name']}, {entry['what']} ({entry['device'].upper()} tensors): {entry['reason']}")

# %% [markdown]
# ## Time, by stage and size
#
# `eager` is stage 1 without its checks of the arguments, and what everything is measured against. All of them took
# turns in one run, and each was held against the float64 reference before and after.

# %%
for device in devices:
    display(plots.plot_times(result, device))

# %% [markdown]
# Solid is forward, hatched is what backward adds, the whiskers are the quartiles. Compare the panels' scales first:
# the smallest size is all about the cost of calling, the largest about arithmetic. Where whiskers overlap, there is
# no difference to talk about.

# %%
for device in devices:
    for grads in unique(select(result, device=device), "grads"):
        display(Markdown(ladder.device_ladder(result, device, grads)))

# %% [markdown]
# In brackets: the multiple of eager's time in the same run, so that below one is faster.

# %% [markdown]
# ## Speed-up against eager

# %%
for device in devices:
    display(plots.plot_speedups(result, device))

# %% [markdown]
# Right of the grey line is faster than eager, left of it is slower. Look at how a stage that gains much on the left
# panel gains less on the right one: it removes calls, and large sizes do not spend their time on calls. Backward has
# more calls to remove than forward.

# %% [markdown]
# ## What is slower than a peer
#
# A peer is what one gets without writing any of this: eager PyTorch, and `torch.compile`. Differences below 3 %
# count as none.

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
# The bold parts are the losses, with the multiple of the peer's time in brackets. Stage 1 is eager and a check of the
# arguments: what it loses is what the check costs.

# %% [markdown]
# ## Memory saved for backward

# %%
for device in devices:
    display(plots.plot_saved_bytes(result, device))

# %% [markdown]
# Between forward and backward these bytes are occupied, once for every step of a sequence: at a hundred steps, a
# hundred times. Inputs, weights and outputs are not counted, because the caller holds them anyway.

# %% [markdown]
# ## The pointwise kernels alone

# %%
kernels = [figure for one in [result, *recorded] if (figure := plots.plot_kernels(one))]
for figure in kernels:
    display(figure)
if not kernels:
    print("Not measured here, and not recorded yet: `make bench` on a machine with a GPU measures them.")

# %% [markdown]
# A kernel that only moves numbers can be as fast as a copy of as many bytes, or a little faster if it reads more than
# it writes. What is missing to 100 % is what a better kernel could still gain without moving fewer bytes; whoever
# moves fewer beats even that line.

# %% [markdown]
# ## Stages that only the emulator runs here
#
# Its times mean nothing, so none are taken. What GPUs have recorded stands in for them.

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
# A build is paid for once and then found in the cache; `torch.compile` pays at the first call of every fresh process,
# less when its own cache has seen the code. The seconds after each edit decide how often one tries something.

# %% [markdown]
# ## This machine beside the recorded ones

# %%
plots.plot_machines([result, *recorded], size=unique(result["rows"])[0])

# %% [markdown]
# Times of different machines say little about the code; ratios to eager in the same run say more. Where the panels
# differ, the code is the same and the machine is not: a gain on one is a promise on another, to be measured.

# %%
for one in recorded:
    for device in unique(one["rows"], "device"):
        display(plots.plot_ladder(one, device))
if not recorded:
    print("No other machine is recorded yet: docs/results/README.md says how to add yours.")

# %% [markdown]
# Each mark is a size. The further left the marks of a stage, the more it gains; marks that spread widely belong to a
# stage whose gain depends on the size, and one that straddles the grey line must be chosen with the size in mind.
