"""Each problem of docs/troubleshooting.md, provoked, compared with what the page shows, and mended as it says."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from tests.troubleshooting.sandbox import PAGE, SOURCES, Sandbox, assert_printed, problem, sections, setuptools_wheel

TORCH = Path(torch.__path__[0])
LOAD = """
from torch.utils.cpp_extension import load
print("optimised:", load("_C", ["module.cpp"], build_directory="build").optimised)
"""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


@pytest.fixture
def loading(sandbox: Sandbox) -> str:
    """The command that builds and imports the small module with torch's `load`."""
    shutil.copy(SOURCES / "module.cpp", sandbox.folder)
    (sandbox.folder / "build").mkdir()
    return sandbox.script(LOAD)


# The page itself


def test_every_section_is_tried_here() -> None:
    tried = set(re.findall(r'problem\("(.+?)"\)', Path(__file__).read_text()))
    assert tried == set(sections())


def test_the_table_leads_to_every_section() -> None:
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in sections()}
    table = PAGE.partition("Two habits")[0]
    assert set(re.findall(r"\]\(#(.+?)\)", table)) == anchors
    assert set(re.findall(r"\]\(#(.+?)\)", PAGE)) == anchors


# While installing


@pytest.mark.needs("g++", "pip")
def test_pip_cannot_see_torch(sandbox: Sandbox) -> None:
    page = problem("pip cannot see torch")
    sandbox.package("setup_torch.py")
    setuptools_wheel(sandbox.folder / "wheels")
    isolated = "python -m pip install ./stages/stage2_aten"
    assert_printed(page.symptoms[0], sandbox.fails(isolated, PIP_FIND_LINKS="wheels"))
    assert_printed(page.symptoms[1], sandbox.fails(isolated))
    sandbox.install(page.fixes[0])
    sandbox.works('python -c "import torch, lltm_stage2"')


@pytest.mark.needs("pip")
def test_no_network(sandbox: Sandbox) -> None:
    page = problem("No network")
    offline = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    command = "python -m pip install --target installed --ignore-installed torch"
    assert_printed(page.symptoms[0], sandbox.fails(command, **offline))
    assert page.fixes[0] == "make stage-2 PYTHON=python3\n"


@pytest.mark.needs("g++")
def test_disk_full(sandbox: Sandbox) -> None:
    page = problem("Disk full")
    sandbox.write("main.cpp", "int main() {}\n")
    assert_printed(page.symptoms[0], sandbox.fails("g++ -S main.cpp -o /dev/full"))
    assert_printed(page.symptoms[1], sandbox.fails("g++ main.cpp -o /dev/full"))
    assert_printed(page.symptoms[2], sandbox.fails(sandbox.script("open('/dev/full', 'w', 1).write('x\\n')")))
    where = sandbox.script(
        "import tempfile; from torch.utils.cpp_extension import _get_build_directory\n"
        "print(tempfile.gettempdir(), _get_build_directory('_C', False))"
    )
    roomy = sandbox.folder / "roomy"
    output = sandbox.works(f"{page.fixes[0]}\n{where}\ng++ -v main.cpp")
    assert f"{roomy}/tmp {roomy}/extensions/_C" in output
    assert f"{roomy}/tmp/cc" in output  # the compiler's own temporary files


# While importing


@pytest.mark.needs("g++", "pip")
def test_installed_into_another_python(sandbox: Sandbox) -> None:
    page = problem("Installed into another Python")
    sandbox.package()
    sandbox.works("python -m venv --without-pip other")
    sandbox.tool("pip", "exec python -m pip --python other/bin/python $@")
    sandbox.works("python -m pip wheel --no-build-isolation --no-deps -w wheels ./stages/stage2_aten")
    assert "Successfully installed" in sandbox.works("pip install wheels/*.whl")
    importing = 'python -c "import torch, lltm_stage2"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_the_source_folder_hides_the_package(sandbox: Sandbox) -> None:
    page = problem("The source folder hides the package")
    sandbox.compile("installed/lltm/_C.so")
    sandbox.write("installed/lltm/__init__.py", "from . import _C\n")
    sandbox.write("sources/lltm/__init__.py", "from . import _C\n")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import lltm"'
    output = sandbox.fails(f"cd sources; {importing}")
    assert_printed(page.symptoms[0], output)
    assert str(sandbox.folder / "sources" / "lltm") in output
    sandbox.works(importing)
    if sys.version_info >= (3, 11):
        sandbox.works(f"cd sources; {page.fixes[0]}\n{importing}")
    sandbox.write("sources/lltm/__init__.py", "")
    assert "ModuleNotFoundError: No module named 'lltm._C'" in sandbox.fails("cd sources; python -c 'import lltm._C'")


