"""`make doctor`: what this machine has and lacks, the fix for each thing, and which stages can run here.

facts.py collects the facts, the probes here judge them: each takes a `Machine`, so that a test can pass any machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..build.targets import has_cpp
from ..console import say
from ..stages import STAGES, Stage, find_stage
from ..versions import OLDEST_BUBBLEWRAP, OLDEST_GXX, OLDEST_TORCH, release
from .compiler import PROBLEM
from .facts import Machine, inspect_machine

GPU_TORCH = "install a matching build of torch, see pytorch.org/get-started/locally"


@dataclass(frozen=True)
class Finding:
    """What a probe found. `verdict` is "ok", "lacks" or "note" (nothing is wrong, or only an extra is missing)."""

    verdict: str
    name: str
    detail: str
    fix: str = ""


def probe_system(machine: Machine) -> Finding:
    """Linux and WSL2 are supported."""
    if machine.system != "Linux":
        untested = "untested: the workbook is made for Linux and WSL2"
        fix = "On Windows: wsl --install, then work inside it" if machine.system == "Windows" else ""
        return Finding("note", "system", f"{machine.distribution}; {untested}", fix)
    return Finding("ok", "system", machine.distribution + (" under WSL2" if machine.wsl else ""))


def probe_resources(machine: Machine) -> Finding:
    """Cores and memory: a compiler that includes torch's headers takes 1 to 2 GB."""
    memory = machine.memory / 2**30
    detail = f"{machine.cores} cores, {memory:.0f} GB of memory"
    if memory < 2 * machine.cores and "MAX_JOBS" not in machine.variables:
        jobs = max(1, int(memory / 2))
        return Finding(
            "note", "cores", f"{detail}; one compiler on each core may run out of memory", f"export MAX_JOBS={jobs}"
        )
    return Finding("ok", "cores", detail)


def probe_disk(machine: Machine) -> Finding:
    """Disk space for builds, and for the packages if they are not installed yet."""
    need = 10 if machine.torch is None else 1
    detail = f"{machine.disk_free / 1e9:.0f} GB free"
    if machine.disk_free < need * 1e9:
        return Finding(
            "lacks", "disk", f"{detail}, {need} GB are needed", "free some; `make clean` removes build/ and out/"
        )
    return Finding("ok", "disk", detail)


def probe_folders(machine: Machine) -> Finding:
    """Commands write to build/ and out/."""
    if machine.unwritable:
        fix = f"sudo chown -R $USER {machine.unwritable}"
        return Finding("lacks", "folders", f"{machine.unwritable} cannot be written to", fix)
    if machine.builds:
        fix = "use a clone of your own for commands that write to out/: tour, bench, report"
        return Finding("note", "folders", f"builds go to {machine.builds}", fix)
    return Finding("ok", "folders", "build/ and out/ can be written to")


def probe_python(machine: Machine) -> Finding:
    """Python with its C header, which every extension includes."""
    if not machine.python_header:
        fix = "sudo apt install python3-dev (Fedora: sudo dnf install python3-devel)"
        return Finding("lacks", "python", f"{machine.python}, without Python.h", fix)
    return Finding("ok", "python", f"{machine.python}, with Python.h")


def probe_torch(machine: Machine) -> Finding:
    """A torch that is new enough and can be imported."""
    found = machine.torch
    if found is None:
        return Finding("lacks", "torch", "not installed for this Python", "make setup")
    if found.problem:
        fix = "python -m pip install --force-reinstall torch, or remove .venv and: make setup"
        return Finding("lacks", "torch", f"cannot be imported: {found.problem}", fix)
    if release(found.version) < release(OLDEST_TORCH):
        fix = f"python -m pip install 'torch>={OLDEST_TORCH}', or deactivate this environment and: make setup"
        return Finding("lacks", "torch", f"{found.version}, {OLDEST_TORCH} or newer is needed", fix)
    return Finding("ok", "torch", f"{found.version}, " + (f"for CUDA {found.cuda}" if found.cuda else "CPU build"))


def probe_packages(machine: Machine) -> Finding:
    """The other packages of requirements.txt."""
    others = [each.name for each in machine.lacking if each.name != "torch"]
    if others:
        return Finding("lacks", "packages", f"missing or too old: {', '.join(others)}", "make setup")
    return Finding("ok", "packages", "all of requirements.txt")


