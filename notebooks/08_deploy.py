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
# # 08: deployment without Python
#
# A trained model often has to run where there is no Python: in a C++ service, on a machine that must start fast, or
# in a small image. This notebook exports a classifier that contains stage 7's operator, compiles it into a package,
# and runs the package in `lltm_serve`, a C++ program of stage 8. Everything runs on the CPU. The notebook takes
# about 40 minutes, of which the first build takes two.

# %%
import sys
from pathlib import Path

here = Path.cwd()
root = next(f for f in [here, *here.parents] if (f / "stages").is_dir() and (f / "common").is_dir())
sys.path.insert(0, str(root))

# %%
# %matplotlib inline
import json
import subprocess
import tempfile
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import torch

from common import deploy

# %% [markdown]
# ## The model
#
# The model of [`model.py`](../stages/stage8_deploy/model.py) reads one of scikit-learn's handwritten digits row by
# row: a linear layer makes features of each row, the LLTM reads them, and another linear layer computes ten scores
# from the last `h`. The sequences of a batch may have different lengths. `h` and `cell` before the first step are
# arguments, and those after the last step are results, so a sequence can be continued later.
#
# The next cell trains the model and writes the package, unless that has been done before.

# %%
deployed = deploy.build_package()
model = deployed.model
train, export = deploy.stage_module("train"), deploy.stage_module("export")
print(f"accuracy on the test images: {train.measure_accuracy(model):.1%}")
print(model)

# %% [markdown] syllabus="8.1b"
# ## Export
#
# `torch.export.export` calls the model once with example arguments, and records the operations as a graph. It calls
# stage 7's operator by its name. The fake kernel of the operator says which shapes it returns, so no step of the
# sequence is computed here.

# %%
example = export.example_inputs(model)
program = torch.export.export(model, example, dynamic_shapes=export.dynamic_shapes())
print("example:", [tuple(one.shape) for one in example])
for node in program.graph.nodes:
    if node.op == "call_function":
        print(node.target)

# %% [markdown]
# `dynamic_shapes` names the sizes that may differ from those of the example: the batch and the length. Every other
# size becomes a constant. The next function exports the model with other examples, and compares the results of the
# exported program with those of the model, for another batch, another length, and a random state.


# %%
def export_and_compare(model, example, dynamic_shapes):
    """What happens when the model is exported with an example, and then called with 4 sequences of up to 6 steps."""
    steps, lengths = torch.rand(4, 6, 8), torch.tensor([6, 1, 3, 5])
    arguments = steps, lengths, torch.randn(4, 64), torch.randn(4, 64)
    try:
        program = torch.export.export(model, example, dynamic_shapes=dynamic_shapes)
    except Exception as error:
        return f"no program: {str(error).splitlines()[1].strip(' -')}"
    try:
        results = program.module()(*arguments)
    except Exception as error:
        return f"the program refuses the call: {error}"
    with torch.no_grad():
        difference = max((one - other).abs().max() for one, other in zip(results, model(*arguments), strict=True))
    return "the results agree" if difference < 1e-5 else f"the results differ by up to {difference:.1f}"


shapes, (steps, lengths, h, cell) = export.dynamic_shapes(), example
examples = {
    "right": ((steps, lengths, h, cell), shapes),
    "no dynamic shapes": ((steps, lengths, h, cell), None),
    "a batch of one": ((steps[:1], lengths[:1], h[:1], cell[:1]), shapes),
    "one tensor twice": ((steps, lengths, h, h), shapes),
}
for name, arguments in examples.items():
    print(f"{name}:\n    {export_and_compare(model, *arguments)}")

# %% [markdown]
# - Without dynamic shapes, all sizes are constants.
# - A size of 1 (or 0) in the example is a constant even if it is declared dynamic. With `Dim`, this is an error.
#   With `Dim.AUTO` it would not be one.
# - If the example contains one tensor twice, the program reads one of the two arguments for both. The example has
#   the right shapes, there is no error, and the results are wrong. Two states of zeros are an easy way to make this
#   mistake.

# %% [markdown]
# **Your turn:** `8/dynamic`. In a terminal, `make check EX=8/dynamic` gives you the files and checks what you wrote.
# The next cell runs the check here.

