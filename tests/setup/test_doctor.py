"""`make doctor` on machines that we make up, and once on this one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from common import stages
from common.build import nvcc as architectures
from common.setup import doctor, facts
from common.setup.facts import Machine, Program, Torch
from common.setup.install import Requirement

TORCH = Torch("2.15.0", cuda="13.2", gpus=(("NVIDIA H200", 9, 0),), oldest_capability=(7, 5))
HEALTHY = Machine(
    system="Linux",
    distribution="Debian GNU/Linux 12",
    wsl=False,
    python="3.11.7",
    python_header=True,
    torch=TORCH,
    programs={
        "c++": Program("/usr/bin/c++", "12.2.0"),
        "nvcc": Program("/usr/local/cuda/bin/nvcc", "13.2"),
        **{
            name: Program(f"/usr/bin/{name}", "1.0")
            for name in ("make", "ninja", "cmake", "bwrap", "compute-sanitizer", "ncu")
        },
    },
    nvcc_on_path=True,
    nvcc_newest_gxx=15,
    nvcc_architectures=("7.5", "8.0", "9.0", "10.0"),
    toolkit_lacks=(),
    driver="580.1",
    gpu_names=("NVIDIA H200",),
    shares_cxx_library=True,
    googletest=True,
    server_headers=True,
    cores=8,
    memory=32 * 2**30,
    disk_free=100 * 10**9,
    unwritable="",
)
NO_GPU = replace(HEALTHY, torch=replace(TORCH, gpus=(), no_gpu="Found no NVIDIA driver"), gpu_names=(), driver=None)


def without(*names: str, machine: Machine = HEALTHY) -> Machine:
    return replace(machine, programs={key: value for key, value in machine.programs.items() if key not in names})


def having(name: str, version: str, path: str = "/usr/bin/c++") -> Machine:
    return replace(HEALTHY, programs={**HEALTHY.programs, name: Program(path, version)})


def test_nothing_is_lacking_on_a_healthy_machine() -> None:
    assert [found for found in (probe(HEALTHY) for probe in doctor.PROBES) if found.verdict != "ok"] == []


@pytest.mark.parametrize(
    ("probe", "machine", "verdict", "detail", "fix"),
    [
        (doctor.probe_system, replace(HEALTHY, system="Darwin"), "note", "untested", ""),
        (doctor.probe_system, replace(HEALTHY, wsl=True), "ok", "WSL2", ""),
        (doctor.probe_resources, replace(HEALTHY, memory=8 * 2**30), "note", "8 cores, 8 GB", "MAX_JOBS=4"),
        (doctor.probe_disk, replace(HEALTHY, disk_free=5 * 10**8), "lacks", "0 GB free, 1 GB", "make clean"),
        (doctor.probe_disk, replace(HEALTHY, torch=None, disk_free=5 * 10**9), "lacks", "10 GB", "make clean"),
        (
            doctor.probe_folders,
            replace(HEALTHY, builds="/home/me/.cache/x"),
            "note",
            "builds go to /home/me",
            "a clone",
        ),
        (doctor.probe_folders, replace(HEALTHY, unwritable="/book"), "lacks", "/book", "chown -R $USER /book"),
        (
            doctor.probe_compiler,
            replace(HEALTHY, shares_cxx_library=False),
            "lacks",
            "its own C++ library",
            "/usr/bin/g++",
        ),
        (doctor.probe_python, replace(HEALTHY, python_header=False), "lacks", "Python.h", "python3-dev"),
        (doctor.probe_torch, replace(HEALTHY, torch=None), "lacks", "not installed", "make setup"),
        (doctor.probe_torch, replace(HEALTHY, torch=Torch("2.9.1")), "lacks", "2.9.1", "'torch>=2.11'"),
        (doctor.probe_torch, replace(HEALTHY, torch=Torch("2.11.0a0+x")), "ok", "2.11.0a0+x, CPU build", ""),
        (
            doctor.probe_torch,
            replace(HEALTHY, torch=Torch(problem="libcudnn.so.9: no")),
            "lacks",
            "libcudnn.so.9",
            "reinstall",
        ),
        (
            doctor.probe_packages,
            replace(HEALTHY, lacking=(Requirement("pytest", ">=", "8", ""), Requirement("torch", ">=", "2", ""))),
            "lacks",
            "missing or too old: pytest",
            "make setup",
        ),
        (doctor.probe_compiler, without("c++"), "lacks", "none", "apt install g++"),
        (
            doctor.probe_compiler,
            replace(without("c++"), variables={"CXX": "g++-99"}),
            "lacks",
            "CXX=g++-99 does not exist",
            "unset CXX",
        ),
        (doctor.probe_compiler, having("c++", "9.4.0"), "lacks", "9.4.0; torch needs g++ 10", "CXX=g++-12"),
        (doctor.probe_compiler, having("c++", "16.1"), "note", "accepts g++ up to version 15", "CXX=g++-15"),
        (doctor.probe_compiler, having("c++", "18.1", "/usr/bin/clang++"), "note", "tested with g++", "g++"),
        (doctor.probe_build_tools, without("make"), "lacks", "no make", "apt install make"),
        (doctor.probe_build_tools, without("ninja"), "note", "no ninja", "make setup"),
        (doctor.probe_grading, without("bwrap"), "note", "no bubblewrap", "apt install bubblewrap"),
        (doctor.probe_grading, having("bwrap", "0.6.1"), "note", "0.6.1, 0.8 or newer", "apt install bubblewrap"),
        (doctor.probe_gpu, NO_GPU, "note", "no NVIDIA GPU", "nvidia.com/drivers"),
        (doctor.probe_gpu, replace(HEALTHY, torch=Torch("2.15.0")), "lacks", "is a CPU build", "get-started/locally"),
        (doctor.probe_gpu, replace(HEALTHY, torch=None), "note", "there is no torch to use it", ""),
        (
            doctor.probe_gpu,
            replace(HEALTHY, torch=Torch("2.15.0", "13.2", no_gpu="driver is too old")),
            "lacks",
            "driver is too old",
            "a newer driver",
        ),
        (
            doctor.probe_gpu,
            replace(HEALTHY, torch=Torch("2.15.0", "13.2"), variables={"CUDA_VISIBLE_DEVICES": "-1"}),
            "lacks",
            "hidden by CUDA_VISIBLE_DEVICES=-1",
            "unset CUDA_VISIBLE_DEVICES",
        ),
        (
            doctor.probe_gpu,
            replace(HEALTHY, torch=replace(TORCH, gpus=(("GTX 1080", 6, 1),))),
            "lacks",
            "GTX 1080 (compute capability 6.1): torch 2.15.0 has no code",
            "get-started/locally",
        ),
        (doctor.probe_nvcc, without("nvcc"), "note", "none", "CUDA Toolkit 13.2"),
        (
            doctor.probe_nvcc,
            replace(without("nvcc"), variables={"CUDA_HOME": "/opt/none"}),
            "lacks",
            "CUDA_HOME=/opt/none has none",
            "unset CUDA_HOME",
        ),
        (
            doctor.probe_nvcc,
            having("nvcc", "12.8", "/n"),
            "lacks",
            "built for CUDA 13.2",
            "CUDA_HOME=/usr/local/cuda-13.2",
        ),
        (doctor.probe_nvcc, having("nvcc", "13.0", "/n"), "note", "the same major version", ""),
        (doctor.probe_nvcc, replace(HEALTHY, nvcc_on_path=False), "note", "not on PATH", "/usr/local/cuda/bin:$PATH"),
        (doctor.probe_extras, without("ncu"), "note", "no ncu: optional", "CUDA Toolkit"),
        (doctor.probe_cpp_tests, replace(HEALTHY, googletest=False), "note", "no GoogleTest", "libgtest-dev"),
        (doctor.probe_server, replace(HEALTHY, server_headers=False), "note", "no Boost", "libboost-dev"),
        (doctor.probe_server, without("cmake"), "note", "no CMake: optional, only stage 8", "sudo apt install cmake"),
        (doctor.probe_cpp_tests, replace(HEALTHY, googletest=None), "note", "not tried: there is no compiler", ""),
        (
            doctor.probe_nvcc,
            replace(HEALTHY, toolkit_lacks=("cusparse.h", "libcudart.so")),
            "lacks",
            "without cusparse.h, libcudart.so beside it",
            "conda install cuda-libraries-dev",
        ),
        (doctor.probe_variables, replace(HEALTHY, variables={"MAX_JOBS": "1"}), "note", "MAX_JOBS=1", ""),
        *(
            (doctor.probe_variables, replace(HEALTHY, variables={name: value}), "lacks", says, f"unset {name}")
            for name, value, says in (
                ("TORCH_CUDA_ARCH_LIST", "sm_90", "torch does not know sm_90; write 9.0"),
                ("TORCH_CUDA_ARCH_LIST", "8.0;90", "torch does not know 90; write 9.0"),
                ("TORCH_CUDA_ARCH_LIST", "newest", "torch does not know newest; write 9.0, or 8.0;9.0+PTX"),
                ("TORCH_CUDA_ARCH_LIST", "7.0;9.0", "does not compile for 7.0, but for 7.5, 8.0, 9.0, 10.0"),
                ("NVCC_APPEND_FLAGS", "-std=c++11", "headers need C++17 or newer, not -std=c++11"),
            )
        ),
        *(
            (doctor.probe_variables, replace(HEALTHY, variables={name: value}), "note", f"{name}={value}", "")
            for name, value in (
                ("TORCH_CUDA_ARCH_LIST", "8.0 9.0a+PTX;Hopper;"),
                ("TORCH_CUDA_ARCH_LIST", "Volta+Tegra"),
                ("CXXFLAGS", "-std=c++14"),  # torch's own -std comes after it
                ("NVCC_APPEND_FLAGS", "-std=c++20"),
                ("LD_LIBRARY_PATH", "/opt/lib"),
            )
        ),
    ],
)
def test_a_probe_says_what_is_wrong_and_how_to_mend_it(probe, machine, verdict, detail, fix) -> None:
    found = probe(machine)
    assert found.verdict == verdict
    assert detail in found.detail
    assert fix in found.fix
    if verdict == "lacks":
        assert found.fix


def names(obstacles: list[doctor.Finding]) -> list[str]:
    return [each.name for each in obstacles]


def test_a_stage_of_python_needs_torch_and_no_compiler() -> None:
    machine = without("c++")
    assert doctor.obstacles(stages.get_stage(1), "host", machine) == []
    assert names(doctor.obstacles(stages.get_stage(2), "host", machine)) == ["compiler"]
    assert names(doctor.obstacles(stages.get_stage(1), "host", replace(machine, torch=None))) == ["torch"]


def test_a_cuda_stage_needs_a_gpu_and_nvcc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "has_cpp", lambda stage: True)
    stage = stages.find_stage(3)
    assert doctor.obstacles(stage, "cuda", HEALTHY) == []
    assert names(doctor.obstacles(stage, "cuda", without("nvcc", machine=NO_GPU))) == ["GPU", "nvcc"]
    assert names(doctor.obstacles(stage, "cuda", having("nvcc", "12.8"))) == ["nvcc"]
    assert doctor.obstacles(stage, "cuda", having("nvcc", "13.0")) == []


def test_variables_that_break_builds_for_a_gpu_are_obstacles_there() -> None:
    stage = stages.find_stage(5)
    unknown = replace(HEALTHY, variables={"TORCH_CUDA_ARCH_LIST": "sm_90"})
    assert names(doctor.obstacles(stage, "host", unknown)) == []
    assert names(doctor.obstacles(stage, "cuda", unknown)) == ["variables"]


def test_a_compiler_that_does_not_exist_makes_nothing_else_missing(tmp_path, monkeypatch) -> None:
    line = "#include <cstddef>"
    assert facts.can_compile(line, ["clang++-99"]) is True
    assert facts.can_compile("#include <no/such/header.h>", ["clang++-99"]) is False
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts.can_compile(line, ["clang++-99"]) is None


def test_what_a_toolkit_lacks_beside_nvcc(tmp_path) -> None:
    nvcc = tmp_path / "bin" / "nvcc"
    for name in ("bin/nvcc", "include/crt/host_config.h", "include/cuda_runtime_api.h", "lib/libcudart.so"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o755)
    assert facts.find_lacking_files(str(nvcc)) == ("cusparse.h", "cublas_v2.h", "cusolverDn.h")
    (tmp_path / "include" / "crt" / "host_config.h").unlink()
    assert facts.find_lacking_files(str(nvcc)) == ()  # a script that calls another nvcc
    assert facts.find_lacking_files("") == ()


def test_stage_8_needs_libraries_of_its_own() -> None:
    stage = stages.find_stage(8)
    assert doctor.obstacles(stage, "host", HEALTHY) == []
    assert names(doctor.obstacles(stage, "host", replace(HEALTHY, server_headers=False))) == ["lltm_serve"]


def test_the_report_ends_with_where_each_stage_runs(capsys: pytest.CaptureFixture) -> None:
    assert doctor.print_report(HEALTHY) == 0
    shown = capsys.readouterr().out
    for stage in stages.STAGES:
        [line] = [line for line in shown.splitlines() if line.startswith(f"  {stage.number:>2}  {stage.title}")]
        assert ("can run" in line) == stage.is_here
        assert ("not here yet" in line) == (not stage.is_here)


def test_the_report_fails_when_stage_2_cannot_run(capsys: pytest.CaptureFixture) -> None:
    assert doctor.print_report(without("c++")) == 1
    shown = capsys.readouterr().out
    assert "  lacks  compiler     none\n                      fix: sudo apt install g++" in shown
    assert "host: cannot run (see compiler above)" in shown
    assert shown.rstrip().endswith(
        "Stages 0, 1, 9 can run here: make tour\nThe other stages need the fixes above first."
    )


def test_this_machine_is_looked_at() -> None:
    import torch

    machine = facts.inspect_machine()
    assert machine.torch.version == torch.__version__
    assert len(machine.torch.gpus) == torch.cuda.device_count()
    assert machine.torch.gpus or machine.torch.no_gpu
    assert machine.cores >= 1
    assert machine.memory > 0
    assert all(finding.verdict in ("ok", "note", "lacks") for finding in (probe(machine) for probe in doctor.PROBES))


def test_programs_are_found_by_what_they_print(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = tmp_path / "cuda"
    (cuda / "bin").mkdir(parents=True)
    (cuda / "include" / "crt").mkdir(parents=True)
    (cuda / "include" / "crt" / "host_config.h").write_text("#if defined(__GNUC__)\n#if __GNUC__ > 14\n#error\n")
    nvcc = cuda / "bin" / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'Copyright 2005-2025'\necho 'release 12.9, V12.9.41'\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(cuda))
    assert architectures.find_nvcc() == str(nvcc)
    assert facts.find_program(str(nvcc), "--version", after="release ") == Program(str(nvcc), "12.9")
    assert facts.newest_gxx(str(nvcc)) == 14
    assert facts.find_program("no-such-program") is None
