"""The emulator's rewriter: what it changes, what it leaves alone, and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from common.emulator.rewrite import Source, rewrite
from common.errors import UserError
from common.paths import ROOT

STARTS_WITH = '#include "emulator/nvcc.h"\n#line 1 "csrc/k.cu"\n'


def rewritten(text: str, path: str = "csrc/k.cu") -> str:
    """The rewritten text, without the lines that the rewriter adds at the top."""
    return rewrite(Source(path, text)).partition(f'#line 1 "{path}"\n')[2]


def launch(kernel: str, configuration: str, between: str = "", names: str = "x") -> str:
    """The rewritten form of a launch; `names` are the names of its arguments."""
    return (
        f'::emulator::launch("{kernel}", "{names}", [=](auto&&... emulator_args) {{ '
        f"{kernel}{between}(emulator_args...); }}, ::emulator::config({configuration}))"
    )


def in_function(statement: str) -> str:
    return f"template <typename T, int N>\n__global__ void f() {{ {statement} }}\n"


def test_begins_with_what_nvcc_includes_and_the_original_name():
    assert rewrite(Source("csrc/k.cu", "int x;\n")) == STARTS_WITH + "int x;\n"
    assert rewrite(Source("csrc/k.cuh", "int x;\n")) == '#include <cuda_runtime.h>\n#line 1 "csrc/k.cuh"\nint x;\n'
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
@pytest.mark.parametrize("arguments", ["x", "x, a < b, c >> 2", "foo<bar<baz<int>>>(x)"])
@pytest.mark.parametrize("blank", ["", "\n    "])
def test_finds_where_the_configuration_ends(configuration, arguments, blank):
    text = f"kernel<<<{configuration}>>>{blank}({arguments});"
    assert rewritten(text) == f"{launch('kernel', configuration, names=arguments)}{blank}({arguments});"


def test_several_launches_in_a_line():
    assert rewritten("a<<<1, n < m>>>(x), b<<<2, 3>>>(y); c<<<4, 5>>>(z);") == (
        f"{launch('a', '1, n < m')}(x), {launch('b', '2, 3', names='y')}(y); {launch('c', '4, 5', names='z')}(z);"
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
    assert "launch(EMULATOR_NAME(kernel), EMULATOR_NAME(n), " in new
    assert "#define EMULATOR_NAME(...) #__VA_ARGS__\n#line 1" in new
    assert new.partition("#line 1")[2].count("\n") == text.count("\n") + 1
    assert new.endswith("RUN(f, 3);\n")


PARAMETERS = {
    "float* x": "x",
    "const T* __restrict__ x, T* y, int64_t n": "const x, y, n",
    "float x[], float y[3][4]": "x, y",
    "void (*f)(int, float), int (&table)[3]": "f, table",
    "Accessor<T, 2> x, std::pair<int, float> y": "x, y",
    "[[maybe_unused]] int x, const __grid_constant__ Params params": "x, params",
    "unsigned long long x, struct Pair y, ns::Type z": "x, y, z",
    "T* x /* [B, S] */,  // first\n  int n = f(1, 2)": "x, n",
    "float*, unsigned int, Foo, ns::Foo, const Foo& n": "a, b, c, d, n",
}


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize(
    "head",
    [
        "template <typename T> __global__ void k({});",
        "__global__ void __launch_bounds__(256, 2) k({}) {{ }}",
        "template <> __global__ void k<int>({}) {{ }}",
        "static void __global__ k({}) {{ }}",
        'extern "C" __global__ __attribute__((noinline)) void k({});',
        "#define KERNEL static __global__\nKERNEL void k({}) {{ }}",
        "namespace a {{ struct K {{ static __global__ void k({}) {{ }} }}; }}",
    ],
)
def test_a_launch_names_the_parameters_of_its_kernel(head, parameters):
    arguments = ", ".join("abcdef"[: len(PARAMETERS[parameters].split(", "))])
    new = rewritten(head.format(parameters) + f"\nvoid f() {{ a::K::k<int><<<1, 2>>>({arguments}); }}")
    assert f'launch("a::K::k<int>", "{PARAMETERS[parameters]}", ' in new


def test_a_launch_names_its_arguments_where_no_parameters_are_seen():
    file = "__global__ void k(int* p);\n"
    for text in ('x.data<int>(), "a,b"', "k", ""):
        escaped = text.replace('"', '\\"')
        assert f'launch("other", "{escaped}", ' in rewritten(f"{file}other<<<1, 2>>>({text});")
    assert 'launch("t.k", "x", ' in rewritten(file + "t.k<<<1, 2>>>(x);")
    assert "EMULATOR_NAME(k), EMULATOR_NAME(x)," in rewritten(file + "#define RUN(k, x) k<<<1, 2>>>(x)\n")
    assert 'EMULATOR_NAME(k<x>), "p", ' in rewritten(file + "#define RUN(x) k<x><<<1, 2>>>(x)\n")
    assert "EMULATOR_NAME(__VA_ARGS__)," in rewritten("#define RUN(k, ...) k<<<1, 2>>>(__VA_ARGS__)\n")
    assert 'launch("k", "p", ' in rewritten(file + "k<<<1, 2>>>(xs...);")
    assert 'launch("v", "a, b", ' in rewritten(
        "template <class... T> __global__ void v(T... xs);\nv<<<1, 2>>>(a, b);"
    )


def test_an_overload_is_known_by_the_number_of_its_parameters():
    file = "__global__ void k(int* p);\n__global__ void k(int* q, int n, int m = 3) {}\n"
    assert 'launch("k", "p", ' in rewritten(file + "k<<<1, 2>>>(x);")
    assert 'launch("k", "q, n", ' in rewritten(file + "k<<<1, 2>>>(x, f<a, b>(2));")
    assert 'launch("k", "q, n, m", ' in rewritten(file + "k<<<1, 2>>>(x, i, i < a);")
    assert 'launch("k", "x, 1, 2, 3", ' in rewritten(file + "k<<<1, 2>>>(x, 1, 2, 3);")


def test_braces_become_values_of_the_parameters_type():
    file = "__global__ void k(const ns::Pair<int, 2> pair, __grid_constant__ const P p, float x);\n"
    new = rewritten(file + "k<<<1, 2>>>({1, 2}, {}, {3});").splitlines()[1]
    assert new.endswith("(ns::Pair<int, 2>{1, 2}, P{}, float{3});")


def test_literal_null_pointers():
    file = "template <class T> __global__ void k(T* x, const T y[], int n, void (*f)(int), std::vector<T*> v);\n"
    new = rewritten(file + "k<<<1, 2>>>(0, NULL, 0, NULL, 0);").splitlines()[1]
    assert new.endswith("(nullptr, nullptr, 0, nullptr, 0);")
    assert rewritten("k<<<1, 2>>>(0, x + 0, 0.0);").endswith("(::emulator::Zero{}, x + 0, 0.0);")


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
    "__shared__ float x;": 'float& x = ::emulator::shared<float>(KEY, "x");',
    "__shared__ float x[32];": 'float (&x)[32] = ::emulator::shared<float[32]>(KEY, "x");',
    "__shared__ T x[N][N + 1];": 'T (&x)[N][(N + 1)] = ::emulator::shared<T[N][(N + 1)]>(KEY, "x");',
    "__shared__ T x[(N > 3) ? 1 : 2];": (
        'T (&x)[((N > 3) ? 1 : 2)] = ::emulator::shared<T[((N > 3) ? 1 : 2)]>(KEY, "x");'
    ),
    "__shared__ typename Foo<T>::Storage x;": (
        'typename Foo<T>::Storage& x = ::emulator::shared<typename Foo<T>::Storage>(KEY, "x");'
    ),
    "__shared__ std::pair<int, float> x[4];": (
        'std::pair<int, float> (&x)[4] = ::emulator::shared<std::pair<int, float>[4]>(KEY, "x");'
    ),
    "__shared__ unsigned long long x;": 'unsigned long long& x = ::emulator::shared<unsigned long long>(KEY, "x");',
    "__shared__ struct Pair x;": 'struct Pair& x = ::emulator::shared<struct Pair>(KEY, "x");',
    "static __shared__ int x;": 'int& x = ::emulator::shared<int>(KEY, "x");',
    "volatile __shared__ int x[2];": 'volatile int (&x)[2] = ::emulator::shared<volatile int[2]>(KEY, "x");',
    "float __shared__ x[2];": 'float (&x)[2] = ::emulator::shared<float[2]>(KEY, "x");',
    "__shared__ T* x[2];": 'T* (&x)[2] = ::emulator::shared<T*[2]>(KEY, "x");',
    "__shared__ alignas(16) char x[64];": (
        "struct alignas(16) emulator_aligned_x { char value[64]; }; "
        'char (&x)[64] = ::emulator::shared<emulator_aligned_x>(KEY, "x").value;'
    ),
    "__shared__ union { float f; int i; } x;": (
        "using emulator_type_x = union { float f; int i; }; "
        'emulator_type_x& x = ::emulator::shared<emulator_type_x>(KEY, "x");'
    ),
    "__shared__ struct Pair { float a[2 * N], b; } x[2];": (
        "using emulator_type_x = struct Pair { float a[2 * N], b; }; "
        'emulator_type_x (&x)[2] = ::emulator::shared<emulator_type_x[2]>(KEY, "x");'
    ),
    "extern __shared__ float x[];": (
        'extern float emulator_dynamic_x[]; float* x = ::emulator::dynamic_shared<float>("x");'
    ),
    "extern __shared__ T x[][N];": (
        'extern T emulator_dynamic_x[][N]; T (*x)[N] = ::emulator::dynamic_shared<T[N]>("x");'
    ),
    "extern __shared__ __align__(sizeof(double)) unsigned char x[];": (
        "extern unsigned char emulator_dynamic_x[]; "
        'unsigned char* x = ::emulator::dynamic_shared<unsigned char>("x");'
    ),
    "extern alignas(16) __shared__ char x[];": (
        'extern char emulator_dynamic_x[]; char* x = ::emulator::dynamic_shared<char>("x");'
    ),
}


@pytest.mark.parametrize("declaration", SHARED)
def test_shared_declarations(declaration):
    new = rewritten(in_function(declaration))
    assert re.sub(r"\(2\d{4},", "(KEY,", new) == in_function(SHARED[declaration])


def test_several_shared_variables_each_have_a_key():
    text = "__shared__ float a[2], b, *c; __shared__ int d;\n __shared__ int e;"
    new = rewritten(in_function(text))
    keys = re.findall(r"shared<[^>]*>\((\d+), ", new)
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
    arguments = "10020 + 10000000000 * __COUNTER__, EMULATOR_NAME(name)"
    reference = f"float (&name)[32] = ::emulator::shared<float[32]>({arguments})"
    assert new.startswith(f"#define TILE(name) {reference}\n")


def test_shared_at_file_scope_is_found_by_the_functions_that_name_it():
    text = (
        "namespace a {\n__shared__ int x[2];\n"
        "__global__ void f() { x[0] = 1; }\nvoid __global__ g() { y.x = 1; }\n}\n"
    )
    assert rewritten(text).splitlines() == [
        "namespace a {",
        "static decltype(auto) emulator_shared_x() { "
        'int (&x)[2] = ::emulator::shared<int[2]>(20001, "x"); return x; };',
        "__global__ void f() { decltype(auto) x = emulator_shared_x(); x[0] = 1; }",
        "void __global__ g() { y.x = 1; }",
        "}",
    ]


def test_host_code_expects_tensors_on_the_cpu():
    text = (
        'TORCH_CHECK(x.is_cuda() && p->is_cuda(), "is_cuda");  // at::kCUDA\n'
        "auto o = at::device(at::kCUDA), q = torch::kCUDA; auto t = c10::DeviceType::CUDA;\n"
        "TORCH_LIBRARY_IMPL(lltm, CUDA, m) {}\nTORCH_LIBRARY_IMPL(lltm, AutogradCUDA, m) {}\n"
        "TORCH_LIBRARY_IMPL(lltm, CPU, m) {}\nEXPAND_TORCH_LIBRARY_IMPL(NAME, AutocastCPU, m) { CPU(); }\n"
        "m.impl(torch::dispatch(c10::DispatchKey::CUDA, f)); int CUDA;\n"
    )
    assert rewritten(text, "csrc/lltm.cpp") == (
        'TORCH_CHECK(x.is_cpu() && p->is_cpu(), "is_cuda");  // at::kCUDA\n'
        "auto o = at::device(at::kCPU), q = torch::kCPU; auto t = c10::DeviceType::CPU;\n"
        "TORCH_LIBRARY_IMPL(lltm, CPU, m) {}\nTORCH_LIBRARY_IMPL(lltm, AutogradCPU, m) {}\n"
        "TORCH_LIBRARY_IMPL(lltm, PrivateUse1, m) {}\n"
        "EXPAND_TORCH_LIBRARY_IMPL(NAME, AutocastPrivateUse1, m) { CPU(); }\n"
        "m.impl(torch::dispatch(c10::DispatchKey::CPU, f)); int CUDA;\n"
    )


def registration(*names: str, call: str = "variable") -> str:
    """The text that the rewriter adds after a declaration of variables."""
    one = ' static const bool emulator_known_{0} = ::emulator::{1}({0}, "{0}");'
    return "".join(one.format(name, call) for name in names)


VARIABLES = {
    "__device__ int count;": ["count"],
    "static __device__ unsigned long long total = 0;": ["total"],
    "__device__ float table[2][3] = {{1, 2, 3}, {4, 5, 6}};": ["table"],
    "float __device__ after_type;": ["after_type"],
    "__device__ int a, *b, c[f(1, 2)] = {1}, d{2};": ["a", "b", "c", "d"],
    "__device__ std::pair<int, float> pair;": ["pair"],
    "__device__ __align__(16) float aligned[4];": ["aligned"],
    "__device__ [[maybe_unused]] volatile int lock;": ["lock"],
    "__device__ float (*function)(float, int) = add;": ["function"],
    "__device__ struct Pair { int x, y; } both;": ["both"],
    "namespace a { namespace { __device__ int inside; } }": ["inside"],
    "__device__ auto lambda = [](int x) { return x; };": ["lambda"],
    "#include <cstdio>\n__device__ int behind_include;": ["behind_include"],
}


@pytest.mark.parametrize("text", VARIABLES)
def test_variables_at_file_scope_are_registered(text):
    end = text.rindex(";") + 1
    new = text[:end] + registration(*VARIABLES[text]) + text[end:]
    assert rewritten(text) == new.replace("__device__", "__constinit __device__")


def test_constants_are_for_reading_only():
    declaration = "__constant__ float weights[3];"
    new = f"__constinit {declaration}{registration('weights', call='constant')}\nint x;"
    assert rewritten(f"{declaration}\nint x;") == new


def test_variables_are_found_behind_a_macro():
    text = "#define GLOBAL __device__\nGLOBAL int count;\nGLOBAL int f(int x);\n"
    new = f"__constinit GLOBAL int count;{registration('count')}"
    assert rewritten(text) == text.replace("GLOBAL int count;", new)


@pytest.mark.parametrize(
    "text",
    [
        "extern __device__ int x;",
        "__device__ float f(float x);",
        "__device__ float f(float x) noexcept;",
        "__device__ inline float f(float x) { return x; }",
        "__device__ A::A() : x{1} { y = 2; }",
        "__device__ A& A::operator=(const A& a) { x = a.x; return *this; }",
        "__device__ bool operator<(const A& a, const A& b);",
        "template <typename T> __device__ T value;",
        "struct A { __device__ int f(); int x; };",
        "void f() { __device__ int x; }",
        "#define GLOBAL __device__ int x;",
        "auto f = [] __device__ (int x) { return x; };",
    ],
)
def test_other_declarations_stay(text):
    assert rewritten(text) == text


DEVICE_CALLS = {
    "memcpy(p, &q, sizeof(q));": "::emulator::memcpy(p, &q, sizeof(q));",
    "std::memset(p, 0, n); ::memmove(p, q, n);": "::emulator::memset(p, 0, n); ::emulator::memmove(p, q, n);",
    "if (c) return memcpy(p, q, n);": "if (c) return ::emulator::memcpy(p, q, n);",
    "float* p = (float*)malloc(4); free(p);": "float* p = (float*)::emulator::malloc(4); ::emulator::free(p);",
    "p->free(x); pool.malloc(3); mine::free(p);": "p->free(x); pool.malloc(3); mine::free(p);",
    "int* p = new int[3]; delete[] p;": "int* p = new (::emulator::heap()) int[3]; ::emulator::delete_array( p);",
    "delete f(a, b), delete p->x[2];": "::emulator::delete_one( f(a, b)), ::emulator::delete_one( p->x[2]);",
    "x[delete p];": "x[::emulator::delete_one( p)];",  # a syntax error, left to the compiler
    "A* p = new (q) A(1); // memcpy(p, q, n)": "A* p = new (q) A(1); // memcpy(p, q, n)",
    "g(free); memset_all(p);": "g(free); memset_all(p);",
}


@pytest.mark.parametrize("statement", DEVICE_CALLS)
def test_device_code_calls_the_emulators_copies_and_heap(statement):
    statement, new = f"{{ {statement}\n}}", f"{{ {DEVICE_CALLS[statement]}\n}}"
    assert rewritten(in_function(statement)) == in_function(new)
    assert rewritten(f"void host() {statement}") == f"void host() {statement}"


def tensor(expression: str, name: str | None = None, rest: str = "") -> str:
    """The rewritten form of an expression before `.data_ptr`."""
    return f'::emulator::tensor("{name or expression}", {expression}{rest})'


TENSORS = {
    "f(x.data_ptr<float>(), y->data_ptr());": f"f({tensor('x')}.data_ptr<float>(), {tensor('y')}->data_ptr());",
    "x.template data_ptr<T>();": f"{tensor('x')}.template data_ptr<T>();",
    "x.const_data_ptr<T>();": f"{tensor('x', rest=', true')}.const_data_ptr<T>();",
    "x.data_ptr<const T>();": f"{tensor('x', rest=', true')}.data_ptr<const T>();",
    "old.contiguous().mutable_data_ptr<T>() + 3;": f"{tensor('old.contiguous()')}.mutable_data_ptr<T>() + 3;",
    "this->x.data<float>();": f"{tensor('this->x')}.data<float>();",
    "std::get<0>(t).data_ptr();": f"{tensor('std::get<0>(t)')}.data_ptr();",
    "(*grad).data_ptr<T>();": f"{tensor('(*grad)', '*grad')}.data_ptr<T>();",
    "x[i][j] /* first */ .data_ptr<T>();": f"{tensor('x[i][j]')} /* first */ .data_ptr<T>();",
    "g ?x.data_ptr<T>():y.data_ptr<T>();": f"g ?{tensor('x')}.data_ptr<T>(): {tensor('y')}.data_ptr<T>();",
    "ptrs{ts.data_ptr<T>()...};": f"ptrs{{{tensor('ts')}.data_ptr<T>()...}};",
    "x\n  .view({B, 3})\n  .packed_accessor32<T, 2, at::RestrictPtrTraits>();": (
        '::emulator::tensor("x.view({B, 3})", x\n  .view({B, 3}))\n'
        "  .packed_accessor32<T, 2, at::RestrictPtrTraits>();"
    ),
    "x.packed_accessor64<const T, 2>();": f"{tensor('x', rest=', true')}.packed_accessor64<const T, 2>();",
    'x["a"].data_ptr<T>();': '::emulator::tensor("x[\\"a\\"]", x["a"]).data_ptr<T>();',
    "Tensor y = at::empty({B, S}, x.options());": "Tensor y = ::emulator::fresh(at::empty({B, S}, x.options()));",
    "::at::empty_like(x).zero_();": "::emulator::fresh(::at::empty_like(x)).zero_();",
    "return torch::empty({2});": "return ::emulator::fresh(torch::empty({2}));",
    "x.t().new_empty({2});": "::emulator::fresh(x.t().new_empty({2}));",
    "at::empty({2}).data_ptr<T>();": (
        '::emulator::tensor("at::empty({2})", ::emulator::fresh(at::empty({2}))).data_ptr<T>();'
    ),
    "a.data_ptr<T*>()->data_ptr<T>();": (
        '::emulator::tensor("a.data_ptr<T*>()", ::emulator::tensor("a", a).data_ptr<T*>())->data_ptr<T>();'
    ),
}


def deleter(function: str, kind: str) -> str:
    """A function of one parameter that calls `function`."""
    return f"(*+[]({kind} emulated) {{ return ::{function}(emulated); }})"


def test_conversions_of_torchs_sixteen_bits_are_casts():
    new = rewritten("f(x.operator __half(), y[1].operator __nv_bfloat16());")
    assert new.endswith("f(static_cast<__half>(x), static_cast<__nv_bfloat16>(y[1]));")
    same = "Half::operator __half() const { return x; }"
    assert rewritten(same).endswith(same)


DELETERS = {
    "Owner p(x, cudaFree);": f"Owner p(x, {deleter('cudaFree', 'void*')});",
    "Owner p(x, &cudaFreeHost);": f"Owner p(x, &{deleter('cudaFreeHost', 'void*')});",
    "auto end = cudaEventDestroy;": f"auto end = {deleter('cudaEventDestroy', 'cudaEvent_t')};",
    "decltype(&cudaFree) f;": "decltype(&::emulator::deleter<void*>) f;",
    "decltype(cudaStreamDestroy)* f;": "decltype(::emulator::deleter<cudaStream_t>)* f;",
    **{text: text for text in ("cudaFree(x);", "CHECK(cudaFree (x));", "api.cudaFree;", "Api::cudaFree;")},
}


@pytest.mark.parametrize("statement", DELETERS)
def test_functions_that_are_passed_as_deleters_have_one_parameter(statement):
    assert rewrite(Source("x.cpp", statement)) == f'#line 1 "x.cpp"\n{DELETERS[statement]}'


@pytest.mark.parametrize("statement", TENSORS)
def test_tensors_are_named_where_their_memory_is_taken(statement):
    for path in ("csrc/k.cpp", "csrc/k.cu"):
        new = rewrite(Source(path, f"void f() {{ {statement} }}\n"))
        head, _, body = new.partition(f'#line 1 "{path}"\n')
        assert body == f"void f() {{ {TENSORS[statement]} }}\n"
        assert head.endswith('#include "emulator/tensor.h"\n')


@pytest.mark.parametrize(
    "statement",
    [
        "data_ptr<T>();",
        "x.data;",
        "x.data();",
        "&Tensor::data_ptr<T>;",
        "x.data_ptr;",
        "x.accessor<T, 2>();",
        "std::vector<int>{1}.data_ptr();",
        "at::empty_out(x, {2});",
        "queue.empty();",
        "at::native::empty({2});",
        "empty({2});",
        "// x.data_ptr<T>()",
        'f("x.data_ptr<T>()");',
    ],
)
def test_other_members_and_functions_of_these_names_stay(statement):
    assert rewrite(Source("csrc/k.cpp", statement)) == f'#line 1 "csrc/k.cpp"\n{statement}'


def test_tensors_in_macros_and_in_device_code():
    assert rewritten("#define PTR(x) (x).data_ptr<float>()\n") == (
        "#define PTR(x) ::emulator::tensor(EMULATOR_NAME(x), (x)).data_ptr<float>()\n"
    )
    pasted = "#define GRAD(x) grad_##x.data_ptr<float>()\n"
    assert rewritten(pasted) == pasted
    in_kernel = in_function("x.data_ptr<float>(); at::empty({2});")
    assert rewritten(in_kernel) == in_kernel


REFUSED = {
    'asm volatile("wgmma.fence.sync.aligned;");': (
        "the emulator does not support the PTX instruction wgmma.fence.sync.aligned"
    ),
    '__asm__("add.cc.u32 %0, %1, %1;" : "=r"(a) : "r"(b));': (
        "the emulator does not support the PTX instruction add.cc.u32"
    ),
    'asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%0}, {%0}, {%0}, {%0};" : "+f"(x));': (
        "the emulator does not support the PTX instruction mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"
    ),
    'asm("cp.async.cg.shared.global [%0], [%1], 8;" :: "r"(a), "l"(b));': (
        "cp.async.cg.shared.global copies 16 bytes, not 8"
    ),
    'asm("mov.u32 %0, %2;" : "=r"(a) : "r"(b));': "inline PTX uses %2, but the asm statement has 2 operands",
    'asm("mov.u32 %0, %%1;" : "=r"(a) : "r"(b));': "inline PTX uses %%1, which is not an operand: write %1",
    'asm("mov.u32 %0, tile;" : "=q"(a));': "the emulator does not support the constraint =q of asm",
    'asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(a));': (
        "the emulator does not support the PTX register %dynamic_smem_size"
    ),
    "asm(TEXT);": "the emulator reads inline PTX only from string literals, but here is TEXT",
    "cudaMemcpyAsync(a, b, 4, c);": "the emulator does not support cudaMemcpyAsync in a kernel",
    "cudaDeviceSynchronize();": (
        "a kernel cannot wait for the kernels that it launches (since CUDA 12): launch the work that comes "
        "after them with cudaStreamTailLaunch"
    ),
    "float v = tex2DLod<float>(t, 1, 2, 3);": "the emulator does not support tex2DLod",
    "float4 v = tex2Dgather<float4>(t, 1, 2);": "the emulator does not support tex2Dgather",
    "surfCubemapread(&v, s, 1, 2, 3);": "the emulator does not support surfCubemapread",
    "texture<float, 2> t;": "CUDA 12 has no texture references: use a texture object (cudaTextureObject_t)",
    "surface<void, 2> s;": "CUDA 12 has no surface references: use a surface object (cudaSurfaceObject_t)",
    "__shared__ float x[2] = {1, 2};": "a __shared__ variable cannot have an initial value",
    "__shared__ int x{3};": "a __shared__ variable cannot have an initial value",
    "__shared__ float x[];": "a __shared__ array without a size must be extern",
    "__shared__ float x2];": "a bracket of this __shared__ declaration has no matching bracket",
    "__shared__ float (*x)[2];": "the emulator cannot read this __shared__ declaration; name its type first",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_refuses_in_one_line_with_reason_and_place(statement):
    with pytest.raises(UserError) as error:
        rewritten(in_function("\n" + statement))
    assert str(error.value) == f"csrc/k.cu:3: {REFUSED[statement]}"


def ptx(operations: str) -> str:
    """A rewritten asm statement. The namespace of the functions for PTX is left out in `operations`."""
    return re.sub(
        r"\b(get|set|input|output|add|load|flush|eq)(?=[<(])",
        r"::emulator::ptx::\1",
        f"do {{ {operations} }} while (0);",
    )


IN = "[[maybe_unused]] std::uint32_t emulator_{} = input<std::uint32_t>(({})); "
OUT = "[[maybe_unused]] std::uint32_t emulator_{} = std::uint32_t(0x7ffb7ffb7ffb7ffbull); "
PTX = {
    'asm volatile("add.u32 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b + 1));': (
        OUT.format(0)
        + IN.format(1, "a")
        + IN.format(2, "b + 1")
        + "set(emulator_0, add<std::uint32_t>(get<std::uint32_t>(emulator_1), get<std::uint32_t>(emulator_2))); "
        "output((c), emulator_0);"
    ),
    '__asm__ __volatile__("add" ".rz.ftz.f32 %0, " R"(%0, 0f3F800000;)" : "+f"(x)::"memory");': (
        "[[maybe_unused]] std::uint32_t emulator_0 = input<float>((x)); "
        "set(emulator_0, flush(add<float, FE_TOWARDZERO>(flush(get<float>(emulator_0)), "
        "flush(get<float>(std::uint32_t(0x3F800000)))))); output((x), emulator_0);"
    ),
    'asm("griddepcontrol.wait;" ::: "memory");': ";",
    'asm volatile("{ .reg .pred p;\\n\\tsetp.eq.u32 p, %0, 0; // a comment; of its own\\n @!p trap; }" :: "r"(a));': (
        IN.format(0, "a") + "{ [[maybe_unused]] bool emulator_ptx_p; { const bool emulator_is_so = "
        "eq<std::uint32_t>(get<std::uint32_t>(emulator_0), get<std::uint32_t>(std::uint64_t(0))); "
        "set(emulator_ptx_p, bool(emulator_is_so)); } if (!get<bool>(emulator_ptx_p)) { ::__trap(); } }"
    ),
}


@pytest.mark.parametrize("statement", PTX)
def test_ptx_becomes_calls(statement):
    assert rewritten(in_function(statement)) == in_function(ptx(PTX[statement]))
    assert rewritten(in_function(statement), "csrc/k.cuh") == in_function(ptx(PTX[statement]))


def test_ptx_keeps_the_lines():
    text = 'asm volatile(\n"griddepcontrol.wait;"\n"griddepcontrol.wait;" ::: "memory"\n);\nint after;'
    assert rewritten(in_function(text)) == in_function("do { ; ; } while (0)\n\n\n;\nint after;")
    in_macro = '#define WAIT() \\\n  asm volatile("griddepcontrol.wait;" \\\n ::: "memory")\nint after;'
    assert rewritten(in_macro) == "#define WAIT() \\\n  do { ; } while (0)\\\n\nint after;"


def test_ptx_includes_its_functions():
    assert '#include "emulator/ptx.h"\n#line 1' in rewrite(Source("csrc/k.cu", in_function('asm("trap;");')))


def test_assembly_of_the_host_is_left_alone():
    text = 'inline void pause() { asm volatile("pause"); }\n'
    assert rewritten(text, "csrc/pause.h") == text
    text = 'inline void wait() { asm volatile("griddepcontrol.wait;"); }\n'
    assert rewritten(text, "csrc/wait.cpp") == text
    assert rewritten(text, "csrc/wait.h") == text.replace(
        'asm volatile("griddepcontrol.wait;")', "do { ; } while (0)"
    )


def test_ptx_may_declare_registers_like_special_ones():
    text = 'asm("{.reg .b32 %%r<2>; mov.u32 %%r1, %%laneid;}" ::);'
    expected = "do { { [[maybe_unused]] std::uint32_t emulator_ptx__r0, emulator_ptx__r1; "
    assert rewritten(in_function(text)).partition("{ ")[2].startswith(expected)


def test_refuses_at_file_scope():
    with pytest.raises(
        UserError, match=r"^csrc/k.cu:2: the emulator supports __managed__ only for variables at file"
    ):
        rewritten("struct S {\nstatic __managed__ int x; };")
    with pytest.raises(UserError, match=r"^csrc/k.cu:2: the emulator does not support <cusparse\.h>$"):
        rewritten("\n#include <cusparse.h>  // for sparse matrices")
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: the emulator does not support <cutlass/cutlass\.h>$"):
        rewritten('#include "cutlass/cutlass.h"')
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: the emulator does not support <cuda/latch>$"):
        rewritten("#include <cuda/latch>")
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: there is no kernel before this <<<$"):
        rewritten("#define CONFIGURATION <<<1, 2>>>(x)\n")
    with pytest.raises(UserError, match=r"^csrc/k.cu:1: this <<< has no matching >>>\($"):
        rewritten("void f() { kernel<<<1, 2>>; }")


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(int64_t ]) {}",
        "__device__ float (*f(float) = add;",
        "template <typename T> __device__ [[maybe_unused T x;",
        "x = f(__device__ int y) ];",
        "void f() { x[1; }",
        "#define ",
        "#define\n__device__ int f() { return 1; }",
        "#if\n#elif\n#endif\n#endif",
        '"not closed\n/* not closed',
    ],
)
def test_syntax_errors_are_left_to_the_compiler(text):
    assert rewritten(text) == text


NEVER = ["#if 0", "#ifndef __CUDACC__", "#if __CUDA_ARCH__ >= 1000", "#if defined(FAST) && !defined(__NVCC__)"]


@pytest.mark.parametrize("condition", NEVER)
def test_what_the_compiler_skips_is_not_refused(condition):
    text = f'\n{condition}\n  asm("wgmma;");\n#else\n  g();\n#endif\n'
    assert "  g();" in rewritten(in_function(text))
    text = '#ifdef __CUDACC__\nint x;\n#else\nasm("wgmma;");\n#endif\n'
    assert rewritten(text) == text.replace("__CUDACC__", "EMULATOR_NVCC__CUDACC__")


MAYBE = ["#if 1", "#if __CUDA_ARCH__ < 800", "#ifdef __CUDA_ARCH__", "#ifndef __CUDA_ARCH__", "#ifdef FAST"]


@pytest.mark.parametrize("condition", MAYBE)
def test_what_the_compiler_may_see_is_refused(condition):
    with pytest.raises(UserError, match=r"csrc/k.cu:4: .*PTX"):
        rewritten(in_function(f'\n{condition}\n  asm("wgmma;");\n#endif\n'))


def in_architecture(body: str, first: int, last: int) -> str:
    """Text in which `__CUDA_ARCH__` is defined, from a line to another."""
    macro = '("__CUDA_ARCH__")'
    define = f"\n#pragma push_macro{macro}\n#define __CUDA_ARCH__ 900\n#line {first}\n"
    return f"{define}{body}\n#pragma pop_macro{macro}\n#line {last}\n"


def test_device_code_sees_the_architecture():
    body = "\n#if __CUDA_ARCH__ >= 700\n  x = 1;\n#endif\n"
    assert rewritten(f"__device__ void f() {{{body}}}") == f"__device__ void f() {{{in_architecture(body, 1, 5)}}}"
    assert rewritten("__global__ void k(int* x) { *x = __CUDA_ARCH__; }") == (
        f"__global__ void k(int* x) {{{in_architecture(' *x = __CUDA_ARCH__; ', 1, 1)}}}"
    )
    macro = "#define IS_NEW (__CUDA_ARCH__ >= 700)\n#define CHOOSE(a, b) (IS_NEW ? a : b)\n"
    assert in_architecture(" return CHOOSE(1, 2); ", 3, 3) in rewritten(
        f"{macro}__device__ int f() {{ return CHOOSE(1, 2); }}"
    )
    unchanged = "void host() {\n#ifdef __CUDA_ARCH__\n  x = 1;\n#endif\n}\n__device__ int f() { return 1; }\n"
    assert rewritten(unchanged) == unchanged


def test_a_function_for_host_and_device_has_two_bodies():
    head, body = "#define BOTH __host__ __device__\nBOTH int f(int x) ", " return __CUDA_ARCH__ + x; "
    assert rewritten(f"{head}{{{body}}}\n") == (
        f"{head}{{ if (::emulator::is_device_code()) {{{in_architecture(body, 2, 2)}}} else {{\n#line 2\n{body}}}}}\n"
    )


@pytest.mark.parametrize("head", ["__host__\n__device__ int f()", "inline __device__ static __host__ int f()"])
def test_qualifiers_may_be_in_any_order(head):
    assert "} else {" in rewritten(f"{head} {{ return __CUDA_ARCH__; }}")
    assert "} else {" not in rewritten("#define H __host__\n__device__ int f() { return __CUDA_ARCH__; }")


def test_an_if_that_selects_device_functions_sees_the_architecture():
    group = "#if __CUDA_ARCH__ < 600\n__device__ double atomicAdd(double* x, double y) { return *x; }\n#endif\n"
    assert rewritten(f"#ifndef H\n{group}#endif\n") == f"#ifndef H\n{in_architecture(group, 2, 5)}#endif\n"
    host = "#if !defined(__CUDA_ARCH__)\nvoid f() {}\n#endif\n"
    assert rewritten(host) == host


def test_references_are_passed_as_references():
    text = (
        "__global__ void k(int& x, const float& y, float (&z)[3], int n) {}\nvoid f() { k<<<1, 2>>>(*x, y, z, n); }"
    )
    arguments = ", ".join(f"::emulator::reference({each})" for each in ("*x", "y", "z"))
    assert rewritten(text).endswith(f"({arguments}, n); }}")


@pytest.mark.parametrize("cast", ["(void*)", "(const void*)", "(void const *)"])
def test_kernels_whose_address_is_taken_are_registered(cast):
    kernel = "template <typename T> __global__ void k(T* x, const T* y) {}\n"
    known = '::emulator::kernel_address(k<float>, "k<float>", "x, const y")'
    assert rewritten(f"{kernel}void* f = {cast}k<float>;") == f"{kernel}void* f = {cast}{known};"
    assert f"cudaLaunchKernel({known}, g, b, a)" in rewritten(
        f"{kernel}auto e = cudaLaunchKernel(k<float>, g, b, a);"
    )
    assert f"reinterpret_cast<void*>({known})" in rewritten(f"{kernel}auto p = reinterpret_cast<void*>(k<float>);")
    assert f"{cast}" + known.replace("(k", "(&k", 1) in rewritten(f"{kernel}void* f = {cast}&k<float>;")


VALUES = {
    "auto f = k<float>;": "auto f = {};",
    "launch(k<float>, x);": "launch({}, x);",
    "cudaLaunchKernelEx(&config, n::k<float>, x);": "cudaLaunchKernelEx(&config, {}, x);",
    "auto f = big ? k<float> : g;": "auto f = big ? {} : g;",
    "return &k<float>;": "return {};",
}


@pytest.mark.parametrize("statement", VALUES)
def test_kernels_that_are_values_are_registered(statement):
    kernel = "template <typename T> __global__ void k(T* x, const T* y) {}\n"
    spelling = re.search(r"&?(n::)?k<float>", statement)[0]
    value = f'::emulator::kernel_address({spelling}, "{spelling.strip("&")}", "x, const y")'
    before, after = kernel + "auto host() { ", " }\n"
    assert rewritten(before + statement + after) == before + VALUES[statement].format(value) + after


@pytest.mark.parametrize(
    "text",
    [
        "k<<<1, 2>>>(x);",
        "x.k(y);",
        "if (k < n) f(x);",
        "int k2 = x->k;",
        "enum class E { k, l };",
        "[=, k, n] {};",
        "int a, k;",
    ],
)
def test_other_uses_of_a_kernels_name_are_left_alone(text):
    assert "kernel_address" not in rewritten(f"__global__ void k(int* x) {{}}\nvoid host() {{ {text} }}\n")
    overloads = "__global__ void k(int* x) {}\n__global__ void k(float* y) {}\n"
    assert "kernel_address" not in rewritten(f"{overloads}void host() {{ f(k, x); }}\n")


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void __cluster_dims__({}) k(int* x) ",
        "__cluster_dims__({}) __global__ void k(int* x) ",
        "template <int N> __global__ void __launch_bounds__(256) __cluster_dims__({}) k(int* x) ",
    ],
)
@pytest.mark.parametrize("sizes", ["4", "2, 2, 1", "f(1, 2), 1"])
def test_a_kernel_with_clusters_begins_with_their_declaration(head, sizes):
    head = head.format(sizes)
    bounds = " ::emulator::declare_launch_bounds(256);" if "__launch_bounds__" in head else ""
    assert rewritten(f"{head}{{ f(x); }}") == f"{head}{{ ::emulator::declare_cluster({sizes});{bounds} f(x); }}"


def test_a_kernel_with_launch_bounds_begins_with_their_declaration():
    head, call = (
        "__global__ void __launch_bounds__(N * 32, 2) k(int* x) ",
        "::emulator::declare_launch_bounds(N * 32, 2);",
    )
    kept = 'static const bool emulator_bounds_2 = ::emulator::keep_launch_bounds("k", N * 32, 2);'
    assert rewritten(f"{head}{{ f(x); }}\n") == f"{head}{{ {call} f(x); }} {kept}\n"
    template = f"template <int N>\n{head}"
    assert rewritten(f"{template}{{ f(x); }}\n") == f"{template}{{ {call} f(x); }}\n"
    for other in (f"{head};", f"#define BOUNDED __launch_bounds__(32)\nBOUNDED {head};"):
        assert rewritten(other) == other


@pytest.mark.parametrize(
    "text", ["__global__ void __cluster_dims__(2) k(int* x);", "#define PAIR __cluster_dims__(2)\nint x;"]
)
def test_clusters_of_a_kernel_without_a_body_are_refused(text):
    with pytest.raises(UserError, match=r":1: the emulator reads __cluster_dims__ only on a kernel with a body"):
        rewritten(text)


@pytest.mark.parametrize("call", ["LAUNCH(k, 1, x)", "launch_it(k, 1)"])
def test_kernels_that_macros_get_are_left_alone(call):
    text = f"#define launch_it(kernel, n) kernel<<<n, 1>>>()\n__global__ void k() {{}}\nvoid f() {{ {call}; }}\n"
    assert f"{{ {call}; }}" in rewritten(text)


def test_managed_variables_become_references_to_managed_memory():
    initial, managed = "emulator_initial_x", '::emulator::managed(emulator_initial_x, "x");'
    assert rewritten("__managed__ int x = 1;") == f"__managed__ int {initial} = 1; decltype({initial})& x = {managed}"
    assert rewritten("__device__ __managed__ float x[2];") == (
        f"__device__ __managed__ float {initial}[2]; decltype({initial})& x = {managed}"
    )
    assert rewritten("#include <cstdio>\n__managed__ int x;\n").endswith(f" x = {managed}\n")
    assert rewritten("extern __managed__ int x;") == (
        f"extern __managed__ int {initial}; extern decltype({initial})& x;"
    )


def test_what_cuda_has_removed_is_refused_with_its_replacement():
    with pytest.raises(UserError, match=r":2: CUDA 13 has no cudaThreadSynchronize: use cudaDeviceSynchronize$"):
        rewritten("void f() {\n  cudaThreadSynchronize();\n}\n")
    with pytest.raises(UserError, match=r":1: the emulator cannot load compiled kernels \(cuModuleLoadData\)$"):
        rewritten("auto e = cuModuleLoadData(&module, image);")


def test_a_template_of_the_programs_own_may_be_called_texture():
    text = "template <typename T> struct texture { T x; };\ntexture<float> t;\n"
    assert rewritten(text) == text


def test_host_and_device_code_may_launch():
    text = (
        "struct S { __device__ S() : x{1} {} __device__ void operator()() {} int x; };\n"
        "#define DEVICE __host__ __device__\nDEVICE int g();\n__device__ int table[2] = {1, 2};\n"
        "void host() { kernel<<<1, 2>>>(table); }\n"
    )
    assert launch("kernel", "1, 2", names="table") in rewritten(text)
    assert launch("kernel", "1, 2", names="table") in rewritten(
        text + "DEVICE int h() { kernel<<<1, 2>>>(table); }\n"
    )
    waits = "DEVICE int wait() { cudaDeviceSynchronize(); }\n"
    assert "cudaDeviceSynchronize();" in rewritten(text + waits)


def test_branches_of_the_preprocessor_each_close_their_brackets():
    text = (
        "#ifdef A\nvoid f(int x) {\n#else\nvoid f() {\n#endif\n  kernel<<<1, 2>>>(x);\n}\n"
        "void g() { k<<<(1), 2>>>(); }"
    )
    new = rewritten(text)
    assert launch("kernel", "1, 2") in new
    assert launch("k", "(1), 2", names="") in new


def test_lines_stay_where_they_are():
    for stage in ("stage3_cuda_pointers", "stage4_cuda_accessors"):
        for path in sorted((ROOT / "stages" / stage / "csrc").iterdir()):
            text = path.read_text()
            old, new = text.splitlines(), rewritten(text, path.name).splitlines()
            assert len(old) == len(new)
            changed = [line for line, other in zip(old, new, strict=True) if line != other]
            assert all(re.search(r"<<<|_kernel<|is_cuda|data_ptr|accessor64|empty", line) for line in changed)


def run(*arguments: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "common.emulator.rewrite", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_command_line(tmp_path):
    source, output = tmp_path / "k.cu", tmp_path / "new" / "k.cpp"
    source.write_text("kernel<<<1, 2>>>(x);\n")
    assert run(source, "-o", output).returncode == 0
    assert output.read_text().startswith(f'#include "emulator/nvcc.h"\n#line 1 "{source}"\n::emulator::launch(')


def test_command_line_says_what_is_wrong(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("void f() { cudaThreadExit(); }\n")
    refused = run(source, "-o", tmp_path / "k.cpp")
    assert refused.stderr == f"error: {source}:1: CUDA 13 has no cudaThreadExit: use cudaDeviceReset\n"
    missing = run(tmp_path / "no.cu", "-o", tmp_path / "k.cpp")
    assert missing.stderr == f"error: cannot read {tmp_path}/no.cu: No such file or directory\n"
    assert (refused.returncode, missing.returncode) == (1, 1)
    source.write_bytes(b"\xff\xfe")
    assert run(source, "-o", tmp_path / "k.cpp").stderr == f"error: {source} is not text in UTF-8\n"


def test_headers_of_the_program_may_have_names_like_those_of_cuda():
    text = '#include "cuda_utils.h"\n#include <cuda/kernels.cuh>\n#include "cutlass/cutlass.h"\n'
    with pytest.raises(UserError, match=r"^k.cu:3: the emulator does not support <cutlass/cutlass\.h>$"):
        rewrite(Source("k.cu", text, frozenset(["cuda_utils.h", "cuda/kernels.cuh", "cutlass/cutlass.h"])))


def test_each_device_variable_is_registered_behind_its_declaration():
    text = (
        "__device__ int first;\n"
        "__device__ int twice(int x) { return 2 * x; }\n"
        "__device__ __constant__ float table[2] = {1, 2};\n"
        "__device__ void f() { g(); }\nvoid h() { g(); }\n__device__ int after_functions;\nint host;\n"
        "static __device__ volatile int a, b;\n"
    )
    expected = text.replace("first;", "first;" + registration("first"))
    expected = expected.replace("2};", "2};" + registration("table", call="constant"))
    expected = expected.replace("after_functions;", "after_functions;" + registration("after_functions"))
    expected = expected.replace("a, b;", "a, b;" + registration("a", "b"))
    for declaration in (
        "__device__ int first",
        "__device__ __constant__",
        "__device__ int after",
        "__device__ volatile",
    ):
        expected = expected.replace(declaration, f"__constinit {declaration}")
    assert rewritten(text) == expected
