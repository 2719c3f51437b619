"""Comments are not code, and what looks like a comment in a literal is not one."""

from __future__ import annotations

import pytest

from common.exercises.judging.source_text import (
    find_host_calls,
    find_narrow_factors,
    find_narrow_products,
    strip_comments,
)

CODE = {
    "a line": ("a.cpp", "x();  // y()\nz();", "x();   \nz();"),
    "a line that goes on": ("a.cpp", "x();  // y() \\\ny();\nz();", "x();   \nz();"),
    "lines": ("a.cu", "x(/* y()\n y() */);", "x( );"),
    "an open one": ("a.cu", "x();/* y()", "x(); "),
    "a path": ("a.cpp", 'x("http://y"); z();', 'x("http://y"); z();'),
    "a quote in a comment": ("a.cpp", "x(); // don't\ny('\"'); // z", "x();  \ny('\"');  "),
    "raw": ("a.cpp", 'x(R"doc(// y " */)doc"); // z', 'x(R"doc(// y " */)doc");  '),
    "Python": ("a.py", "x()  # y()\nz('#')", "x()   \nz('#')"),
    "a slash in Python": ("a.py", "x = 7 // 2", "x = 7 // 2"),
    "a docstring": ("a.py", '"""x # y"""\nz()', '"""x # y"""\nz()'),
}


@pytest.mark.parametrize("name", CODE)
def test_comments_go(name):
    file, text, code = CODE[name]
    assert strip_comments(text, file) == code


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("a.cpp", 'TORCH_CHECK(x, "no .data<" /* y */);', 'TORCH_CHECK(x, ""  );'),
        ("a.cpp", '#include "torch/torch.h"\nx("y");', '#include "torch/torch.h"\nx("");'),
        ("a.cpp", 'x(R"(y")");', 'x("");'),
        ("a.py", '"""saved_variables"""\nx = "y" + \'z\'', '""\nx = "" + ""'),
    ],
)
def test_literals_go(file, text, code):
    assert strip_comments(text, file, strings=False) == code


def test_calls_in_kernels_are_not_the_hosts():
    kernel = "__global__ void k(float* x) {\n  if (a) { for (;;) { x[0] = std::exp(1.f); } }\n}\n"
    host = "int main() { x[0] = tanhf(2) + tanhf(3); my_exp(4); }"
    assert find_host_calls(kernel + host, "exp", "tanh") == ["tanhf"]
    assert find_host_calls(kernel, "exp") == []
    assert find_host_calls("__device__ float e(float x) { return expm1(x); }" + host, "expm1") == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("const int at = row * S + unit;", ["at"]),
        ("unsigned at = 3 * int(row) * int(S);", ["at"]),
        ("const int64_t at = row * S + unit;", []),
        ("const int unit = blockIdx.x * blockDim.x + threadIdx.x;", []),
        ("for (int row = blockIdx.y; row < B; row += gridDim.y) y = row * S;", []),
        ("int gate = 0; int64_t at = row * S;", []),
    ],
)
def test_products_in_32_bits(code, names):
    assert find_narrow_products(code, "row", "S") == names


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("for (int row = blockIdx.y; row < B; row += gridDim.y) y[row * size + unit] = 0;", ["row and size"]),
        ("y[int64_t(row) * size + unit] = 0;", []),
        ("y[blockIdx.y * size + unit] = 0;", ["blockIdx.y and size"]),
        ("y[blockIdx.y * S + unit] = 0;", []),
        ("const unsigned row = blockIdx.y; y[3 * row * (size + 1)] = 0;", ["row and size"]),
        ("y[unit * size] = 0;", []),  # not the number of a row
    ],
)
def test_products_of_32_bit_factors(body, names):
    other = "void other(int row) {\n  y[row * row] = 0;\n}\n"
    code = f"{other}void k(float* y, int64_t S, int size) {{\n  {body}\n}}\n"
    assert find_narrow_factors(code, "k") == names
