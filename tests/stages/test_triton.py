"""Stage 6's cell with its kernels in Triton: on a GPU as they are, elsewhere in Triton's own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common.cell.case import GRADS, LAYOUTS, Case, difference, outputs
from common.measure.implementations import load_triton_module
from common.paths import ROOT
from support.proofs.files import stage_files

pytestmark = pytest.mark.proof("stages' tests", files=stage_files(6))


SIZES = ((3, 5, 70), (1, 4, 33), (5, 3, 1), (2, 1, 1025), (0, 4, 8))
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def problems(device: str) -> list[str]:
    """What differs from the reference, over sizes, layouts, gradients and dtypes; and whether gradcheck agrees."""
    lltm = load_triton_module().lltm
    cases = [Case(*size, dtype=dtype, device=device) for size in SIZES for dtype in DTYPES]
    cases += [Case(*SIZES[0], layout=layout, device=device) for layout in LAYOUTS]
    cases += [Case(*SIZES[0], grads=grads, device=device) for grads in GRADS]
    cases += [Case(*SIZES[0], requires_grad=names, device=device) for names in (("weights", "bias"), ("input",), ())]
    cases += [Case(*SIZES[0], bias_shift=1e4, device=device)]
    exact = tuple(Case(2, 3, 4, dtype=torch.float64, device=device).inputs().values())
    wrong = [] if torch.autograd.gradcheck(lltm, exact, raise_exception=False) else ["gradcheck"]
    return wrong + [found for case in cases if (found := difference(case, outputs(lltm, case)))]


@pytest.mark.syllabus("6.4f")
@pytest.mark.needs("triton")
def test_triton_agrees_with_the_reference():
    if torch.cuda.is_available():
        assert problems("cuda") == []
        return
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent))),
    }
    code = "import json, test_triton; print(json.dumps(test_triton.problems('cpu')))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
