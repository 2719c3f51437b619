import torch

from common.exercises.judge import Failure, require

# Runs build.py, then the program whose path it prints, and lists the libraries that the program needs. Then it runs
# build.py in a copy of the folder in which total.cpp has changed, so that it cannot be compiled.
RUNNER = """
import contextlib, io, os, pathlib, re, runpy, shutil, subprocess, sys, tempfile

def build():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path("build.py", run_name="__main__")
    return printed.getvalue()

def builds_again():
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(".", copy, dirs_exist_ok=True)
        os.chdir(copy)
        source = pathlib.Path("total.cpp")
        source.write_text("#error total.cpp has changed\\n" + source.read_text())
        try:
            build()
        except (Exception, SystemExit):
            return True
        return False

printed = build()
path = (printed.split() or [""])[-1]
path = path and os.path.relpath(path)
try:
    with open(path, "rb") as file:
        binary = file.read(4) == b"\\x7fELF"
    ran = subprocess.run(["./" + path if "/" not in path else path, *sys.argv[1:]], capture_output=True, text=True)
    status, output = ran.returncode, ran.stdout
    dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
except OSError as error:
    binary, status, output, dynamic = False, None, str(error), ""
libraries = re.findall(r"NEEDED.*\\[(.*)\\]", dynamic)
tell([path, binary, status, output, libraries, os.path.exists("built/build.ninja"), builds_again()])
"""


def check(work):
    numbers = torch.randn(5, generator=work.numbers(), dtype=torch.float64)
    ran = work.observe(RUNNER, *map(repr, numbers.tolist()), TORCH_CPP_LOG_LEVEL="ERROR")
    if ran.told is None:
        raise Failure("\n".join(["build.py ends with an error:", *ran.output.splitlines()[-1:]]))
    path, binary, status, output, libraries, by_load, builds_again = ran.told
    require(binary, f"build.py prints {path or 'nothing'}, expected the path of the program")
    require(path.startswith("built/"), f"the program is {path}, expected one in the folder built")
    require(by_load, "load did not build the program: it would have left built/build.ninja. Make load build it")
    require(
        status == 0,
        f"{path} cannot be run as a program: it ends with status {status}. A library has no main function to call",
    )
    try:
        total = float(output)
    except ValueError:
        raise Failure(f"{path} prints {output!r}, expected a number") from None
    require(abs(total - numbers.sum().item()) < 1e-9, f"{path} prints {total}, expected {numbers.sum().item()}")
    require("libtorch_cpu.so" in libraries, f"{path} does not use torch: it only needs {', '.join(libraries)}")
    require(
        "libtorch.so" in libraries,
        f"{path} needs {', '.join(libraries)}, but not libtorch.so, so torch's CUDA part is not loaded. "
        "Which flag keeps a library if none of its functions is called by name?",
    )
    require(
        builds_again,
        "built/total exists and total.cpp has changed since, but build.py does not build it again, as load would: it "
        "prints the path of the old program",
    )
