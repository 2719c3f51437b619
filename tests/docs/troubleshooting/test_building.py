"""Problems while building: compilers, headers, ninja, nvcc, architectures, locks."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

from support.sandbox import (
    ARCHITECTURES,
    LOAD,
    SOURCES,
    Sandbox,
    assert_printed,
    problem,
    sections,
)


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


@pytest.mark.needs("g++")
def test_a_torch_before_1_0(sandbox: Sandbox) -> None:
    page = problem("A torch before 1.0")
    sandbox.write("old/include/torch/torch.h", "")  # as in torch 0.4
    sandbox.write("lltm.cpp", "#include <torch/extension.h>\n")
    assert_printed(page.symptoms[0], sandbox.fails("g++ -Iold/include -fsyntax-only lltm.cpp"))
    version, folder = sandbox.works(page.fixes[0]).split()
    assert version == torch.__version__
    assert any(Path(folder).joinpath("include").rglob("torch/extension.h"))


@pytest.mark.needs("g++")
def test_no_object_file_on_windows(sandbox: Sandbox) -> None:
    page = problem("No object file on Windows")
    shutil.copy(SOURCES / "module.cpp", sandbox.folder)
    sandbox.write("setup.py", page.fixes[0])
    sandbox.works(
        "python setup.py -q build_ext --inplace", PATH=sandbox.only("sh", "uname", "g++", "c++", "gcc", "as", "ld")
    )
    assert "optimised:" in sandbox.works("python -c 'import torch, _C; print(\"optimised:\", _C.optimised)'")


def test_a_torch_for_rocm(sandbox: Sandbox) -> None:
    page = problem("A torch for ROCm")
    cuda, hip = sandbox.works(page.fixes[0]).split()
    assert [cuda, hip] == [str(torch.version.cuda), str(torch.version.hip)]


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


@pytest.mark.needs("g++", "ninja")
def test_two_sources_of_one_base_name(sandbox: Sandbox) -> None:
    page = problem("Two sources of one base name")
    for name in ("lltm.cpp", "lltm.cc", "lltm_kernel.cc"):
        sandbox.write(f"csrc/{name}", f"int {Path(name).stem};\n")

    def building(sources: str) -> str:
        # A .cc in place of the .cu, so that no nvcc is needed; ninja does not care.
        setup = f"""
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension
{sources.replace(".cu", ".cc")}
setup(name="lltm", packages=[], ext_modules=[CppExtension("_C", SOURCES)], cmdclass={{"build_ext": BuildExtension}})
"""
        sandbox.write("setup.py", setup)
        return "python setup.py -q build_ext --build-temp temp --build-lib built"

    assert_printed(page.symptoms[0], sandbox.fails(building('SOURCES = ["csrc/lltm.cpp", "csrc/lltm.cc"]')))
    sandbox.works(building(page.fixes[0]))
