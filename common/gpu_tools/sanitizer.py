"""compute-sanitizer: where it is, programs compiled for it, and what in its output is no error."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from .. import paths
from ..build import nvcc as architectures
from ..build import targets
from ..emulator import first_errors
from ..errors import UserError
from ..paths import display_path

NO_ERROR = re.compile(r"COMPUTE-SANITIZER|.* SUMMARY: |LEAK SUMMARY|This tool is deprecated|Saved host backtrace")


def require_tools() -> str:
    """The path of compute-sanitizer. Raises `UserError` if it, nvcc or a GPU is missing."""
    tool = compute_sanitizer()
    missing = [
        name for name, found in (("nvcc", architectures.find_nvcc()), ("compute-sanitizer", tool)) if not found
    ]
    if reason := f"no {' and no '.join(missing)}" if missing else targets.why_unavailable("cuda"):
        raise UserError(f"nothing was run: {reason}; compute-sanitizer and nvcc are parts of the CUDA Toolkit")
    return tool


def compute_sanitizer() -> str | None:
    """The path of compute-sanitizer, on PATH or beside nvcc; None if it is not installed."""
    nvcc = architectures.find_nvcc()
    return shutil.which("compute-sanitizer") or (
        shutil.which("compute-sanitizer", path=str(Path(nvcc).resolve().parent)) if nvcc else None
    )


def compile_program(source: Path, *flags: str) -> Path:
    """Compiles one .cu for this machine's GPU, with line numbers. Raises `UserError` if nvcc reports an error."""
    program = paths.build_dir() / "sanitize" / source.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    architecture = architectures.gpu_architectures().split(";")[0].replace(".", "").partition("+")[0]
    command = [architectures.find_nvcc(), "-std=c++17", "-lineinfo", f"-arch=sm_{architecture}", *flags]
    done = subprocess.run([*command, str(source), "-o", str(program)], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{display_path(source)} does not compile.\n{first_errors(done.stdout + done.stderr)}")
    return program


def last_line(output: str) -> str:
    """The last non-empty line."""
    lines = [line.strip("= ").strip() for line in output.splitlines() if line.strip("= ")]
    return lines[-1] if lines else "no output"
