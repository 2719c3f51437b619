"""Problems with code of others: libraries to link, and extensions that were written for an older torch."""

from __future__ import annotations

import pytest

from support.sandbox import INCLUDE, Sandbox, assert_printed, compile, problem

OLD_FUNCTION = """
import warnings
import torch
warnings.simplefilter("always")
{0}
    def forward(self, x):
        self.save_for_backward(x)
        return x * x
    def backward(self, grad):
        return 2 * self.saved_variables[0] * grad
x = torch.ones(3, requires_grad=True)
{1}(x).sum().backward()
print(x.grad)
"""


@pytest.mark.needs("g++", "ninja")
@pytest.mark.syllabus("2.10b")
def test_another_library(sandbox: Sandbox) -> None:
    page = problem("Another library")
    sandbox.write("ruler/include/ruler.h", 'extern "C" double inches(double metres);\n')
    sandbox.write("ruler/lib/ruler.cpp", 'extern "C" double inches(double metres) { return metres / 0.0254; }\n')
    sandbox.works("g++ -shared -fPIC ruler/lib/ruler.cpp -o ruler/lib/libruler.so")
    binding = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("inches", &inches); }\n'
    sandbox.write("module.cpp", f"#include <pybind11/pybind11.h>\n#include <ruler.h>\n{binding}")
    (sandbox.folder / "build").mkdir()
    fix = page.fixes[0]
    linked = fix.replace(', f"-Wl,-rpath,{here}/lib"', "")
    unlinked = "\n".join(line for line in fix.splitlines() if "extra_ldflags" not in line)
    bare = unlinked.replace('{"extra_include_paths": [f"{here}/include"]}', "{}")
    for symptom, attempt in zip(page.symptoms, (bare, unlinked, linked), strict=True):
        assert attempt != fix
        assert_printed(f"...{symptom}", sandbox.fails(sandbox.script(attempt)))
    assert "39.37" in sandbox.works(sandbox.script(f"{fix}\nprint(extension.inches(1))"))


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.11a", "2.11b", "2.11c")
def test_written_for_an_older_torch(sandbox: Sandbox) -> None:
    page = problem("Written for an older torch")
    function = "#include <ATen/Dispatch.h>\n#include <ATen/core/Tensor.h>\nvoid look(const at::Tensor& x) {{\n{}}}\n"
    old = '  AT_CHECK(x.dim() == 1, "x must have one dimension");\n' + page.fixes[0].splitlines()[1]
    old = old.replace("scalar_type()", "type()", 1).replace("const_data_ptr<scalar_t>", "data<scalar_t>")
    sandbox.write("module.cpp", function.format(old))
    printed = sandbox.fails(compile())
    for symptom in page.symptoms[:3]:
        assert_printed(symptom, printed)
    sandbox.write("module.cpp", function.format(page.fixes[0]))
    assert "deprecated" not in sandbox.works(compile())


