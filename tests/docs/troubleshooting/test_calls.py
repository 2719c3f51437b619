"""Problems while running: arguments that do not fit, and operators that lack what a caller needs."""

from __future__ import annotations

import pytest

from support.sandbox import Sandbox, assert_printed, problem

BINDING = """
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>
at::Tensor scale(const at::Tensor& x, double factor) {{ return x * factor; }}
int64_t first(const at::Tensor& index) {{
  {0}
  return index.const_data_ptr<int64_t>()[0];
}}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
  m.def("scale", &scale);
  m.def("first", &first);
}}
"""
LIBRARY = """
import torch
library = torch.library.Library("lab", "FRAGMENT")

def register(schema, kernel, fake, device="CPU"):
    name = library.define(schema)
    library.impl(name, kernel, device)
    torch.library.register_fake(f"lab::{name}", fake, lib=library)
"""


def bind(sandbox: Sandbox, line: str = "") -> None:
    source = sandbox.write("binding.cpp", BINDING.format(line))
    sandbox.compile_with_torch("_C.so", "-DTORCH_EXTENSION_NAME=_C", "-ltorch_python", source=str(source))


@pytest.mark.needs("g++")
def test_an_argument_that_is_not_a_tensor(sandbox: Sandbox) -> None:
    page = problem("An argument that is not a tensor")
    bind(sandbox)
    start, call = "import torch, _C\nx = [1.0, 2.0]\n", "print(_C.scale(x, 2.0).tolist())"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + call)))
    assert sandbox.works(sandbox.script(start + page.fixes[0] + call)) == "[2.0, 4.0]\n"


@pytest.mark.needs("g++")
def test_an_output_like_a_strided_input_is_filled_wrongly(sandbox: Sandbox) -> None:
    """What "Wrong result on a strided input" says of outputs; its own test is about inputs."""
    sandbox.compile("twice.so", source="twice.cpp")
    code = """import ctypes, torch
x = torch.arange(9.0).view(3, 3).t()
for y in torch.empty_like(x), torch.empty(x.shape):
    dense = x.contiguous()
    pointers = ctypes.c_void_p(dense.data_ptr()), ctypes.c_void_p(y.data_ptr())
    ctypes.CDLL("./twice.so").twice(*pointers, ctypes.c_long(9))
    print(torch.equal(y, 2 * x))
"""
    assert sandbox.works(sandbox.script(code)) == "False\nTrue\n"


@pytest.mark.needs("g++")
def test_a_pointer_of_another_dtype(sandbox: Sandbox) -> None:
    page = problem("A pointer of another dtype")
    calling = sandbox.script("import torch, _C\n_C.first(torch.ones(2))")
    bind(sandbox)
    assert_printed(page.symptoms[0], sandbox.fails(calling))
    bind(sandbox, page.fixes[0])
    assert "RuntimeError: gather: index has dtype Float, expected int64" in sandbox.fails(calling)


def test_no_kernel_for_this_device(sandbox: Sandbox) -> None:
    page = problem("No kernel for this device")
    start = LIBRARY + 'register("gated(Tensor x) -> Tensor", lambda x: x, torch.empty_like, "CUDA")\n'
    call = "\nprint(torch.ops.lab.gated(torch.zeros(1)))"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + call)))
    assert sandbox.works(sandbox.script(start + page.fixes[0] + call)) == "tensor([0.])\n"


PACKAGE = """
class Twice(torch.nn.Module):
    def forward(self, x):
        return torch.ops.lab.twice(x)

exported = torch.export.export(Twice(), (torch.ones(3),))
torch._inductor.aoti_compile_and_package(exported, package_path="twice.pt2")
"""
OPERATOR = """
#include <ATen/TensorOperators.h>
#include <torch/library.h>
at::Tensor twice(const at::Tensor& x) { return x + x; }
TORCH_LIBRARY_FRAGMENT(lab, m) { m.def("twice(Tensor x) -> Tensor", &twice); }
"""


@pytest.mark.needs("g++")
def test_a_package_without_its_operators(sandbox: Sandbox) -> None:
    page = problem("A package without its operators")
    twice = 'register("twice(Tensor x) -> Tensor", lambda x: x + x, torch.empty_like)\n'
    sandbox.works(sandbox.script(LIBRARY + twice + PACKAGE))
    call = 'print(torch._inductor.aoti_load_package("twice.pt2")(torch.ones(3)).tolist())'
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(f"import torch\n{call}")))
    sandbox.compile_with_torch("lab.so", source=str(sandbox.write("lab.cpp", OPERATOR)))
    fix = page.fixes[0].replace("lab.so", "./lab.so")
    assert sandbox.works(sandbox.script(f"import torch\n{fix}{call}")).splitlines()[-1] == "[2.0, 2.0, 2.0]"


def test_an_operator_under_vmap(sandbox: Sandbox) -> None:
    page = problem("An operator under vmap")
    start = (
        f"{LIBRARY}"
        'register("twice(Tensor x) -> Tensor", lambda x: x + x, torch.empty_like)\n'
        'register("bump(Tensor(a!) x) -> ()", lambda x: (x.add_(1), None)[1], lambda x: None)\n'
    )
    call = "\nprint(torch.vmap(torch.ops.lab.twice)(torch.ones(2, 3)).sum())"
    assert_printed(page.symptoms[0], sandbox.works(sandbox.script(start + call)))
    bump = "torch.vmap(torch.ops.lab.bump)(torch.ones(2, 3))"
    assert_printed(page.symptoms[1], sandbox.fails(sandbox.script(start + bump)))
    assert sandbox.works(sandbox.script(start + page.fixes[0] + call)) == "tensor(12.)\n"


def test_right_in_eager_mode_wrong_when_compiled(sandbox: Sandbox) -> None:
    page = problem("Right in eager mode, wrong when compiled")
    start = f"""{LIBRARY}
def bump(x): x.add_(1)
register("bump(Tensor x) -> ()", bump, lambda x: None)
register("dense(Tensor x) -> Tensor", lambda x: x.contiguous(), lambda x: x.new_empty(x.shape))
{page.fixes[0]}
torch.library.register_fake("lab::bump_declared", lambda x: None, lib=library)
torch.library.register_fake("lab::dense_copy", lambda x: x.new_empty(x.shape), lib=library)

def by_bump(operator):
    def function(x):
        y = 2 * x
        operator(y)
        return y
    return function

def by_dense(operator):
    def function(x):
        y = operator(x)
        y.add_(1)
        return x + y
    return function

def agree(function):
    compiled = torch.compile(function, backend="aot_eager")
    return torch.equal(function(torch.ones(2)), compiled(torch.ones(2)))

def found(operator):
    try:
        torch.library.opcheck(operator, (torch.ones(2),), test_utils="test_schema")
    except Exception:
        return True
    return False

lab = torch.ops.lab
print(agree(by_bump(lab.bump)), agree(by_dense(lab.dense)))
print(agree(by_bump(lab.bump_declared)), agree(by_dense(lab.dense_copy)))
print(*map(found, (lab.bump, lab.dense, lab.bump_declared, lab.dense_copy)))
"""
    printed = sandbox.works(sandbox.script(start)).splitlines()
    assert printed[-3:] == ["False False", "True True", "True True False False"]
