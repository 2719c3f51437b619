"""Problems while building: kernels that nvcc refuses, headers and libraries that are gone or missing."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from common.build import host
from support.sandbox import INCLUDE, TORCH, Sandbox, assert_printed, compile, problem, sections

# The macros that torch's build passes to nvcc.
OF_TORCH = ("__CUDA_NO_HALF_OPERATORS__", "__CUDA_NO_HALF_CONVERSIONS__", "__CUDA_NO_HALF2_OPERATORS__")


def compiling(sandbox: Sandbox, source: str, *flags: str) -> str:
    """The command that compiles a kernel for one GPU."""
    sandbox.write("kernel.cu", source)
    return f"nvcc -arch=sm_90 {' '.join(flags)} -c kernel.cu -o kernel.o"


@pytest.mark.needs("g++")
def test_thc_is_gone(sandbox: Sandbox) -> None:
    page = problem("THC is gone")
    sandbox.write("module.cpp", "#include <THC/THC.h>\n")
    assert_printed(page.symptoms[0], sandbox.fails(compile()))
    sandbox.write("module.cpp", page.fixes[0])
    sandbox.works(compile())


@pytest.mark.needs("nvcc")
def test_removed_in_cuda_13(sandbox: Sandbox) -> None:
    page = problem("Removed in CUDA 13")
    version = re.search(r"release (\d+)", sandbox.works("nvcc --version")).group(1)
    most = "__global__ void most(float* x) { x[0] = cub::Max()(x[0], x[1]); }\n"
    sources = (
        "#include <thrust/functional.h>\nstruct Twice : thrust::unary_function<float, float> {};\n",
        "#include <cuda_runtime.h>\nint rate(const cudaDeviceProp& of) { return of.clockRate; }\n",
        f"#include <cub/thread/thread_operators.cuh>\n{most}",
    )
    if int(version) >= 13:
        for source, symptom in zip(sources, page.symptoms, strict=False):
            assert_printed(symptom, sandbox.fails(compiling(sandbox, source)))
        four = "#include <cuda_runtime.h>\n__global__ void set(long4* x) { *x = make_long4(1, 2, 3, 4); }\n"
        assert_printed(page.symptoms[3], sandbox.works(compiling(sandbox, four)).replace("‘", "'").replace("’", "'"))
        prefetch = "#include <cuda_runtime.h>\nvoid fetch(void* p) { cudaMemPrefetchAsync(p, 4, 0, nullptr); }\n"
        assert_printed(page.symptoms[4], sandbox.fails(compiling(sandbox, prefetch)))
    sandbox.works(compiling(sandbox, page.fixes[0]))


def kernel_of(expressions: list[str], headers: list[str]) -> str:
    """A kernel in which each expression is a statement of a line of its own."""
    lines = [f"  x[0] = float({expression});" for expression in expressions]
    start = "__global__ void all(float* x, int n) {\n  const float a = x[1], b = x[2];"
    return "\n".join([*(f"#include <{header}>" for header in headers), start, *lines, "}", ""])


@pytest.mark.needs("nvcc")
def test_each_name_that_cuda_13_removed_has_its_replacement(sandbox: Sandbox) -> None:
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \| `(.+)` \|$", sections()["Removed in CUDA 13"], re.MULTILINE)
    old, new, headers = map(list, zip(*rows, strict=True))
    assert len(rows) >= 12
    sandbox.works(compiling(sandbox, kernel_of(new, sorted({*headers})), host.cpp_standard()))
    if int(re.search(r"release (\d+)", sandbox.works("nvcc --version")).group(1)) >= 13:
        removed = kernel_of(old, ["cub/cub.cuh", "thrust/functional.h"])
        output = sandbox.fails(compiling(sandbox, removed, host.cpp_standard()))
        first = removed.splitlines().index("  const float a = x[1], b = x[2];") + 2
        for number, expression in enumerate(old, start=first):
            assert f"kernel.cu({number}): error" in output, expression


@pytest.mark.needs("g++", "nvcc")
def test_the_headers_of_cccl_have_moved(sandbox: Sandbox) -> None:
    page = problem("The headers of CCCL have moved")
    sandbox.write("module.cpp", "#include <thrust/complex.h>\n")
    home = Path(shutil.which("nvcc")).resolve().parents[1]
    if (home / "include" / "cccl").exists():
        assert_printed(page.symptoms[0], sandbox.fails(f"g++ -I{home}/include -fsyntax-only module.cpp"))
    script = page.fixes[0] + "print(extension.include_dirs[0])\n"
    folder = sandbox.works(sandbox.script(script), CUDA_HOME=str(home)).splitlines()[-1]
    assert folder == str(home / "include" / "cccl")
    sandbox.works(f"g++ {host.cpp_standard()} -I{home}/include -I{folder} -fsyntax-only module.cpp")


@pytest.mark.needs("nvcc")
def test_a_kernel_template_of_another_file(sandbox: Sandbox) -> None:
    page = problem("A kernel template of another file")
    template = "template <typename T> __global__ void fill(T* x)"
    sandbox.write("defines.cu", f"{template} {{ *x = 1; }}\ntemplate __global__ void fill<float>(float*);\n")
    main = "int main() { fill<<<1, 1>>>((float*)nullptr); }\n"
    sandbox.write("launches.cu", f"{template};\n{main}")

    def build(flag: str = "") -> str:
        compiled = [f"nvcc -arch=sm_90 {flag} -c {name}.cu 2>&1" for name in ("defines", "launches")]
        return "\n".join([*compiled, "nvcc defines.o launches.o -o program 2>&1"])

    if int(re.search(r"release (\d+)", sandbox.works("nvcc --version")).group(1)) >= 13:
        output = sandbox.fails(build())
        for symptom in page.symptoms:
            assert_printed(symptom, output)
        sandbox.works(build("-static-global-template-stub=false"))
    sandbox.write("defines.cu", page.fixes[0])
    sandbox.write("launches.cu", "void launch_fill(float* x);\nint main() { launch_fill(nullptr); }\n")
    assert "20280" not in sandbox.works(build())


@pytest.mark.needs("nvcc")
def test_operators_of_half_are_switched_off(sandbox: Sandbox) -> None:
    page = problem("Operators of half are switched off")
    sum_of_two = "#include <cuda_fp16.h>\n__global__ void twice(const __half* x, __half* y) { y[0] = x[0] + x[0]; }\n"
    macros = [f"-D{name}" for name in OF_TORCH]
    assert_printed(page.symptoms[0], sandbox.fails(compiling(sandbox, sum_of_two, *macros)))
    sandbox.works(compiling(sandbox, sum_of_two.replace("x[0] + x[0]", "__hadd(x[0], x[0])"), *macros))
    flags = re.search(r'"nvcc": \["(.+?)"\]', page.fixes[0]).group(1)
    sandbox.works(compiling(sandbox, sum_of_two, *macros, flags))
    passed = sandbox.script("import torch.utils.cpp_extension as build\nprint(*build.COMMON_NVCC_FLAGS)")
    assert set(macros) <= set(sandbox.works(passed).split())


@pytest.mark.needs("nvcc")
def test_atomic_add_of_another_type(sandbox: Sandbox) -> None:
    page = problem("atomicAdd of another type")
    source = "#include <cstdint>\n__global__ void count(int64_t* sum) { atomicAdd(sum, int64_t(1)); }\n"
    assert_printed(page.symptoms[0], sandbox.fails(compiling(sandbox, source)))
    flags = ["--expt-relaxed-constexpr", host.cpp_standard(), *shlex.split(INCLUDE)]
    sandbox.works(compiling(sandbox, page.fixes[0], *flags))


@pytest.mark.needs("nvcc")
def test_a_host_function_in_a_kernel(sandbox: Sandbox) -> None:
    page = problem("A host function in a kernel")
    source = "#include <cmath>\n__global__ void largest(float* x) { x[0] = std::fmax(0.0, x[0]); }\n"
    assert_printed(page.symptoms[0], sandbox.fails(compiling(sandbox, source)))
    sandbox.works(compiling(sandbox, page.fixes[0]))


@pytest.mark.needs("g++")
def test_pybind11_and_the_limited_api(sandbox: Sandbox) -> None:
    page = problem("pybind11 and the limited API")
    limited = compile("-DPy_LIMITED_API=0x030A0000")
    sandbox.write("module.cpp", "#include <torch/extension.h>\n")
    assert_printed(page.symptoms[0], sandbox.fails(limited))
    sandbox.write("module.cpp", page.fixes[0])
    sandbox.works(limited)


@pytest.mark.needs("g++")
def test_a_toolkit_without_its_libraries(sandbox: Sandbox) -> None:
    page = problem("A toolkit without its libraries")
    context = (TORCH / "include" / "ATen" / "cuda" / "CUDAContextLight.h").read_text()
    included = re.findall(r"#include <(cu\w+\.h)>", context)
    assert "cusparse.h" in included
    for name in {*included} - {"cusparse.h"}:  # as in a toolkit that has only some of them
        sandbox.write(f"toolkit/include/{name}", "")
    sandbox.write("module.cpp", "".join(f"#include <{name}>\n" for name in included))
    output = sandbox.fails("g++ -nostdinc -Itoolkit/include -fsyntax-only module.cpp")
    assert_printed(page.symptoms[0], output)

    sandbox.compile("toolkit/lib64/libcudart.so", source="twice.cpp")
    sandbox.write("main.cpp", "int main() {}\n")
    # Without the linker's own folders, in one of which a system may have the library.
    linking = "g++ main.cpp -Wl,-nostdlib -Wl,--no-as-needed -lcudart -o main"
    assert_printed(page.symptoms[1], sandbox.fails(linking, LIBRARY_PATH=""))
    sandbox.works(f"{page.fixes[0]}\n{linking}", CUDA_HOME=str(sandbox.folder / "toolkit"), LIBRARY_PATH="")