@pytest.mark.needs("g++", "pip")
def test_built_for_another_version_of_python(sandbox: Sandbox) -> None:
    page = problem("Built for another version of Python")
    sandbox.compile("installed/lltm_stage2/_C.cpython-38-x86_64-linux-gnu.so")
    sandbox.write("installed/lltm_stage2/__init__.py", "")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import torch, lltm_stage2._C"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.package()
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_a_fixed_name_in_the_binding(sandbox: Sandbox) -> None:
    page = problem("A fixed name in the binding")

    def build_and_import(binding: str) -> tuple[int, str]:
        source = sandbox.write("binding.cpp", f"#include <pybind11/pybind11.h>\n{binding}\n")
        flags = ["-std=c++17", f"-I{TORCH / 'include'}", "-DTORCH_EXTENSION_NAME=_C"]
        sandbox.compile("_C.so", *flags, source=str(source))
        return sandbox.run('python -c "import _C"')

    status, output = build_and_import("PYBIND11_MODULE(lltm, m) {}")
    assert status != 0
    assert_printed(page.symptoms[0], output)
    assert build_and_import(page.fixes[0]) == (0, "")


@pytest.mark.needs("g++")
def test_extension_imported_before_torch(sandbox: Sandbox) -> None:
    page = problem("Extension imported before torch")
    sandbox.compile("_C.so", f"-L{TORCH / 'lib'}", "-Wl,--no-as-needed", "-lc10")
    assert_printed(page.symptoms[0], sandbox.fails('python -c "import _C"'))
    sandbox.works(sandbox.script(page.fixes[0]))


@pytest.mark.needs("g++", "pip")
def test_built_with_another_torch(sandbox: Sandbox) -> None:
    page = problem("Built with another torch")
    c10 = ctypes.CDLL(str(TORCH / "lib" / "libc10.so"))
    symbols = {re.search(r"symbol: (\w+)", symptom).group(1): symptom for symptom in page.symptoms}
    absent = [symbol for symbol in symbols if not hasattr(c10, symbol)]
    assert len(absent) == 2  # of three: one of the first two is this torch's own
    sandbox.write("installed/lltm_stage2/__init__.py", "from . import _C\n")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import torch, lltm_stage2"'
    for symbol in absent:
        sandbox.compile("installed/lltm_stage2/_C.so", f"-DNEEDS={symbol}")
        assert_printed(symbols[symbol], sandbox.fails(importing))
    sandbox.package()
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_not_linked_to_torch_python(sandbox: Sandbox) -> None:
    page = problem("Not linked to torch_python")
    sandbox.compile("lltm.o", "-DNEEDS=THPVariableClass", "-c")
    sandbox.works(f'g++ -shared -o _C.so lltm.o -L"{TORCH}/lib" -lc10 -ltorch_cpu -ltorch')
    importing = 'python -c "import torch, _C"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.works(f"{page.fixes[0]}\n{importing}")


@pytest.mark.needs("g++", "pip")
def test_built_for_another_cuda(sandbox: Sandbox) -> None:
    page = problem("Built for another CUDA")
    library = sandbox.compile("libcudart.so.12", "-Wl,-soname,libcudart.so.12", source="twice.cpp")
    sandbox.compile("installed/lltm_stage2/_C.so", "-Wl,--no-as-needed", str(library))
    library.unlink()
    sandbox.write("installed/lltm_stage2/__init__.py", "from . import _C\n")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import torch, lltm_stage2"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.package()
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