@pytest.mark.needs("g++", "ninja")
@pytest.mark.syllabus("2.11c")
def test_an_assertion_blames_torch(sandbox: Sandbox) -> None:
    page = problem("Written for an older torch")
    (sandbox.folder / "build").mkdir()
    includes = "#include <ATen/core/Tensor.h>\n#include <torch/csrc/utils/pybind.h>\n"
    look = f"void old(at::Tensor x) {{ AT_ASSERT(x.dim() == 1); }}\nvoid look(at::Tensor x) {{\n{page.fixes[0]}}}\n"
    look = "\n".join(line for line in look.splitlines() if "DISPATCH" not in line)
    binding = '\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("old", &old).def("look", &look); }\n'
    sandbox.write("module.cpp", includes + look + binding)
    script = (
        "import torch\nfrom torch.utils.cpp_extension import load\n"
        "_C = load('_C', ['module.cpp'], build_directory='build', verbose=True)\n"
        "for function in (_C.look, _C.old):\n"
        "    try:\n        function(torch.ones(2, 2))\n"
        "    except RuntimeError as error:\n        print('RuntimeError:', error)\n"
    )
    printed = sandbox.works(sandbox.script(script))
    assert "deprecated" not in printed  # the compiler says nothing
    assert_printed(page.symptoms[3], printed)
    assert "RuntimeError: x has shape [2, 2], expected one dimension" in printed


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.11h")
def test_an_old_cpp_standard(sandbox: Sandbox) -> None:
    page = problem("An old C++ standard")
    sandbox.write("module.cpp", "#include <torch/extension.h>\n")
    preprocess = f"g++ -E {INCLUDE} module.cpp -o module.i"
    assert_printed(page.symptoms[0], sandbox.fails(f"{preprocess} -std=c++14"))
    # What torch's build adds to the flags of an extension, with a standard of its own and without.
    add = "from torch.utils.cpp_extension import BuildExtension\nfrom setuptools import Distribution\n"
    add += "builder = BuildExtension(Distribution(), use_ninja=False)\n"
    given = page.fixes[0].replace('["module.cpp"]', '["module.cpp"], extra_compile_args=["-std=c++14"]')
    for code, flag in ((page.fixes[0], None), (given, "-std=c++14")):
        flags = sandbox.works(sandbox.script(f"{code}\n{add}print(extension.extra_compile_args)")).splitlines()[-1]
        assert flags == ("[]" if flag is None else f"['{flag}']")


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.11d")
def test_the_frontend_s_header(sandbox: Sandbox) -> None:
    page = problem("The header of the C++ frontend")
    binding = "PYBIND11_MODULE(example, m) {}"

    def preprocessed(header: str, flags: str = "") -> str:
        sandbox.write("module.cpp", f"{header}\n{binding}\n")
        return sandbox.works(f"{compile(flags).replace('-fsyntax-only', '-E -P')} | tail -c 500")

    frontend = "#include <torch/torch.h>"
    assert binding in preprocessed(frontend)
    assert "pybind11_init_example(" in preprocessed(frontend, "-DTORCH_API_INCLUDE_EXTENSION_H")
    assert "pybind11_init_example(" in preprocessed(page.fixes[0])
    sandbox.write("module.cpp", f"{binding}\n")
    assert_printed(page.symptoms[0], sandbox.fails("g++ -fsyntax-only module.cpp"))


@pytest.mark.syllabus("2.11e", "2.11f")
def test_a_function_of_the_old_kind(sandbox: Sandbox) -> None:
    page = problem("A Function of the old kind")
    attempts = {
        "class Square(torch.nn.Function):": "Square()",
        "class Square(torch.autograd.Function):": "Square()",
    }
    for symptom, (head, call) in zip(page.symptoms, attempts.items(), strict=False):
        assert_printed(symptom, sandbox.fails(sandbox.script(OLD_FUNCTION.format(head, call))))
    fix = "import warnings\n" + page.fixes[0]
    use = "warnings.simplefilter('always')\nx = torch.ones(3, requires_grad=True)\nsquare(x).sum().backward()\n"
    use += "print(x.grad)"
    old = fix.replace("ctx.saved_tensors", "ctx.saved_variables")
    assert_printed(page.symptoms[2], sandbox.works(sandbox.script(f"{old}\n{use}")))
    output = sandbox.works(sandbox.script(f"{fix}\n{use}"))
    assert "tensor([2., 2., 2.])" in output
    assert "deprecated" not in output


@pytest.mark.needs("pip")
@pytest.mark.syllabus("2.11g")
def test_setup_py_install(sandbox: Sandbox) -> None:
    page = problem("setup.py install")
    sandbox.write("setup.py", "from setuptools import setup\nsetup(name='ruler', py_modules=['ruler'])\n")
    sandbox.write("ruler.py", "")
    assert_printed(page.symptoms[0], sandbox.works("python setup.py install --root root"))
    sandbox.install(page.fixes[0])
    assert str(sandbox.installed) in sandbox.works('cd /; python -c "import ruler; print(ruler.__file__)"')
