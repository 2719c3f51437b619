"""`make wheels-operators`: stage 8's operators in torch's stable ABI, one library for several versions of torch.

Each version but that of this Python has an environment of its own in build/wheels/, with torch and nothing else.
There, the library is loaded and its recurrence is compared with a loop in plain torch operations. The result goes to
docs/results/studies/wheels_operators.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ... import deploy
from ...console import say
from ...deploy.program import CELLS, FOLDER
from ...errors import UserError
from ...results import records, sources
from ...versions import installed_version
from . import STUDY
from .recorder import OLDEST_STABLE_TORCH, make_environment, minor_version

TOLERANCE = 1e-5
# Runs in the other environment: it prints the versions and the largest difference.
COMPARE = """
import json, platform, sys
import torch
torch.ops.load_library(sys.argv[1])
operators = getattr(torch.ops, sys.argv[2])
torch.manual_seed(0)
T, B, I, S = 9, 4, 6, 21
inputs, weights = torch.randn(T * B, I), torch.randn(3 * S, S + I) / S**0.5
bias, h, cell = torch.randn(3 * S), torch.randn(B, S), torch.randn(B, S)
lengths = torch.tensor([9, 0, 3, 7])
x = operators.product(inputs, weights[:, S:].t(), bias).view(T, B, 3 * S)
found = operators.recurrence(x, weights[:, :S], None, h, cell, lengths, "lltm", False, "", False)
outputs = []
for t in range(T):
    z = inputs.view(T, B, I)[t] @ weights[:, S:].t() + bias + h @ weights[:, :S].t()
    input_gate, output_gate, candidate = z.chunk(3, 1)
    new_cell = cell + torch.nn.functional.elu(candidate) * torch.sigmoid(input_gate)
    new_h = torch.tanh(new_cell) * torch.sigmoid(output_gate)
    running = (t < lengths)[:, None]
    h, cell = torch.where(running, new_h, h), torch.where(running, new_cell, cell)
    outputs.append(h)
pairs = zip(found, (torch.stack(outputs), h, cell))
difference = max((one - other).abs().max().item() for one, other in pairs)
print(json.dumps({"torch": torch.__version__, "python": platform.python_version(), "difference": difference}))
"""


def try_operators(torches: Sequence[str] | None = None) -> int:
    """Records the library with each torch, by default the oldest supported one and the installed one; always 0."""
    torches = torches or (OLDEST_STABLE_TORCH, minor_version(installed_version("torch")))
    for row in record_versions(torches)["rows"]:
        say(f"torch {row['torch']}, Python {row['python']}: the largest difference is {row['difference']:.1e}")
    return 0


def record_versions(torches: Sequence[str]) -> dict:
    """Calls the library with each torch and writes the record. Raises `UserError` if a version does not agree."""
    library = deploy.stable_operators()
    here = minor_version(installed_version("torch"))
    pythons = [Path(sys.executable) if one == here else make_environment(sys.executable, one) for one in torches]
    rows = [call_with(python, library) for python in pythons]
    built = {"built_with": installed_version("torch"), "bytes": library.stat().st_size}
    record = {"date": records.utc_now(), "sources": hash_sources(), **built, "rows": rows}
    records.save(record, STUDY.record("operators"))
    return record


def call_with(python: Path, library: Path) -> dict:
    """The row of one environment."""
    done = subprocess.run(
        [str(python), "-c", COMPARE, str(library), deploy.NAMESPACE], capture_output=True, text=True, timeout=120
    )
    if done.returncode:
        raise UserError(f"{python}: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'it crashed'}")
    row = json.loads(done.stdout)
    if not row["difference"] <= TOLERANCE:
        raise UserError(f"with torch {row['torch']}, the results differ by {row['difference']:.1e}")
    return row


def hash_sources() -> str:
    """A hash of the library's sources."""
    return sources.hash_code([FOLDER / "CMakeLists.txt", *(FOLDER / "stable_abi").glob("*.cpp"), *CELLS])