# While building


@pytest.mark.needs("g++", "ninja")
def test_no_compiler(sandbox: Sandbox, loading: str) -> None:
    page = problem("No compiler")
    path = sandbox.only("sh", "uname", "ninja", "as", "ld")
    assert_printed(page.symptoms[0], sandbox.fails(loading, PATH=path))
    for name in ("gcc", "g++"):
        sandbox.tool(f"{name}-13", f'exec "{shutil.which(name)}" "$@"', folder="only")
    assert "optimised: 0" in sandbox.works(f"{page.fixes[0]}\n{loading}", PATH=path)


@pytest.mark.needs("g++")
def test_no_python_headers(sandbox: Sandbox) -> None:
    page = problem("No Python headers")
    command = f"g++ -fsyntax-only {SOURCES / 'module.cpp'}"
    assert_printed(page.symptoms[0], sandbox.fails(command))
    header = Path(sandbox.works(page.fixes[0]).strip())
    sandbox.works(f"{command} -I{header.parent}")


@pytest.mark.needs("g++")
def test_the_editor_cannot_find_torch(sandbox: Sandbox) -> None:
    page = problem("The editor cannot find torch")
    sandbox.write("lltm.cpp", "#include <torch/extension.h>\n")
    command = "g++ lltm.cpp -M"  # lists every header that is included, or says which one is missing
    assert_printed(page.symptoms[0], sandbox.fails(command))
    sandbox.works(sandbox.script(page.fixes[0]))
    assert "ATen/core/Tensor.h" in sandbox.works(f"{command} $(cat compile_flags.txt)")
    settings = json.loads((sandbox.folder / ".vscode" / "c_cpp_properties.json").read_text())
    folders = settings["configurations"][0]["includePath"]
    for header in ("torch/extension.h", "ATen/ATen.h", "Python.h"):
        assert any(Path(folder, header).exists() for folder in folders)


@pytest.mark.needs("g++", "ninja")
def test_ninja_missing(sandbox: Sandbox, loading: str) -> None:
    page = problem("Ninja missing")
    path = sandbox.only("sh", "uname", "g++", "c++", "gcc", "as", "ld")
    assert_printed(page.symptoms[0], sandbox.fails(loading, PATH=path))
    sandbox.package("setup_torch.py")
    building = "cd stages/stage2_aten; python setup.py -q build_ext"
    assert_printed(page.symptoms[1], sandbox.works(building, PATH=path, CC="gcc", CXX="g++"))
    # As after `pip install ninja`: the program lies beside a Python whose environment is not active.
    sandbox.works("python -m venv --without-pip environment")
    environment = sandbox.folder / "environment"
    packages = [entry for entry in sys.path if entry.endswith("-packages")]
    next(environment.glob("lib/python*/site-packages")).joinpath("torch.pth").write_text("\n".join(packages))
    (environment / "bin" / "ninja").symlink_to(shutil.which("ninja"))
    sandbox.tool("python", f'exec "{environment}/bin/python" "$@"', folder="only")
    assert_printed(page.symptoms[0], sandbox.fails(loading, PATH=path))
    sandbox.works(f"{page.fixes[0]}\n{loading}", PATH=path)


def test_nvcc_missing(sandbox: Sandbox) -> None:
    page = problem("nvcc missing")
    code = "from torch.utils import cpp_extension as build\n"
    nothing_found = f"{code}build.CUDA_HOME = None\nbuild._join_cuda_home('bin', 'nvcc')"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(nothing_found)))
    output = sandbox.works(f"{page.fixes[0]}\n{sandbox.script(f'{code}print(build._find_cuda_home())')}")
    assert output.splitlines()[-1] == re.search("CUDA_HOME=(.+)", page.fixes[0]).group(1)


# What `BuildExtension` does before it calls nvcc, for a torch of CUDA 13.2.
CHECK_VERSIONS = """
import os, torch
torch.version.cuda = "13.2"
from torch.utils import cpp_extension as build
build.CUDA_HOME = os.environ["CUDA_HOME"]
compiler = os.environ.get("CXX", "g++")
build._check_cuda_version("g++", build.get_compiler_abi_compatibility_and_version(compiler)[1])
print("fine")
"""


