"""Problems while importing: symbols of other types and of other versions of the C++ library."""

from __future__ import annotations

import re

import pytest

from support.sandbox import Sandbox, assert_printed, problem

BINDING = """
#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>
int64_t first(const at::Tensor& x) {{
  {0}
  return pointer[0];
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("first", &first); }}
"""


@pytest.mark.needs("g++")
def test_a_pointer_to_a_type_that_torch_does_not_have(sandbox: Sandbox) -> None:
    page = problem("A pointer to a type that torch does not have")
    importing = 'python -c "import torch, _C; print(_C.first(torch.tensor([3, 4])))"'

    def build(line: str) -> None:
        source = sandbox.write("binding.cpp", BINDING.format(line))
        sandbox.compile_with_torch("_C.so", "-DTORCH_EXTENSION_NAME=_C", "-ltorch_python", source=str(source))

    build("const long long* pointer = x.data_ptr<long long>();")
    output = sandbox.fails(importing)
    assert_printed(page.symptoms[0], output)
    assert "data_ptr<long long>" in sandbox.works(f"c++filt {re.search('symbol: (.+)', output).group(1)}")
    build(page.fixes[0])
    assert sandbox.works(importing) == "3\n"


@pytest.mark.needs("g++")
def test_an_older_cpp_library_is_loaded(sandbox: Sandbox) -> None:
    """The extension needs a symbol of a version that no C++ library has yet."""
    page = problem("An older C++ library is loaded")
    future = sandbox.write("future.cpp", 'extern "C" void future() {}\n')
    versions = sandbox.write("versions", "GLIBCXX_3.4.99 { global: future; };\n")
    options = ["-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={versions}"]
    library = sandbox.compile("newer/libstdc++.so.6", *options, source=str(future))
    sandbox.compile("_C.so", "-DNEEDS=future", str(library))
    importing = 'python -c "import torch, _C"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    assert re.fullmatch(r"\S*libstdc\+\+\S* has GLIBCXX_3\.4\.\d+\n", sandbox.works(page.fixes[0]))
    sandbox.compile("_C.so")
    sandbox.works(importing)
