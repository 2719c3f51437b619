import shutil

import torch

from common.errors import UserError
from common.exercises.judge import BuildFailure, Failure, require, unchanged

SHOWN = 3  # lines of an error
FIND_PACKAGE = "find_package(Torch) requires nvcc if torch supports CUDA; find_path and find_library do not"
# Runs CMake, then the program with an empty environment, and lists the libraries that it loads.
RUNNER = """
import importlib.util, os, pathlib, subprocess, sys, tempfile

MOST = 20_000  # characters of a log

def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)

def libraries_of(file):
    return [line.split()[0] for line in run("ldd", file).stdout.splitlines()]

with tempfile.TemporaryDirectory() as built:
    torch = importlib.util.find_spec("torch").submodule_search_locations[0]
    flags = [f"-DCMAKE_PREFIX_PATH={torch}", "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed"]
    done = run("cmake", "-S", ".", "-B", built, *flags)
    result = {"cmake": done.stderr.partition("Call Stack")[0][:MOST]}
    if done.returncode == 0:
        done = run("cmake", "--build", built, "--parallel", "2")
        result = {"build": (done.stderr + done.stdout)[:MOST]}
    if done.returncode == 0:
        program = os.path.join(built, "total")
        done = run(program, *sys.argv[1:], env={}, cwd="/")
        result = {"status": done.returncode, "output": done.stdout[:MOST], "errors": done.stderr[:MOST]}
        result["libraries"] = libraries_of(program)
        halves = list(pathlib.Path(built).rglob("libhalf.so"))
        result["of_half"] = [libraries_of(file) for file in halves]
        result["needed_by_half"] = [run("readelf", "--dynamic", file).stdout for file in halves]
tell(result)
"""


def check(work):
    for file in ("half.cpp", "total.cpp"):
        unchanged(work, file, "Edit only CMakeLists.txt")
    if not shutil.which("cmake"):
        raise UserError("8/link needs CMake: sudo apt install cmake")
    numbers = torch.randn(5, generator=work.numbers(), dtype=torch.float64)
    ran = work.observe(RUNNER, *map(repr, numbers.tolist()))
    found = ran.told
    if found is None:
        raise Failure(f"CMake did not come to its end: {ran.output:.300}")
    if "cmake" in found:
        notes = [FIND_PACKAGE] if "find_package(Torch" in work.text("CMakeLists.txt") else []
        raise BuildFailure("\n".join(["cmake ends with an error:", *first_lines(found["cmake"]), *notes]))
    if "build" in found:
        raise BuildFailure("\n".join(["the program does not build:", *describe_build(found["build"])]))
    python = [name for name in found["libraries"] if "python" in name]
    require(not python, f"the program loads {', '.join(python)}: which library asks for Python?")
    output, errors = found["output"].strip(), found["errors"].strip()
    require(
        "error while loading shared libraries" not in errors,
        f"the dynamic loader does not find a library: {errors.rpartition('shared libraries: ')[2]}\n"
        "CMake stores the folder of a library in the program if target_link_libraries gets the whole path",
    )
    require(
        output != "there is no operator lab::half",
        "the program says: there is no operator lab::half. Is libhalf.so among the libraries that it loads?\n  "
        + " ".join(name for name in found["libraries"] if name.startswith(("libhalf", "libtorch", "libc10"))),
    )
    require(found["status"] == 0, f"the program ends with status {found['status']}: {errors or output}")
    require(
        all(any(name.startswith("libtorch_cpu") for name in libraries) for libraries in found["of_half"]),
        "libhalf.so is not linked to torch: a program that is not linked to torch itself could not load it",
    )
    require(
        all("[libc10.so" in needed for needed in found["needed_by_half"]),
        "libhalf.so is not linked to c10, although half.cpp uses it: it finds the functions of c10 only because "
        "libtorch_cpu.so loads c10, too",
    )
    want = numbers.sum().item() / 2
    try:
        total = float(output)
    except ValueError:
        raise Failure(f"the program prints {output!r:.60}, expected {want}") from None
    require(abs(total - want) < 1e-9, f"the program prints {total}, expected {want}")


def first_lines(text):
    return [line for line in text.splitlines() if line.strip()][:SHOWN]


def describe_build(log):
    """The first errors of the compiler or of the linker."""
    marks = ("error:", "undefined reference", "cannot find -l", "DSO missing")
    errors = [line.strip() for line in log.splitlines() if any(mark in line for mark in marks)]
    yield from [f"{line:.300}" for line in errors[:SHOWN]] or log.splitlines()[-SHOWN:]
    if any("undefined reference to `Py" in line for line in errors):
        yield "These are functions of Python: libtorch_python.so calls them, but neither target needs this library"