# %%
from common.exercises import show

show("8/dynamic")

# %% [markdown] syllabus="8.1b"
# ## The package
#
# AOTInductor compiles the graph of the exported program to C++ and then to a shared library, which also contains the
# weights, and writes it into a zip file. Python can load this file, too. The package calls the operator by its name,
# like the exported program, so the library that registers it must be loaded first. Here, `deployed.model` has done
# this.

# %%
with zipfile.ZipFile(deployed.path) as archive:
    for file in archive.infolist():
        if file.file_size > 1000:
            print(f"{file.file_size:9,} bytes  {Path(file.filename).suffixes[-2:]}")
    metadata = next(name for name in archive.namelist() if name.endswith("wrapper_metadata.json"))
    print(json.loads(archive.read(metadata)))
print("beside it:", [path.name for path in sorted(deployed.path.parent.iterdir())])

# %%
package = torch._inductor.aoti_load_package(str(deployed.path))
arguments = torch.rand(5, 9, 8), torch.tensor([9, 1, 4, 7, 2]), torch.randn(5, 64), torch.randn(5, 64)
with torch.no_grad():
    for name, one, other in zip(("scores", "h", "cell"), package(*arguments), model(*arguments), strict=True):
        print(f"{name}: {tuple(one.shape)}, largest difference {(one - other).abs().max():.0e}")

# %% [markdown]
# The exported program checks the sizes of its arguments. The package does not. The next cell calls both with 9
# features instead of 8:


# %%
def call_with_features(call, count):
    """What a program does with a number of features."""
    try:
        scores, _, _ = call(torch.rand(2, 4, count), torch.tensor([4, 4]), torch.zeros(2, 64), torch.zeros(2, 64))
    except Exception as error:
        return f"refused: {error}"
    return f"scores {scores[0, :3].tolist()}"


print("exported program:", call_with_features(program.module(), 9))
print("package:", call_with_features(package, 9))

# %% [markdown]
# These scores mean nothing. With 7 features, the package would read past the end of its input. So a program must
# check every input before it calls the model. The metadata contains the sizes that `lltm_serve` needs for this, and
# the versions of the format and of torch.
#
# The package does not notice either that a byte of its weights has changed. So `SHA256SUMS` lies beside it, and
# `lltm_serve` compares the checksum of each file before it loads the file.

# %% [markdown] syllabus="8.1a"
# ## A program without Python
#
# `lltm_serve` is built by CMake against the C++ libraries inside the torch package. This is the part of
# [`CMakeLists.txt`](../stages/stage8_deploy/CMakeLists.txt) that links them:

# %%
lists = (root / "stages" / "stage8_deploy" / "CMakeLists.txt").read_text().splitlines()
print("\n".join(line for line in lists if "TORCH" in line or "--no-as-needed" in line))

# %%
try:
    lltm_serve = deploy.build_program()
except deploy.MissingPackage as missing:
    lltm_serve = None
    print(f"The cells below that run lltm_serve are skipped. {missing}")

# %% [markdown]
# `ldd` lists the libraries that the dynamic loader finds for a program. We show the names of those that have to do
# with torch or Python:

# %%
if lltm_serve:
    listed = subprocess.run(["ldd", lltm_serve], capture_output=True, text=True).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    print("torch: ", *(name for name in names if "torch" in name or "c10" in name))
    print("Python:", *(name for name in names if "python" in name), "(none)" * ("python" not in "".join(names)))
    print(len(names), "libraries in all")

# %% [markdown]
# None of them belongs to Python. The program does not call anything in `libtorch.so`, so the linker would be allowed
# to drop this library; `--no-as-needed` keeps it, because the compiled model needs it. If your torch supports CUDA,
# its libraries are loaded, too, because `libtorch.so` needs them. For a small image, use the CPU build of torch.
#
# The operators' library, `lltm_operators.so`, is the file that Python imports for stage 7. It calls Python in only
# one function, `PyInit__C`, and the program loads it with `dlopen(..., RTLD_LAZY)`, which looks up a function when
# it is first called.

# %% [markdown]
# **Your turn:** `8/link`.

