"""The emulator's rewriter: what it changes, what it leaves alone, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.emulator.rewrite import rewrite
from common.emulator.tokens import Source
from common.errors import UserError
from common.stages import ROOT

STARTS_WITH = '#include <cuda_runtime.h>\n#line 1 "csrc/k.cu"\n'


def rewritten(text: str, path: str = "csrc/k.cu") -> str:
    """The rewritten text, without the lines that the rewriter puts in front."""
    return rewrite(Source(path, text)).partition(f'#line 1 "{path}"\n')[2]


def launch(kernel: str, configuration: str, between: str = "") -> str:
    """What a launch becomes."""
    return (
        f'::emulator::launch("{kernel}", [=](auto... emulator_args) {{ {kernel}{between}(emulator_args...); }}, '
        f"::emulator::config({configuration}))"
    )


def in_function(statement: str) -> str:
    return f"template <typename T, int N>\n__global__ void f() {{ {statement} }}\n"


def test_begins_with_what_nvcc_includes_and_the_original_name():
    assert rewrite(Source("csrc/k.cu", "int x;\n")) == STARTS_WITH + "int x;\n"
    assert rewrite(Source("csrc/math.h", "int x;\n")) == '#line 1 "csrc/math.h"\nint x;\n'


KERNELS = [
    "kernel",
    "kernel<float>",
    "kernel<T, 256>",
    "kernel<foo<bar<baz<int>>>>",
    "kernel<(N >> 1), (a > b)>",
    "kernel<1 << 4>",
    "kernel<N < 4>",
    "kernel<sizeof(T) < 4>",
    "lltm::detail::kernel<scalar_t>",
    "::kernel",
    "Cell<T>::kernel",
    "Policy::template kernel<T>",
    "(kernel<float>)",
    "kernels[i]",
    "kernel_for(batch_size)",
    "kernel_for<float>(batch_size)",
    "table.kernel",
    "table->kernels[2]",
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("before", ["", "if (c) ", "else ", "x = 1; ", "[&] { return ", "case 1: "])
def test_finds_where_the_kernel_begins(kernel, before):
    assert rewritten(f"{before}{kernel}<<<1, 2>>>(x);") == f"{before}{launch(kernel, '1, 2')}(x);"


CONFIGURATIONS = [
    "grid, block",
    "(n + 255) / 256, 256, 0, stream",
    "dim3(1, 2), dim3{3, 4}, n << 3",
    "n < 4 ? 1 : 2, 32",
    "n > 4 ? 1 : 2, 32",
    "(n >> 3), 32",
    "1, Foo<Bar<Baz<int>>>::value",
    "1, f<int>",
    "1, size<A<B<int>>>(n), 0",
    "blocks<T>(n), kThreads, sizeof(std::vector<std::vector<int>>), c10::cuda::getCurrentCUDAStream()",
    "[&] { return n < m ? n : m; }(), 32",
    "1, /* >>>( */ 32",
]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("after", ["(x);", "(x, a < b, c >> 2);", "(foo<bar<baz<int>>>(x));", "\n    (x);"])
def test_finds_where_the_configuration_ends(configuration, after):
    text = f"kernel<<<{configuration}>>>{after}"
    assert rewritten(text) == launch("kernel", configuration) + after


def test_several_launches_in_a_line():
    assert rewritten("a<<<1, n < m>>>(x), b<<<2, 3>>>(y); c<<<4, 5>>>(z);") == (
        f"{launch('a', '1, n < m')}(x), {launch('b', '2, 3')}(y); {launch('c', '4, 5')}(z);"
    )


def test_a_launch_over_several_lines_keeps_them():
    text = "kernel<T>  // which\n    <<<grid,\n       block>>>(\n        x);\n"
    assert rewritten(text) == launch("kernel<T>", "grid,\n       block", "  // which\n    ") + "(\n        x);\n"


def test_brackets_that_an_editor_pulled_apart():
    assert rewritten("kernel << <1, 2 >> >(x);") == launch("kernel", "1, 2 ", " ") + "(x);"


def test_launch_in_a_lambda_in_a_macro_call():
    text = 'AT_DISPATCH_FLOATING_TYPES(t, "f", [&] { k<scalar_t><<<1, 2>>>(x); });'
    assert launch("k<scalar_t>", "1, 2") + "(x); });" in rewritten(text)


def test_launch_in_the_body_of_a_macro_is_named_after_its_parameters():
    text = "#define RUN(kernel, n) \\\n  kernel<<<(n), \\\n    32>>>(n)\nRUN(f, 3);\n"
    new = rewrite(Source("csrc/k.cu", text))
    assert "launch(EMULATOR_NAME(kernel), " in new
    assert "#define EMULATOR_NAME(...) #__VA_ARGS__\n#line 1" in new
    assert new.partition("#line 1")[2].count("\n") == text.count("\n") + 1
    assert new.endswith("RUN(f, 3);\n")


@pytest.mark.parametrize(
    "text",
    [
        "// kernel<<<1, 2>>>(x)\n",
        "// a backslash goes on \\\n kernel<<<1, 2>>>(x)\n",
        "/* kernel<<<1,\n 2>>>(x) __shared__ float x[2]; */",
        'f("kernel<<<1, 2>>>(x)");',
        'f("\\"kernel<<<1, 2>>>(x)");',
        'f(R"(kernel<<<1, 2>>>(")" x)");',
        'f(R"cpp(kernel<<<1, 2>>>(x) )" __shared__ int y; at::kCUDA)cpp");',
        "char c = '\"'; foo<bar<baz<int>>>(x); char d = '\"';",
        "int n = 1'000'000; foo<bar<baz<int>>>(x);",
        "x = a << b >> c; y <<= 3; z >>= 2; operator<<<int>(a, b);",
        "template <typename T = foo<bar<int>>> struct X {};",
        "// asm volatile is only talked about, like tex2D(\n",
        "#error don't\nint x;\n",
        'is_cuda("is_cuda()"); int kernel;',
        "#include <cuda_fp16.h>\n#include <c10/cuda/CUDAStream.h>\n#include <cuda.h>\n",
        "#if 0\n#include <mma.h>\n#endif\n",
        "#define __shared__\n",
    ],
)
def test_leaves_everything_else_alone(text):
    assert rewritten(text) == text


SHARED = {
    "__shared__ float x;": "float& x = ::emulator::shared<float>(KEY);",
    "__shared__ float x[32];": "float (&x)[32] = ::emulator::shared<float[32]>(KEY);",
    "__shared__ T x[N][N + 1];": "T (&x)[N][(N + 1)] = ::emulator::shared<T[N][(N + 1)]>(KEY);",
    "__shared__ T x[(N > 3) ? 1 : 2];": "T (&x)[((N > 3) ? 1 : 2)] = ::emulator::shared<T[((N > 3) ? 1 : 2)]>(KEY);",
    "__shared__ typename Foo<T>::Storage x;": (
        "typename Foo<T>::Storage& x = ::emulator::shared<typename Foo<T>::Storage>(KEY);"
    ),
    "__shared__ std::pair<int, float> x[4];": (
        "std::pair<int, float> (&x)[4] = ::emulator::shared<std::pair<int, float>[4]>(KEY);"
    ),
    "__shared__ unsigned long long x;": "unsigned long long& x = ::emulator::shared<unsigned long long>(KEY);",
    "__shared__ struct Pair x;": "struct Pair& x = ::emulator::shared<struct Pair>(KEY);",
    "static __shared__ int x;": "int& x = ::emulator::shared<int>(KEY);",
    "volatile __shared__ int x[2];": "volatile int (&x)[2] = ::emulator::shared<volatile int[2]>(KEY);",
    "float __shared__ x[2];": "float (&x)[2] = ::emulator::shared<float[2]>(KEY);",
    "__shared__ T* x[2];": "T* (&x)[2] = ::emulator::shared<T*[2]>(KEY);",
    "__shared__ alignas(16) char x[64];": (
        "struct alignas(16) emulator_aligned_x { char value[64]; }; "
        "char (&x)[64] = ::emulator::shared<emulator_aligned_x>(KEY).value;"
    ),
    "__shared__ union { float f; int i; } x;": (
        "using emulator_type_x = union { float f; int i; }; "
        "emulator_type_x& x = ::emulator::shared<emulator_type_x>(KEY);"
    ),
    "extern __shared__ float x[];": "float* x = ::emulator::dynamic_shared<float>();",
    "extern __shared__ T x[][N];": "T (*x)[N] = ::emulator::dynamic_shared<T[N]>();",
    "extern __shared__ __align__(sizeof(double)) unsigned char x[];": (
        "unsigned char* x = ::emulator::dynamic_shared<unsigned char>();"
    ),
    "extern alignas(16) __shared__ char x[];": "char* x = ::emulator::dynamic_shared<char>();",
}


@pytest.mark.parametrize("declaration", SHARED)
def test_shared_declarations(declaration):
    new = rewritten(in_function(declaration))
    assert re.sub(r"\(2\d{4}\)", "(KEY)", new) == in_function(SHARED[declaration])


def test_several_shared_variables_each_have_a_key():
    text = "__shared__ float a[2], b, *c; __shared__ int d;\n __shared__ int e;"
    new = rewritten(in_function(text))
    keys = re.findall(r"shared<[^>]*>\((\d+)\)", new)
    assert len(keys) == len(set(keys)) == 5
    assert "float (&a)[2] = " in new
    assert "; float& b = " in new
    assert "; float*& c = " in new


def test_shared_over_several_lines_keeps_them():
    new = rewritten(in_function("__shared__ float\n  x[2],\n  y;  // here\n int z;"))
    assert new.count("\n") == in_function("\n\n\n").count("\n")
    assert new.splitlines()[4].startswith(" int z;")


def test_shared_in_a_macro_counts_its_uses():
    new = rewritten("#define TILE(name) __shared__ float name[32]\n" + in_function("TILE(a); TILE(b);"))
    key = "10020 + 10000000000 * __COUNTER__"
    assert new.startswith(f"#define TILE(name) float (&name)[32] = ::emulator::shared<float[32]>({key})\n")


def test_shared_at_file_scope_is_found_by_the_functions_that_name_it():
    text = (
        "namespace a {\n__shared__ int x[2];\n"
        "__global__ void f() { x[0] = 1; }\nvoid __global__ g() { y.x = 1; }\n}\n"
    )
    assert rewritten(text).splitlines() == [
        "namespace a {",
        "static decltype(auto) emulator_shared_x() { int (&x)[2] = ::emulator::shared<int[2]>(20001); return x; };",
        "__global__ void f() { decltype(auto) x = emulator_shared_x(); x[0] = 1; }",
        "void __global__ g() { y.x = 1; }",
        "}",
    ]


def test_host_code_expects_tensors_on_the_cpu():
    text = (
        'TORCH_CHECK(x.is_cuda() && p->is_cuda(), "is_cuda");  // at::kCUDA\n'
        "auto o = at::device(at::kCUDA), q = torch::kCUDA; auto t = c10::DeviceType::CUDA;\n"
        "TORCH_LIBRARY_IMPL(lltm, CUDA, m) {}\nTORCH_LIBRARY_IMPL(lltm, AutogradCUDA, m) {}\n"
        "m.impl(torch::dispatch(c10::DispatchKey::CUDA, f)); int CUDA;\n"
    )
    assert rewritten(text, "csrc/lltm.cpp") == (
        'TORCH_CHECK(x.is_cpu() && p->is_cpu(), "is_cuda");  // at::kCUDA\n'
        "auto o = at::device(at::kCPU), q = torch::kCPU; auto t = c10::DeviceType::CPU;\n"
        "TORCH_LIBRARY_IMPL(lltm, CPU, m) {}\nTORCH_LIBRARY_IMPL(lltm, AutogradCPU, m) {}\n"
        "m.impl(torch::dispatch(c10::DispatchKey::CPU, f)); int CUDA;\n"
    )


REFUSED = {
    'asm volatile("bar.sync 0;");': "the emulator cannot run inline PTX (asm)",
    '__asm__("");': "the emulator cannot run inline PTX (asm)",
    "g<<<1, 2>>>(x);": "the emulator cannot launch a kernel from a kernel (dynamic parallelism)",
    "float v = tex2D<float>(t, 1, 2);": "the emulator has no textures and surfaces (tex2D)",
    "cudaTextureObject_t t;": "the emulator has no textures and surfaces (cudaTextureObject_t)",
    "surf2Dwrite(v, s, 1, 2);": "the emulator has no textures and surfaces (surf2Dwrite)",
    "__shared__ float x[2] = {1, 2};": "a __shared__ variable cannot have an initial value",
    "__shared__ int x{3};": "a __shared__ variable cannot have an initial value",
    "__shared__ float x[];": "a __shared__ array without a size must be extern",
    "__shared__ float (*x)[2];": "the emulator cannot read this __shared__ declaration; name its type first",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_refuses_in_one_line_that_names_thing_and_place(statement):
    with pytest.raises(UserError) as error:
        rewritten(in_function("\n" + statement))
    assert str(error.value) == f"csrc/k.cu:3: {REFUSED[statement]}"


def test_refuses_at_file_scope():
    with pytest.raises(UserError, match=r"^csrc/k.cu:2: the emulator has no __managed__ variables$"):
        rewritten("\n__device__ __managed__ int x;")
    with pytest.raises(UserError, match=r"^csrc/k.cu:2: the emulator has no <cooperative_groups\.h>$"):
        rewritten("\n#include <cooperative_groups.h>  // for grid barriers")
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: the emulator has no <cub/cub\.cuh>$"):
        rewritten('#include "cub/cub.cuh"')
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: no kernel in front of this <<<$"):
        rewritten("#define CONFIGURATION <<<1, 2>>>(x)\n")
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: this <<< has no >>>\( that ends it$"):
        rewritten("void f() { kernel<<<1, 2>>; }")


@pytest.mark.parametrize(
    "condition", ["#if 0", "#ifdef __CUDA_ARCH__", "#if defined(__CUDA_ARCH__)", "#if __CUDA_ARCH__ >= 800"]
)
def test_what_the_compiler_skips_is_not_refused(condition):
    text = f'\n{condition}\n  asm("nop;");\n#else\n  g();\n#endif\n'
    assert rewritten(in_function(text)) == in_function(text)


@pytest.mark.parametrize("condition", ["#if 1", "#if __CUDA_ARCH__ < 800", "#ifndef __CUDA_ARCH__", "#ifdef FAST"])
def test_what_the_compiler_may_see_is_refused(condition):
    with pytest.raises(UserError, match=r"csrc/k.cu:4: .*PTX"):
        rewritten(in_function(f'\n{condition}\n  asm("nop;");\n#endif\n'))


def test_host_code_may_launch_beside_device_code():
    text = (
        "struct S { __device__ S() : x{1} {} __device__ void operator()() {} int x; };\n"
        "#define DEVICE __host__ __device__\nDEVICE int g();\n__device__ int table[2] = {1, 2};\n"
        "void host() { kernel<<<1, 2>>>(table); }\n"
    )
    assert launch("kernel", "1, 2") in rewritten(text)
    with pytest.raises(UserError, match=r":6: .*dynamic parallelism"):
        rewritten(text + "DEVICE int h() { kernel<<<1, 2>>>(table); }\n")


def test_branches_of_the_preprocessor_each_close_their_brackets():
    text = (
        "#ifdef A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n  kernel<<<1, 2>>>(x);\n}\n"
        "void g() { k<<<(1), 2>>>(); }"
    )
    new = rewritten(text)
    assert launch("kernel", "1, 2") in new
    assert launch("k", "(1), 2") in new


def test_lines_stay_where_they_are():
    for stage in ("stage3_cuda_pointers", "stage4_cuda_accessors"):
        for path in sorted((ROOT / "stages" / stage / "csrc").iterdir()):
            text = path.read_text()
            old, new = text.splitlines(), rewritten(text, path.name).splitlines()
            assert len(old) == len(new)
            changed = [line for line, other in zip(old, new, strict=True) if line != other]
            assert all(re.search(r"<<<|_kernel<|is_cuda", line) for line in changed)


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "common.emulator.rewrite", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_command_line(tmp_path):
    source, output = tmp_path / "k.cu", tmp_path / "new" / "k.cpp"
    source.write_text("kernel<<<1, 2>>>(x);\n")
    assert run(source, "-o", output).returncode == 0
    assert output.read_text().startswith(f'#include <cuda_runtime.h>\n#line 1 "{source}"\n::emulator::launch(')


def test_command_line_says_what_is_wrong(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("__managed__ int x;\n")
    refused = run(source, "-o", tmp_path / "k.cpp")
    assert refused.stderr == f"error: {source}:1: the emulator has no __managed__ variables\n"
    missing = run(tmp_path / "no.cu", "-o", tmp_path / "k.cpp")
    assert missing.stderr == f"error: cannot read {tmp_path}/no.cu: No such file or directory\n"
    assert (refused.returncode, missing.returncode) == (1, 1)
    source.write_bytes(b"\xff\xfe")
    assert run(source, "-o", tmp_path / "k.cpp").stderr == f"error: {source} is not text in UTF-8\n"