def toolkit(sandbox: Sandbox, version: str) -> str:
    """A folder like that of a CUDA toolkit, with an nvcc that can only say its version."""
    says = f"echo 'Cuda compilation tools, release {version}, V{version}.88'"
    sandbox.tool("nvcc", says, folder=f"cuda-{version}/bin")
    return str(sandbox.folder / f"cuda-{version}")


@pytest.mark.needs("g++")
def test_nvcc_and_torch_of_different_cuda_versions(sandbox: Sandbox) -> None:
    page = problem("nvcc and torch of different CUDA versions")
    check = sandbox.script(CHECK_VERSIONS)
    sandbox.tool("g++", "echo 13.2.0")
    assert_printed(page.symptoms[0], sandbox.fails(check, CUDA_HOME=toolkit(sandbox, "12.8")))
    toolkit(sandbox, "13.0")
    fix = page.fixes[0].replace("/usr/local", str(sandbox.folder))
    output = sandbox.works(f"{fix}\n{check}")
    assert_printed(page.symptoms[1], output)
    assert "fine" in output


@pytest.mark.needs("g++")
def test_host_compiler_too_new(sandbox: Sandbox) -> None:
    page = problem("Host compiler too new")
    check = sandbox.script(CHECK_VERSIONS)
    home = toolkit(sandbox, "13.0")
    sandbox.tool("g++", "echo 99.1.0")
    assert_printed(page.symptoms[1], sandbox.fails(check, CUDA_HOME=home))
    sandbox.tool("g++-13", "echo 13.2.0")
    assert "fine" in sandbox.works(f"{page.fixes[0]}\n{check}", CUDA_HOME=home)


@pytest.mark.needs("nvcc", "g++")
def test_host_compiler_too_new_for_nvcc(sandbox: Sandbox) -> None:
    page = problem("Host compiler too new")
    for name in ("gcc", "g++"):
        real = shutil.which(name)
        sandbox.tool(name, f'exec "{real}" -U__GNUC__ -D__GNUC__=99 "$@"')
        sandbox.tool(f"{name}-13", f'exec "{real}" "$@"')
    command = f"nvcc -c {SOURCES / 'launch.cu'} -o launch.o"
    assert_printed(page.symptoms[0], sandbox.fails(command))
    sandbox.works(f"{page.fixes[0]}\n{command}")


ARCHITECTURES = "from torch.utils.cpp_extension import _get_cuda_arch_flags\nprint(_get_cuda_arch_flags())"


def test_no_architecture_without_a_gpu(sandbox: Sandbox) -> None:
    page = problem("No architecture without a GPU")
    flags = sandbox.script(ARCHITECTURES)
    assert_printed(page.symptoms[0], sandbox.fails(flags, CUDA_VISIBLE_DEVICES=""))
    output = sandbox.works(f"{page.fixes[0]}\n{flags}", CUDA_VISIBLE_DEVICES="")
    for made_for in ("code=sm_80", "code=sm_90", "code=compute_90"):
        assert made_for in output


def test_architecture_unknown(sandbox: Sandbox) -> None:
    page = problem("Architecture unknown")
    flags = sandbox.script(ARCHITECTURES)
    assert_printed(page.symptoms[0], sandbox.fails(flags, TORCH_CUDA_ARCH_LIST="sm_90"))
    assert "code=sm_90" in sandbox.works(f"{page.fixes[0]}\n{flags}")


@pytest.mark.needs("nvcc")
def test_architecture_unknown_to_nvcc(sandbox: Sandbox) -> None:
    page = problem("Architecture unknown")
    compiling = f"nvcc -c {SOURCES / 'launch.cu'} -o launch.o"
    output = sandbox.fails(f"{compiling} -gencode=arch=compute_35,code=sm_35")
    assert_printed(page.symptoms[1], output)
    listed = re.search("nvcc --list-gpu-code", sections()["Architecture unknown"]).group()
    architectures = re.findall(r"sm_(\d+)$", sandbox.works(listed), re.MULTILINE)
    assert "35" not in architectures
    newest = architectures[-1]
    sandbox.works(f"{compiling} -gencode=arch=compute_{newest},code=sm_{newest}")