# %% [markdown] syllabus="8.1c"
# ## A file of sequences
#
# `lltm_serve run` reads sequences from a file, one JSON object per line, and writes the predictions. It runs with an
# empty environment here, without `PATH`, so it cannot find a Python:

# %%
_, _, images, labels = train.load_data()
if lltm_serve:
    with tempfile.TemporaryDirectory() as folder:
        lines, output = Path(folder, "sequences.jsonl"), Path(folder, "predictions.jsonl")
        lines.write_text("".join(deploy.json_line(image) for image in images))
        done = deploy.run_program(lltm_serve, "run", deployed.path, lines, output)
        predictions = [json.loads(line) for line in output.read_text().splitlines()]
    print("status", done.returncode, done.stderr)
    print(lines.name, "->", json.dumps(predictions[0])[:70], "...")
    right = sum(one["label"] == label for one, label in zip(predictions, labels.tolist(), strict=True))
    print(f"{right} of {len(labels)} labels are right: {right / len(labels):.1%}")

# %% [markdown]
# The share of right labels is that of the model in Python.

# %% [markdown] syllabus="8.1c"
# ## A server
#
# `lltm_serve serve` answers HTTP requests. `deploy.Server` starts it on a free port and stops it at the end of the
# `with` block:

# %%
if lltm_serve:
    with deploy.Server(lltm_serve, deployed.path) as server:
        print("GET /health: ", *server.get("/health"))
        print("POST /predict:", *server.post({"steps": images[0].tolist()}))

# %% [markdown]
# One call of the model for many sequences takes less time than a call for each. So while the model computes a batch,
# the requests that arrive wait in a queue, and they are the next batch. With `--max-delay-ms`, a batch also waits
# for more requests after its first one. Here, 16 clients send four requests each. `GET /metrics` counts the calls of
# the model:

# %%
sequences = [images[k][: 1 + k % 8].tolist() for k in range(64)]  # 1 to 8 rows
if lltm_serve:
    for delay in (0, 20):
        with (
            deploy.Server(lltm_serve, deployed.path, max_delay_ms=delay) as server,
            ThreadPoolExecutor(16) as clients,
        ):
            answers = list(clients.map(lambda steps: server.post({"steps": steps}), sequences))
            calls = server.metric("lltm_batch_size_count")
        print(f"max_delay_ms={delay}: {len(answers)} requests, {calls:.0f} calls of the model")

# %% [markdown]
# The sequences of a batch have different lengths. The server pads them to the longest, and passes the lengths. Stage
# 7's operator keeps the state of a row past its length, so a result does not depend on the batch that it was
# computed in:

# %%
if lltm_serve:
    alone = [
        model(torch.tensor(steps)[None], torch.tensor([len(steps)]), *model.first_state(1))[0][0]
        for steps in sequences
    ]
    together = torch.tensor([answer["scores"] for _, answer in answers])
    print(f"largest difference from each sequence alone: {(together - torch.stack(alone)).abs().max():.0e}")

# %% [markdown]
# The queue has a limit. A queue without one grows when requests arrive faster than the model computes, and every
# client waits longer than the one before. A full queue refuses at once, with status 503, and the client can try
# again later.
#
# When the server stops, it finishes what it has accepted. A balancer asks `GET /ready` whether to send more requests:
# after SIGTERM the answer is 503, while `GET /health` still says that the process is alive. `--drain-ms` is the time
# for which the server then works as before, so that the balancer can notice this.

# %% [markdown]
# **Your turn:** `8/batch` and `8/queue`.

# %% [markdown] syllabus="8.1c"
# ## Step by step
#
# With `"stream"`, the server keeps `h` and `cell` between requests, so a sequence can arrive in parts. Here, a digit
# arrives row by row, and the server says after each row which digit it is most likely:

# %%
if lltm_serve:
    image, guesses = images[205], []
    with deploy.Server(lltm_serve, deployed.path) as server:
        for k, row in enumerate(image.tolist()):
            _, answer = server.post({"steps": [row], "stream": "camera", "start": k == 0, "end": k == 7})
            guesses.append(answer["label"])
    whole = model(image[None], torch.tensor([8]), *model.first_state(1))[0].argmax().item()
    print(f"after each row: {guesses}; the whole image at once: {whole}; the label: {labels[205].item()}")