def probe_compiler(machine: Machine) -> Finding:
    """A C++ compiler that torch's headers accept, and nvcc if it is installed."""
    found = machine.programs.get("c++")
    install = "sudo apt install g++ (Fedora: sudo dnf install gcc-c++)"
    if found is None:
        wanted = machine.variables.get("CXX")
        detail = f"CXX={wanted} does not exist" if wanted else "none"
        return Finding("lacks", "compiler", detail, f"unset CXX, or {install}" if wanted else install)
    detail = f"{found.path} {found.version}".strip()
    if not machine.shares_cxx_library:
        return Finding("lacks", "compiler", f"{detail}; it {PROBLEM}", "export CC=/usr/bin/gcc CXX=/usr/bin/g++")
    if "clang" in found.path:
        return Finding("note", "compiler", f"{detail}; the workbook is tested with g++", install)
    if found.version and release(found.version) < release(OLDEST_GXX):
        fix = "sudo apt install g++-12, then: export CC=gcc-12 CXX=g++-12"
        return Finding("lacks", "compiler", f"{detail}; torch needs g++ {OLDEST_GXX} or newer", fix)
    newest = machine.nvcc_newest_gxx
    if newest and found.version and release(found.version)[0] > newest:
        fix = f"sudo apt install g++-{newest}, then: export CC=gcc-{newest} CXX=g++-{newest}"
        return Finding("note", "compiler", f"{detail}; nvcc accepts g++ up to version {newest}", fix)
    return Finding("ok", "compiler", detail)


def probe_build_tools(machine: Machine) -> Finding:
    """Make runs the commands; ninja, which `make setup` installs, compiles only changed files."""
    if "make" not in machine.programs:
        return Finding("lacks", "build tools", "no make", "sudo apt install make")
    if "ninja" not in machine.programs:
        return Finding("note", "build tools", "no ninja on PATH: builds work, one file at a time", "make setup")
    versions = [f"{name} {machine.programs[name].version}" for name in ("make", "ninja")]
    return Finding("ok", "build tools", ", ".join(versions))


def probe_gpu(machine: Machine) -> Finding:
    """A GPU that this torch can use, or the reason why it cannot."""
    found = machine.torch
    if found and found.gpus:
        names = ", ".join(f"{name} (compute capability {major}.{minor})" for name, major, minor in found.gpus)
        if min((major, minor) for _, major, minor in found.gpus) < found.oldest_capability:
            return Finding("lacks", "GPU", f"{names}: torch {found.version} has no code for it", GPU_TORCH)
        return Finding("ok", "GPU", names)
    if not machine.gpu_names:
        fix = "with an NVIDIA GPU, install its driver (nvidia.com/drivers; under WSL2: the one for Windows)"
        return Finding("note", "GPU", "no NVIDIA GPU, or no driver for it: nvidia-smi finds none", fix)
    names = f"{', '.join(machine.gpu_names)}, driver {machine.driver}"
    if found is None or found.problem:
        return Finding("note", "GPU", f"{names}; there is no torch to use it")
    if found.cuda is None:
        return Finding("lacks", "GPU", f"{names}, but torch {found.version} is a CPU build", GPU_TORCH)
    if "CUDA_VISIBLE_DEVICES" in machine.variables:
        hidden = machine.variables["CUDA_VISIBLE_DEVICES"]
        return Finding(
            "lacks", "GPU", f"{names}, hidden by CUDA_VISIBLE_DEVICES={hidden}", "unset CUDA_VISIBLE_DEVICES"
        )
    fix = f"install a newer driver (nvidia.com/drivers), or {GPU_TORCH}"
    return Finding("lacks", "GPU", f"{names}, but torch cannot use it: {found.no_gpu}", fix)


