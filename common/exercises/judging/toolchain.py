"""For checks of a setup.py: stand-ins for the compilers record its commands, with or without a CUDA toolkit.

from common.exercises.judging.toolchain import commands

def check(work):
    for command in commands(work, TORCH_CUDA_ARCH_LIST="9.0"):
        ...
"""

from __future__ import annotations

from typing import NamedTuple

from ..failures import Failure
from .work import Work

SOURCES = (".cu", ".cpp")
# Runs all of setup.py with stand-ins for the compilers, which record their arguments and create empty files.
DRIVER = '''
import json, os, pathlib, runpy, sys, tempfile

TOOL = """#!{python} -IS
import json, os, sys
words = sys.argv[1:]
for before, name in zip(words, words[1:]):
    if before in ("-o", "-MF"):
        open(name, "a").close()
note = json.dumps([os.path.basename(sys.argv[0]), words]) + "\\\\n"
os.write(os.open({log!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT), note.encode())
"""
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    log = folder / "log"
    log.touch()
    for name in ("bin/nvcc", "bin/c++"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TOOL.format(python=sys.executable, log=str(log)))
        path.chmod(0o755)
    for name in ("CC", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LDSHARED", "LDCXXSHARED", "PYTORCH_NVCC"):
        os.environ.pop(name, None)
    os.environ["CXX"] = str(folder / "bin/c++")
    os.environ |= {"TORCH_DONT_CHECK_COMPILER_ABI": "1", "TORCH_NO_COMPILER_WRAPPER": "1"}
    import torch.utils.cpp_extension
    torch.utils.cpp_extension.CUDA_HOME = str(folder)
    places = ["--build-temp", str(folder / "temp"), "--build-lib", str(folder / "lib")]
    sys.argv = ["setup.py", "-q", "build_ext", *places]
    sys.path.insert(0, "")
    runpy.run_path("setup.py", run_name="__main__")
    noted = [json.loads(line) for line in log.read_text().splitlines()]
tell(noted)
'''


class CompilerCommand(NamedTuple):
    """One call of a compiler: "nvcc" or "c++", and its arguments."""

    tool: str
    words: list[str]

    @property
    def source(self) -> str:
        """The file that it compiles, without its folder; empty where it links."""
        return next((word.rpartition("/")[2] for word in self.words if word.endswith(SOURCES)), "")

    @property
    def own(self) -> list[str]:
        """The file that it compiles and the flags after it; those before it may come from Python's own build."""
        return self.words[next(k for k, word in enumerate(self.words) if word.endswith(SOURCES)) :]

    @property
    def result(self) -> str:
        """The file that it creates, without its folder."""
        return self.words[self.words.index("-o") + 1].rpartition("/")[2] if "-o" in self.words else ""


def commands(work: Work, **variables: str) -> list[CompilerCommand]:
    """The compiler and linker commands of the learner's setup.py. Raises `Failure` with its last lines if it fails.

    The variables are set in its environment; TORCH_CUDA_ARCH_LIST is "9.0" by default.
    """
    given = {"TORCH_CUDA_ARCH_LIST": "9.0", "TORCH_CPP_LOG_LEVEL": "ERROR", "MAX_JOBS": "2"} | variables
    ran = work.observe(DRIVER, PYTHONWARNINGS="ignore", **given)
    if ran.told is None:
        lines = [line for line in ran.output.splitlines() if line.strip()]
        raise Failure("\n".join(["setup.py fails with an error:", *lines[-3:]]))
    noted = [CompilerCommand(*pair) for pair in ran.told]
    return [command for command in noted if command.result]