# %% [markdown]
# A server that keeps states for its clients must limit them: a client may never send the end. `--max-streams` limits
# their number, and `--stream-expiry-s` the time without a request. A state that is kept must also be a copy: a row
# of a batch is a view, and would keep the memory of the whole batch.

# %% [markdown]
# **Your turn:** `8/stream`.

# %% [markdown] syllabus="8.1c"
# ## Bad requests
#
# Every request comes from outside of the program, so the server expects anything. A client that did something wrong
# gets a status between 400 and 499, and a sentence that says what. One that came at a bad time gets 503 or 504. No
# request may change the result of another one.


# %%
def bad_requests():
    """Bodies of requests that the server refuses, by what is wrong with them."""
    return {
        "not JSON": b"steps: 1, 2, 3",
        "seven features": {"steps": [[0.0] * 7]},
        "a number too large": {"steps": [[1e39] + [0.0] * 7]},
        "1025 steps": {"steps": [[0.0] * 8] * 1025},
        "two megabytes": b"[" * 2_000_000,
        "an unknown stream": {"steps": [[0.0] * 8], "stream": "nobody"},
    }


if lltm_serve:
    with deploy.Server(lltm_serve, deployed.path) as server:
        for name, body in bad_requests().items():
            status, answer = server.post(body)
            print(f"{name}: {status} {answer['error'][:90]}")
        print("afterwards:", server.post({"steps": images[0].tolist()})[0])

# %% [markdown]
# A package for another version is refused at the start, in one line. The library of the operators uses C++ classes
# of torch, and these change between versions.

# %%
if lltm_serve:
    done = deploy.run_program(lltm_serve, "serve", root / "README.md")
    print("status", done.returncode, done.stderr)

# %% [markdown]
# ## How fast it is
#
# This is the record of `make serving`, which measures the program and a server in Python with the same model, in one
# run:

# %%
from common.studies.serving import STUDY
from common.studies.serving.chart import draw_requests

draw_requests(STUDY.read_record())

# %% [markdown]
# With 16 clients, `lltm_serve` answers more requests in a second than the server in Python: it computes them in
# batches, and its threads do not wait for an interpreter lock. A batch that waits 2 ms for more requests makes every
# request slower, and there are fewer of them in a second. Waiting pays only if a call of the model takes much longer
# than this one. A single call of the package takes about as long as a call in Python: both spend their time in the
# same operator.

# %% [markdown]
# ## When to deploy how
#
# [docs/when-to-deploy-how.md](../docs/when-to-deploy-how.md) has the questions to ask first. In short:
#
# | | needs Python | notices a wrong size | use it for |
# |---|---|---|---|
# | model in Python | yes | yes | few requests, or a model that changes its operations from call to call |
# | exported program | yes | yes | a fixed graph, to inspect or to compile |
# | package (AOTInductor) | no | no | a C++ program around the model, a fast start, many concurrent requests |
#
# **TorchScript** was the way to C++ before `torch.export`. The library can still load its files, but it is
# [deprecated](https://docs.pytorch.org/docs/stable/jit.html):

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    torch.jit.script(torch.nn.Linear(2, 2))
print(caught[0].message)

# %% [markdown]
# **ONNX** describes a model in standard operators that other runtimes can execute. Your own operator is not one of
# them: you must [translate it](https://docs.pytorch.org/tutorials/beginner/onnx/onnx_registry_tutorial.html) into
# ONNX operators, or implement it again for the runtime. `torch.onnx.export` needs the packages `onnx` and
# `onnxscript`, which this workbook does not install.

# %% [markdown]
# ## Summary
#
# - `torch.export` makes constants of all sizes that are not declared dynamic, and of sizes of 0 and 1. The example
#   must not contain one tensor twice.
# - A package of AOTInductor contains the compiled model, but not your operator: load its library first. It does not
#   check sizes.
# - A C++ program needs libtorch, not Python. `ldd` shows what it needs.
# - A server limits everything that a client can fill, and an accepted request is finished.
#
# Next: `make stage-8` repeats these checks on your machine.