def probe_nvcc(machine: Machine) -> Finding:
    """The CUDA compiler, of the same major version as torch's CUDA."""
    found = machine.programs.get("nvcc")
    built_for = machine.torch.cuda if machine.torch else None
    toolkit = f"the CUDA Toolkit {built_for or ''}".strip() + ": developer.nvidia.com/cuda-toolkit-archive"
    if found is None:
        home = machine.variables.get("CUDA_HOME") or machine.variables.get("CUDA_PATH")
        if home:
            return Finding("lacks", "nvcc", f"CUDA_HOME={home} has none", f"unset CUDA_HOME, or install {toolkit}")
        return Finding("note", "nvcc", "none: CUDA code cannot be compiled here", f"install {toolkit}")
    detail = f"{found.path} {found.version}".strip()
    if built_for and found.version:
        if release(found.version)[0] != release(built_for)[0]:
            fix = f"install {toolkit}, and: export CUDA_HOME=/usr/local/cuda-{built_for}"
            return Finding("lacks", "nvcc", f"{detail}, but torch is built for CUDA {built_for}", fix)
        if release(found.version) != release(built_for):
            return Finding(
                "note",
                "nvcc",
                f"{detail}; torch is built for CUDA {built_for}, the same major version, which is sufficient",
            )
    if machine.toolkit_lacks:
        fix = f"install the whole toolkit ({toolkit}), or with conda: conda install cuda-libraries-dev"
        return Finding("lacks", "nvcc", f"{detail}, without {', '.join(machine.toolkit_lacks)} beside it", fix)
    if not machine.nvcc_on_path:
        return Finding("note", "nvcc", f"{detail}, not on PATH", f"export PATH={found.path.rpartition('/')[0]}:$PATH")
    return Finding("ok", "nvcc", detail)


def optional(what: str, here: dict[str, bool | None], why: str, fix: str, found: str) -> Finding:
    """A note that names what is not here and says why that is no obstacle; "ok" with `found` if all is here."""
    absent = [name for name, there in here.items() if there is False]
    if None in here.values():
        return Finding("note", what, "not tried: there is no compiler")
    if absent:
        return Finding("note", what, f"no {' and no '.join(absent)}: {why}", fix)
    return Finding("ok", what, found)


def probe_extras(machine: Machine) -> Finding:
    """Tools that some lessons show but none requires."""
    here = {name: name in machine.programs for name in ("compute-sanitizer", "ncu")}
    return optional("CUDA tools", here, "optional", "they come with the CUDA Toolkit", "compute-sanitizer, ncu")


def probe_cpp_tests(machine: Machine) -> Finding:
    """CMake and GoogleTest, which build the tests in C++."""
    here = {"CMake": "cmake" in machine.programs, "GoogleTest": machine.googletest}
    cmake = machine.programs.get("cmake")
    found = f"CMake {cmake and cmake.version}, GoogleTest"
    return optional("C++ tests", here, "optional", "sudo apt install cmake libgtest-dev", found)


def probe_server(machine: Machine) -> Finding:
    """CMake and two libraries, which build the program of stage 8."""
    here = {"CMake": "cmake" in machine.programs, "Boost, OpenSSL or nlohmann-json": machine.server_headers}
    fix = "sudo apt install cmake libboost-dev libssl-dev nlohmann-json3-dev"
    found = "CMake, Boost, OpenSSL, nlohmann-json"
    return optional("lltm_serve", here, "optional, only stage 8 needs them", fix, found)


def probe_grading(machine: Machine) -> Finding:
    """Bubblewrap, which isolates submissions from the teacher's files in `make grade`."""
    found = machine.programs.get("bwrap")
    fix = "sudo apt install bubblewrap (Fedora: sudo dnf install bubblewrap)"
    if found is None:
        return Finding("note", "grading", "no bubblewrap: optional, only teachers need it (make grade)", fix)
    if release(found.version) < release(OLDEST_BUBBLEWRAP):
        return Finding("note", "grading", f"bubblewrap {found.version}, {OLDEST_BUBBLEWRAP} or newer is needed", fix)
    return Finding("ok", "grading", f"bubblewrap {found.version}")


def probe_variables(machine: Machine) -> Finding:
    """Environment variables that change a build, and those among them that break every build for a GPU."""
    if not machine.variables:
        return Finding("ok", "variables", "none that change a build")
    if wrong := [*wrong_flags(machine), *wrong_architectures(machine)]:
        names = " ".join(each.partition("=")[0] for each in wrong)
        return Finding("lacks", "variables", "; ".join(wrong), f"unset {names}")
    listed = "  ".join(f"{name}={value}" for name, value in machine.variables.items())
    return Finding("note", "variables", f"these change builds: {listed}")


def wrong_flags(machine: Machine) -> list[str]:
    """Why nvcc's last flags do not fit torch's headers. (Those of the C++ compiler come before torch's own.)"""
    value = machine.variables.get("NVCC_APPEND_FLAGS", "")
    old = re.search(r"-std[= ](?:c|gnu)\+\+(?:03|98|0x|11|1y|14)\b", value)
    return [f"NVCC_APPEND_FLAGS={value}: torch's headers need C++17 or newer, not {old[0]}"] if old else []