@pytest.mark.needs("g++", "ninja")
def test_compiler_killed(sandbox: Sandbox) -> None:
    page = problem("Compiler killed")
    sandbox.tool("cc1plus", "kill -9 $$", folder="killed")
    output = sandbox.fails(f"g++ -B {sandbox.folder / 'killed'} -c {SOURCES / 'twice.cpp'} -o twice.o")
    assert_printed(page.symptoms[0], output)
    sandbox.tool("ninja", 'echo "$@" > asked')
    build = sandbox.script("from torch.utils import cpp_extension as build; build._run_ninja_build('.', False, '')")
    assert "-j" not in sandbox.works(f"{build}\ncat asked")
    assert "-j 1" in sandbox.works(f"{page.fixes[0]}\n{build}\ncat asked")


@pytest.mark.needs("g++", "ninja")
def test_load_hangs(sandbox: Sandbox) -> None:
    page = problem("load hangs")
    shutil.copy(SOURCES / "module.cpp", sandbox.folder)
    lock = sandbox.write("torch_extensions/_C/lock", "")
    sandbox.environment["TORCH_EXTENSIONS_DIR"] = str(lock.parents[1])
    loading = LOAD.replace(', build_directory="build"', "")
    # Whatever waits for the lock sleeps between two looks at it; there, as if Ctrl-C had been pressed.
    waiting = f"import time, torch\ndef ctrl_c(_): raise KeyboardInterrupt\n{loading}".replace(
        "print(", "time.sleep = ctrl_c\nprint("
    )
    if torch.torch_version.TorchVersion(torch.__version__) < (2, 14):
        assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(waiting)))
        sandbox.works(page.fixes[0])
    else:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert_printed(page.symptoms[1], sandbox.fails(sandbox.script(waiting)))
            assert str(os.getpid()) in sandbox.works(page.fixes[1])
        lock.touch()  # left behind, but held by nobody
    assert "optimised" in sandbox.works(sandbox.script(loading))


# While running


@pytest.fixture
def kernel(sandbox: Sandbox):
    """Compiles launch.cu for some architectures, and gives the start of a script that has it as `library`."""

    def compile(code: str) -> str:
        arch = re.search(r"\d+", code).group()
        flags = f"-gencode=arch=compute_{arch},code={code} -cudart shared -lineinfo"
        sandbox.works(f"nvcc -shared -Xcompiler -fPIC {flags} {SOURCES / 'launch.cu'} -o launch.so")
        return "import torch, ctypes\none = torch.ones(1, dtype=torch.int, device='cuda')\n" + (
            "library = ctypes.CDLL('./launch.so')\n"
        )

    return compile


@pytest.mark.needs("gpu", "nvcc")
def test_no_kernel_image(sandbox: Sandbox, kernel) -> None:
    page = problem("No kernel image")
    major, minor = torch.cuda.get_device_capability()
    launch = "library.launch(ctypes.c_void_p(one.data_ptr()))\nprint(torch.zeros(1, device='cuda') + 1)"
    another = "sm_80" if major != 8 else "sm_90"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(kernel(another) + launch)))
    flags = sandbox.works(f"{page.fixes[0]}\n{sandbox.script(ARCHITECTURES)}", TORCH_CUDA_ARCH_LIST="8.0")
    assert f"sm_{major}{minor}" in flags  # what torch asks nvcc for here, without the variable
    assert "tensor([1.]" in sandbox.works(sandbox.script(kernel(f"sm_{major}{minor}") + launch))


