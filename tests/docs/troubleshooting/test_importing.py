"""Problems while importing: what is not found, and what does not fit."""

from __future__ import annotations

import ctypes
import re
import shutil
import sys

import pytest

from support.sandbox import (
    TORCH,
    Sandbox,
    assert_printed,
    problem,
)


@pytest.mark.needs("g++", "pip")
def test_installed_into_another_python(sandbox: Sandbox) -> None:
    page = problem("Installed into another Python")
    sandbox.package()
    sandbox.works("python -m venv --without-pip other")
    sandbox.tool("pip", "exec python -m pip --python other/bin/python $@")
    sandbox.works("python -m pip wheel --no-build-isolation --no-deps -w wheels ./stages/stage2_aten")
    assert "Successfully installed" in sandbox.works("pip install wheels/*.whl")
    importing = 'python -c "import torch, lltm_stage2"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_the_source_folder_hides_the_package(sandbox: Sandbox) -> None:
    page = problem("The source folder hides the package")
    sandbox.compile("installed/lltm/_C.so")
    sandbox.write("installed/lltm/__init__.py", "from . import _C\n")
    sandbox.write("sources/lltm/__init__.py", "from . import _C\n")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import lltm"'
    output = sandbox.fails(f"cd sources; {importing}")
    assert_printed(page.symptoms[0], output)
    assert str(sandbox.folder / "sources" / "lltm") in output
    sandbox.works(importing)
    if sys.version_info >= (3, 11):
        sandbox.works(f"cd sources; {page.fixes[0]}\n{importing}")
    sandbox.write("sources/lltm/__init__.py", "")
    assert "ModuleNotFoundError: No module named 'lltm._C'" in sandbox.fails("cd sources; python -c 'import lltm._C'")


@pytest.mark.needs("g++", "pip")
@pytest.mark.syllabus("2.6a", "2.6b")
def test_built_for_another_version_of_python(sandbox: Sandbox) -> None:
    page = problem("Built for another version of Python")
    sandbox.compile("installed/lltm_stage2/_C.cpython-38-x86_64-linux-gnu.so")
    sandbox.write("installed/lltm_stage2/__init__.py", "")
    sandbox.environment["PYTHONPATH"] = str(sandbox.installed)
    importing = 'python -c "import torch, lltm_stage2._C"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.package()
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3a")
def test_a_fixed_name_in_the_binding(sandbox: Sandbox) -> None:
    page = problem("A fixed name in the binding")

    def build_and_import(binding: str) -> tuple[int, str]:
        source = sandbox.write("binding.cpp", f"#include <pybind11/pybind11.h>\n{binding}\n")
        flags = ["-std=c++17", f"-I{TORCH / 'include'}", "-DTORCH_EXTENSION_NAME=_C"]
        sandbox.compile("_C.so", *flags, source=str(source))
        return sandbox.run('python -c "import _C"')

    status, output = build_and_import("PYBIND11_MODULE(lltm, m) {}")
    assert status != 0
    assert_printed(page.symptoms[0], output)
    assert build_and_import(page.fixes[0]) == (0, "")


@pytest.mark.needs("g++")
@pytest.mark.syllabus("2.3c")
def test_extension_imported_before_torch(sandbox: Sandbox) -> None:
    page = problem("Extension imported before torch")
    sandbox.compile("_C.so", f"-L{TORCH / 'lib'}", "-Wl,--no-as-needed", "-lc10")
    assert_printed(page.symptoms[0], sandbox.fails('python -c "import _C"'))
    sandbox.works(sandbox.script(page.fixes[0]))


@pytest.mark.needs("g++", "pip")
@pytest.mark.syllabus("2.6a", "2.6b")
def test_built_with_another_torch(sandbox: Sandbox) -> None:
    page = problem("Built with another torch")
    c10 = ctypes.CDLL(str(TORCH / "lib" / "libc10.so"))
    symbols = {re.search(r"symbol: (\w+)", symptom).group(1): symptom for symptom in page.symptoms}
    absent = [symbol for symbol in symbols if not hasattr(c10, symbol)]
    assert len(absent) == 2  # of three: one of the first two is this torch's own
    sandbox.package()
    importing = 'python -c "import torch, lltm_stage2"'
    for symbol in absent:
        sandbox.install(page.fixes[0], CFLAGS=f"-DNEEDS={symbol}", CXXFLAGS=f"-DNEEDS={symbol}")
        assert_printed(symbols[symbol], sandbox.fails(importing))
    sandbox.install(page.fixes[0].splitlines()[1])
    assert_printed(symbols[symbol], sandbox.fails(importing))  # the old build is installed again
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_not_linked_to_torch_python(sandbox: Sandbox) -> None:
    page = problem("Not linked to torch_python")
    sandbox.compile("lltm.o", "-DNEEDS=THPVariableClass", "-c")
    sandbox.works(f'g++ -shared -o _C.so lltm.o -L"{TORCH}/lib" -lc10 -ltorch_cpu -ltorch')
    importing = 'python -c "import torch, _C"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.works(f"{page.fixes[0]}\n{importing}")


@pytest.mark.needs("g++", "pip")
def test_built_for_another_cuda(sandbox: Sandbox) -> None:
    page = problem("Built for another CUDA")
    library = sandbox.compile("libcudart.so.12", "-Wl,-soname,libcudart.so.12", source="twice.cpp")
    sandbox.package(folder="stage3_cuda_pointers")
    sandbox.install(page.fixes[0], LDFLAGS=f"-Wl,--no-as-needed {library}")
    library.unlink()
    importing = 'python -c "import torch, lltm_stage2"'
    assert_printed(page.symptoms[0], sandbox.fails(importing))
    sandbox.install(page.fixes[0])
    sandbox.works(importing)


@pytest.mark.needs("g++")
def test_a_template_that_nobody_instantiated(sandbox: Sandbox) -> None:
    page = problem("A template that is not instantiated")
    host = """
#include <Python.h>
template <typename scalar_t>
void launch_forward(scalar_t* x);
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit__C() {
  float x = 0;
  launch_forward(&x);
  return PyModule_Create(&module);
}
"""
    kernels = "template <typename scalar_t>\nvoid launch_forward(scalar_t* x) { *x = 1; }\n"
    source = str(sandbox.write("host.cpp", host))
    other = str(sandbox.write("kernels.cpp", kernels))
    sandbox.compile("_C.so", other, source=source)
    assert_printed(page.symptoms[0], sandbox.fails('python -c "import _C"'))
    sandbox.write("kernels.cpp", kernels + page.fixes[0])
    sandbox.compile("_C.so", other, source=source)
    sandbox.works('python -c "import _C"')


@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.1f")
def test_two_libraries_of_one_namespace(sandbox: Sandbox) -> None:
    page = problem("Two libraries of one namespace")
    source = str(sandbox.write("module.cpp", page.fixes[0]))
    for name in ("lab", "mine"):
        made = sandbox.compile_with_torch(f"{name}.so", f"-DNAMESPACE={name}", source=source)
        shutil.copy(made, made.with_name(f"{name}_again.so"))
    loading = "import torch\nfor name in ({!r}, {!r}):\n    torch.ops.load_library(f'./{{name}}.so')\nprint('both')"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(loading.format("lab", "lab_again"))))
    assert "both" in sandbox.works(sandbox.script(loading.format("lab", "mine")))