def wrong_architectures(machine: Machine) -> list[str]:
    """What TORCH_CUDA_ARCH_LIST names that torch or nvcc does not know, with the reason."""
    value = machine.variables.get("TORCH_CUDA_ARCH_LIST", "")
    for item in re.split(r"[ ;]+", value.strip(" ;")) if value else ():
        name = item.removesuffix("+PTX")
        if re.fullmatch(r"[A-Z][a-z]+(\+[A-Z][a-z]+)?", name):  # such as Hopper or Volta+Tegra
            continue
        if not re.fullmatch(r"\d+\.\d[af]?", name):
            number = re.fullmatch(r"(?:sm_|compute_)?(\d+)(\d)", name)
            meant = f"write {number[1]}.{number[2]}" if number else "write 9.0, or 8.0;9.0+PTX"
            return [f"TORCH_CUDA_ARCH_LIST={value}: torch does not know {item}; {meant}"]
        if machine.nvcc_architectures and name.rstrip("af") not in machine.nvcc_architectures:
            known = ", ".join(machine.nvcc_architectures)
            return [f"TORCH_CUDA_ARCH_LIST={value}: this nvcc does not compile for {name}, but for {known}"]
    return []


PROBES = (
    *(
        probe_system,
        probe_resources,
        probe_disk,
        probe_folders,
        probe_python,
        probe_torch,
        probe_packages,
        probe_compiler,
        probe_build_tools,
    ),
    *(probe_gpu, probe_nvcc, probe_extras, probe_cpp_tests, probe_server, probe_grading, probe_variables),
)
NEEDS_OF_A_BUILD = (probe_torch, probe_folders, probe_disk, probe_python, probe_compiler)


def obstacles(stage: Stage, target: str, machine: Machine) -> list[Finding]:
    """Why an existing stage cannot run on a target here, each reason with its fix; empty if it can."""
    needs = NEEDS_OF_A_BUILD if has_cpp(stage) or stage.number == 8 else (probe_torch,)
    found = [finding for finding in (probe(machine) for probe in needs) if finding.verdict == "lacks"]
    if stage.number == 8 and probe_server(machine).verdict != "ok":
        found.append(probe_server(machine))
    if target == "cuda":
        # A GPU and nvcc are optional for a machine, but this target needs both.
        if not (machine.torch and machine.torch.gpus) or probe_gpu(machine).verdict == "lacks":
            found.append(probe_gpu(machine))
        if "nvcc" not in machine.programs or probe_nvcc(machine).verdict == "lacks":
            found.append(probe_nvcc(machine))
        if probe_variables(machine).verdict == "lacks":
            found.append(probe_variables(machine))
    return found


def stage_outlook(stage: Stage, machine: Machine) -> str:
    """Whether each target of a stage can run on this machine; if not, which findings say why."""
    if not stage.is_here:
        return "not here yet"
    found = []
    for target in stage.targets:
        names = ", ".join(each.name for each in obstacles(stage, target, machine))
        found.append(f"{target}: cannot run (see {names} above)" if names else f"{target}: can run")
    return "; ".join(found)


def doctor() -> int:
    """Prints every finding and where each stage can run; the status is 0 if stages 0 to 2 can run here."""
    return print_report(inspect_machine())


def print_report(machine: Machine) -> int:
    """Prints the report of `doctor` for any machine."""
    say("This machine")
    for finding in (probe(machine) for probe in PROBES):
        say(f"  {finding.verdict:<5}  {finding.name:<11}  {finding.detail}")
        if finding.fix:
            say(f"{'':22}{'fix' if finding.verdict == 'lacks' else 'if wanted'}: {finding.fix}")
    say("\nStages")
    for stage in STAGES:
        say(f"  {stage.number:>2}  {stage.title:<36}  {stage_outlook(stage, machine)}")
    can_run = [str(stage.number) for stage in STAGES if runs_here(stage, machine)]
    basic = all(runs_here(find_stage(number), machine) for number in (0, 1, 2))
    say(f"\nStages {', '.join(can_run)} can run here: make tour" if can_run else "\nNo stage can run here yet.")
    if not basic:
        say("The other stages need the fixes above first.")
    return 0 if basic else 1


def runs_here(stage: Stage, machine: Machine) -> bool:
    """Whether a stage exists and can run on at least one of its targets here."""
    return stage.is_here and any(not obstacles(stage, target, machine) for target in stage.targets)