@pytest.mark.needs("gpu", "nvcc")
def test_illegal_memory_access(sandbox: Sandbox, kernel) -> None:
    page = problem("Illegal memory access")
    start = kernel("sm_{}{}".format(*torch.cuda.get_device_capability()))
    script = sandbox.script(
        start + "status = library.launch(ctypes.c_void_p())\n"
        "print('the launch returned', status)\n"
        "one + one\ntorch.cuda.synchronize()"
    )
    output = sandbox.fails(script)
    assert "the launch returned 0" in output
    assert_printed(page.symptoms[0], output)
    assert "the launch returned 700" in sandbox.fails(f"{page.fixes[0]}\n{script}")  # cudaErrorIllegalAddress


@pytest.mark.needs("gpu", "nvcc", "compute-sanitizer")
def test_illegal_memory_access_is_found(sandbox: Sandbox, kernel) -> None:
    page = problem("Illegal memory access")
    start = kernel("sm_{}{}".format(*torch.cuda.get_device_capability()))
    sandbox.script(start + "library.launch(ctypes.c_void_p())\ntorch.cuda.synchronize()")
    _, output = sandbox.run("compute-sanitizer --target-processes all python script.py")
    assert_printed(page.symptoms[1], output)
    assert "launch.cu:2" in output


@pytest.mark.needs("g++")
def test_wrong_result_on_a_strided_input(sandbox: Sandbox) -> None:
    page = problem("Wrong result on a strided input")
    sandbox.compile("twice.so", source="twice.cpp")
    start = "import ctypes, torch\nx = torch.arange(9.0).view(3, 3).t()\n"
    call = (
        "y = torch.empty(3, 3)\n"
        "pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())\n"
        "ctypes.CDLL('./twice.so').twice(*pointers, ctypes.c_long(x.numel()))\n"
        "torch.testing.assert_close(y, 2 * x)"
    )
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + call)))
    sandbox.works(sandbox.script(start + page.fixes[0] + call))


def test_the_gradient_of_a_bare_sum_is_expanded() -> None:
    strides = []
    x = torch.ones(3, 3, requires_grad=True)
    y = 1 * x
    y.register_hook(lambda gradient: strides.append((gradient.stride(), gradient.untyped_storage().nbytes())))
    y.sum().backward()
    assert strides == [((0, 0), 4)]


def test_gradcheck_in_float32(sandbox: Sandbox) -> None:
    page = problem("gradcheck in float32")
    start = "import torch\nx = torch.linspace(-1, 1, 5, requires_grad=True)\n"
    check = "torch.autograd.gradcheck(torch.sigmoid, x)"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + check)))
    sandbox.works(sandbox.script(start + page.fixes[0] + check))


def shown(session: str) -> tuple[str, str]:
    """The command and what it prints, of a symptom that shows both."""
    command, _, printed = session.removeprefix("$ ").partition("\n")
    return command, printed


@pytest.mark.needs("g++", "ninja")
def test_cpp_built_without_optimisation(sandbox: Sandbox, loading: str) -> None:
    page = problem("C++ slower than Python")
    command, printed = shown(page.symptoms[0])
    assert "optimised: 0" in sandbox.works(loading)
    assert sandbox.run(command) == (1, printed)
    (sandbox.folder / "module.cpp").rename(sandbox.folder / "lltm.cpp")
    assert "optimised: 1" in sandbox.works(sandbox.script(page.fixes[0] + "print('optimised:', extension.optimised)"))
    assert int(sandbox.works(command)) > 0


def test_cpp_on_one_thread(sandbox: Sandbox) -> None:
    page = problem("C++ slower than Python")
    command, printed = shown(page.symptoms[1])
    assert sandbox.works(command, OMP_NUM_THREADS="1") == printed
    assert sandbox.works(f"{page.fixes[1]}\n{command}", OMP_NUM_THREADS="1") == sandbox.works(command)


@pytest.mark.needs("gpu")
def test_cpp_that_waits_for_the_gpu(sandbox: Sandbox) -> None:
    page = problem("C++ slower than Python")
    mode = re.search(r'`(torch\.cuda\.set_sync_debug_mode\("warn"\))`', PAGE).group(1)
    output = sandbox.works(sandbox.script(f"import torch\nx = torch.ones(1, device='cuda')\n{mode}\nx.item()"))
    assert_printed(page.symptoms[2], output)
