"""A stage with one `.cu` for the emulator, which is built once, and a function that runs its kernels by name."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

from common.paths import ROOT
from support.suite.warm import run_warm

SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
setup(name="wrong", ext_modules=[CUDAExtension("wrong._C", ["csrc/wrong.cpp", "csrc/wrong_kernel.cu"])],
      packages=[], cmdclass={"build_ext": BuildExtension})
"""
BINDING = """#include <torch/csrc/utils/pybind.h>
void run(const std::string& name, const at::Tensor& x, const at::Tensor& out);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", run); }
"""
DRIVER = """
import sys, torch
from common import load, stages
from common.stages import Stage
stages.STAGES = (*stages.STAGES, Stage(78, {folder!r}, "cell", "Wrong", ("emulator",)))
run = load(78, "emulator").run
name = sys.argv[1]
x = torch.arange(42.0).reshape(3, 14)[:, :7] if name == "slice" else torch.arange(21.0).reshape(3, 7)
out = torch.zeros(3, 7)
try:
    run(name, x, out)
    print("nothing raised", out.sum().item())
except RuntimeError as error:
    print(error)
"""


def speaker(temporary: Path, kernels: str) -> Callable[..., str]:
    """Returns a function that calls the C++ `run(name, x, out)` in its own process, with given environment variables.

    That function returns the text of an error, or "nothing raised" and the sum of `out`, which has shape (3, 7) and
    is zero before. `x` counts up from 0 and has the same shape; for the name "slice" it is a slice of rows of 14.
    """
    folder = temporary / "stage78_wrong"
    (folder / "csrc").mkdir(parents=True)
    (folder / "setup.py").write_text(SETUP)
    (folder / "csrc" / "wrong.cpp").write_text(BINDING)
    (folder / "csrc" / "wrong_kernel.cu").write_text(kernels)
    (folder / "lltm.py").write_text("from . import _C\n\nrun = _C.run\n")
    (folder / "__init__.py").write_text("from . import lltm\n")
    (folder / "README.md").write_text("# Wrong\n")
    code = textwrap.dedent(DRIVER).format(folder=str(folder))

    def run(name: str, **settings: str) -> str:
        environment = {**os.environ, "BUILD_DIR": str(temporary / "build"), **settings}
        done = run_warm(code, name, cwd=ROOT, environment=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run
