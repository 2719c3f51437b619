"""Problems while running: errors of the GPU, wrong results, no gain."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from torch.torch_version import TorchVersion

from common import load
from common.cell.case import Case, Cell
from support.proofs.files import stage_files
from support.sandbox import (
    ARCHITECTURES,
    ROOT,
    SOURCES,
    Sandbox,
    assert_printed,
    compile,
    problem,
    sections,
)


@pytest.fixture
def kernel(sandbox: Sandbox):
    """Compiles launch.cu for some architectures, and gives the start of a script that has it as `library`."""

    def compile(code: str) -> str:
        arch = re.search(r"\d+", code).group()
        flags = f"-gencode=arch=compute_{arch},code={code} -cudart shared -lineinfo"
        sandbox.works(f"nvcc -shared -Xcompiler -fPIC {flags} {SOURCES / 'launch.cu'} -o launch.so")
        return "import torch, ctypes\none = torch.ones(1, dtype=torch.int, device='cuda')\n" + (
            "library = ctypes.CDLL('./launch.so')\n"
        )

    return compile


@pytest.mark.needs("gpu", "nvcc")
def test_no_kernel_image(sandbox: Sandbox, kernel) -> None:
    page = problem("No kernel image")
    major, minor = torch.cuda.get_device_capability()
    launch = "library.launch(ctypes.c_void_p(one.data_ptr()))\nprint(torch.zeros(1, device='cuda') + 1)"
    another = "sm_80" if major != 8 else "sm_90"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(kernel(another) + launch)))
    flags = sandbox.works(f"{page.fixes[0]}\n{sandbox.script(ARCHITECTURES)}", TORCH_CUDA_ARCH_LIST="8.0")
    assert f"sm_{major}{minor}" in flags  # what torch asks nvcc for here, without the variable
    assert "tensor([1.]" in sandbox.works(sandbox.script(kernel(f"sm_{major}{minor}") + launch))


@pytest.mark.needs("gpu", "nvcc")
def test_illegal_memory_access(sandbox: Sandbox, kernel) -> None:
    page = problem("Illegal memory access")
    start = kernel("sm_{}{}".format(*torch.cuda.get_device_capability()))
    script = sandbox.script(
        start + "status = library.launch(ctypes.c_void_p())\n"
        "print('the launch returned', status)\n"
        "one + one\ntorch.cuda.synchronize()"
    )
    output = sandbox.fails(script)
    assert "the launch returned 0" in output
    assert_printed(page.symptoms[0], output)
    assert "the launch returned 700" in sandbox.fails(f"{page.fixes[0]}\n{script}")  # cudaErrorIllegalAddress


@pytest.mark.needs("gpu", "nvcc")
def test_illegal_memory_access_is_found(sandbox: Sandbox, kernel) -> None:
    page = problem("Illegal memory access")
    start = kernel("sm_{}{}".format(*torch.cuda.get_device_capability()))
    sandbox.script(start + "library.launch(ctypes.c_void_p())\ntorch.cuda.synchronize()")
    _, output = sandbox.run("compute-sanitizer --target-processes all python script.py")
    assert_printed(page.symptoms[1], output)
    assert "launch.cu:2" in output


def emulate(sandbox: Sandbox, source: str) -> str:
    """The command that runs a CUDA program, given as text, on the emulator."""
    return f"cd '{ROOT}' && python -m common emulate '{sandbox.write('unguarded.cu', source)}'"


UNGUARDED = (SOURCES / "unguarded.cu").read_text()


@pytest.mark.needs("g++")
def test_a_report_of_the_emulator(sandbox: Sandbox) -> None:
    page = problem("A report of the emulator")
    assert_printed(page.symptoms[0], sandbox.fails(emulate(sandbox, UNGUARDED)))
    assert "EMULATOR_CHECKS=-memory" in sections()["A report of the emulator"]
    assert "past the end" not in sandbox.run(emulate(sandbox, UNGUARDED), EMULATOR_CHECKS="-memory")[1]
    sandbox.works(emulate(sandbox, UNGUARDED.replace("  x[i] = 1;\n", page.fixes[0])))


@pytest.mark.needs("g++")
def test_a_kernel_that_does_not_end(sandbox: Sandbox) -> None:
    page = problem("A kernel that does not end")
    endless = UNGUARDED.replace("x[i] = 1;", "for (volatile int k = 0; k < 10; k += 0) {}")
    assert_printed(page.symptoms[0], sandbox.fails(emulate(sandbox, endless), EMULATOR_TIMEOUT="5"))
    sandbox.works(f"{page.fixes[0]}\n{emulate(sandbox, endless.replace('k += 0', 'k += 1'))}")


CRASH = """extern "C" void crash() {
  float* nowhere = nullptr;
  *nowhere = 1;
}
"""


@pytest.fixture
def crashing(sandbox: Sandbox) -> str:
    """The command of a script that crashes in the third line of crash.cpp; `python script.py`, as on the page."""
    sandbox.write("crash.cpp", CRASH)
    sandbox.works("g++ -g -O0 -shared -fPIC crash.cpp -o crash.so")
    return sandbox.script('import ctypes\n\n\ndef call():\n    ctypes.CDLL("./crash.so").crash()\n\n\ncall()\n')


GIVE_UP = """
import ctypes, time, torch
give_up = ctypes.PyDLL("./give_up.so").give_up
give_up.argtypes, give_up.restype = [ctypes.py_object], None
tensors = [torch.ones(1) for _ in range(5000)]
give_up(tensors)
end = time.perf_counter() + 0.05
while time.perf_counter() < end:  # with the lock, so that the thread waits for it
    pass
"""


@pytest.mark.needs("g++")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="since 3.14 Python lets such a thread wait for ever")
def test_aborted_after_the_last_line(sandbox: Sandbox) -> None:
    page = problem("Aborted after the last line")
    sandbox.compile_with_torch("give_up.so", "-ltorch_python", source="give_up.cpp")
    command = sandbox.script(GIVE_UP)
    aborted = (said for status, said in (sandbox.run(command) for _ in range(8)) if status != 0)
    assert_printed(page.symptoms[0], next(aborted, "not once"))  # 38 of 40 were, beside other work, too
    sandbox.works(sandbox.script(GIVE_UP + page.fixes[0]))
    joined = 'ctypes.CDLL("./give_up.so").join()'  # CDLL calls without the lock, PyDLL with it
    sandbox.works(sandbox.script(GIVE_UP + joined))


@pytest.mark.needs("g++")
def test_looking_into_the_cpp(sandbox: Sandbox, crashing: str) -> None:
    page = problem("Debugging the C++ code")
    assert_printed(f"...{page.symptoms[0].strip()}...", sandbox.fails(f"{crashing}; true"))
    output = sandbox.fails(page.fixes[0])
    assert 'script.py", line 5 in call' in output
    sandbox.script("import torch\ntorch.ones(2, 3).mm(torch.ones(2, 3))")
    output = sandbox.fails(page.fixes[1])
    assert "Exception raised from" in output
    assert "at::_ops::mm::call" in output


@pytest.mark.needs("g++")
def test_printing_a_tensor(sandbox: Sandbox) -> None:
    page = problem("Debugging the C++ code")
    source = "#include <ATen/core/Tensor.h>\n" + page.fixes[2]
    sandbox.write("module.cpp", source.replace("#include <ATen/core/Formatting.h>\n", ""))
    assert_printed(page.symptoms[1], sandbox.fails(compile()))
    sandbox.write("module.cpp", source)
    sandbox.works(compile())


@pytest.mark.needs("g++")
@pytest.mark.needs("gdb")
def test_gdb_stops_in_the_cpp(sandbox: Sandbox, crashing: str) -> None:
    page = problem("Debugging the C++ code")
    command = page.fixes[3].strip()
    assert command.endswith(f"--args {crashing}")
    command = command.replace("python", sys.executable)  # in the sandbox it is a shell script, which gdb cannot run
    at_the_prompt = 'gdb -batch -ex "set debuginfod enabled off"'
    output = sandbox.works(command.replace("gdb", at_the_prompt, 1).replace("-ex run", "-ex run -ex 'print nowhere'"))
    assert "crash () at crash.cpp:3" in output
    assert "$1 = (float *) 0x0" in output


def test_a_function_under_autocast(sandbox: Sandbox) -> None:
    page = problem("A Function under autocast")
    use = (
        'with torch.autocast("cpu", torch.bfloat16):\n'
        "    y = Mm.apply(torch.ones(2, 3, requires_grad=True), torch.ones(3, 4, requires_grad=True))\n"
        "y.sum().backward()\n"
    )
    plain = re.sub(r"    @torch\.amp.*\n", "", page.fixes[0])
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(plain + use)))
    sandbox.works(sandbox.script(page.fixes[0] + use))


@pytest.mark.needs("g++")
def test_wrong_result_on_a_strided_input(sandbox: Sandbox) -> None:
    page = problem("Wrong result on a strided input")
    sandbox.compile("twice.so", source="twice.cpp")
    start = "import ctypes, torch\nx = torch.arange(9.0).view(3, 3).t()\n"
    call = (
        "y = torch.empty(3, 3)\n"
        "pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())\n"
        "ctypes.CDLL('./twice.so').twice(*pointers, ctypes.c_long(x.numel()))\n"
        "torch.testing.assert_close(y, 2 * x)"
    )
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + call)))
    sandbox.works(sandbox.script(start + page.fixes[0] + call))


def test_the_gradient_of_a_bare_sum_is_expanded() -> None:
    strides = []
    x = torch.ones(3, 3, requires_grad=True)
    y = 1 * x
    y.register_hook(lambda gradient: strides.append((gradient.stride(), gradient.untyped_storage().nbytes())))
    y.sum().backward()
    assert strides == [((0, 0), 4)]


def test_a_function_that_returns_a_view(sandbox: Sandbox) -> None:
    page = problem("A Function that returns a view")
    (fixed,) = page.fixes
    broken = fixed.replace(".clone()", "")
    assert broken != fixed
    use = "start = torch.ones(3, requires_grad=True)\nx = start * 1\ny = FirstTwo.apply(x)\n"
    use += "{}.mul_(5)\ny.sum().backward()\n"
    for symptom, changed in zip(page.symptoms, "yx", strict=True):
        code = f"{use.format(changed)}print(start.grad.tolist())"
        assert_printed(symptom, sandbox.fails(sandbox.script(f"{broken}\n{code}")))
        expected = {"y": "[5.0, 5.0, 0.0]", "x": "[1.0, 1.0, 0.0]"}[changed]
        assert expected in sandbox.works(sandbox.script(f"{fixed}\n{code}"))


GATED = """import torch

torch.library.define("lab::gated", "(Tensor z, Tensor x) -> Tensor", tags=[torch.Tag.pt2_compliant_tag])
torch.library.impl("lab::gated", "cpu", lambda z, x: z.detach().sigmoid() * x.detach())
gated, z, x = torch.ops.lab.gated, torch.ones(3, 4, requires_grad=True), torch.ones(3, 4)
"""


def test_no_fake_kernel(sandbox: Sandbox) -> None:
    page = problem("No fake kernel")
    compiling = "torch.compile(gated, backend='aot_eager', fullgraph=True)(z.detach(), x)"
    for symptom, use in zip(page.symptoms, ("gated(z.to('meta'), x.to('meta'))", compiling), strict=True):
        assert_printed(symptom, sandbox.fails(sandbox.script(GATED + use)))
        sandbox.works(sandbox.script(f"{GATED}{page.fixes[0]}\n{use}"))


@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.3f")
def test_a_fake_kernel_that_lies(sandbox: Sandbox) -> None:
    page = problem("A fake kernel that differs from the real one")
    sandbox.environment["TORCHINDUCTOR_CACHE_DIR"] = str(sandbox.folder / "inductor")

    def script(fake: str) -> str:
        told = f"torch.library.register_fake('lab::gated', lambda z, x: {fake})\n"
        return sandbox.script(f"{GATED}{told}print(torch.compile(gated, fullgraph=True)(z.detach(), x).shape)")

    right = "z.new_empty(z.shape)"
    assert_printed(page.symptoms[0], sandbox.fails(script("z.new_empty(4, 3)")))
    assert_printed(page.symptoms[0], sandbox.fails(script(right)))
    assert "torch.Size([3, 4])" in sandbox.works(f"{page.fixes[0]}\n{script(right)}")
    if TorchVersion(torch.__version__) >= (2, 15):
        output = sandbox.fails(f"{page.fixes[0]}\n{script('z.new_empty(z.shape, dtype=torch.float16)')}")
        assert_printed(page.symptoms[1], output)


TWO_OPERATORS = """
#define EXPAND_TORCH_LIBRARY(name, m) TORCH_LIBRARY(name, m)
EXPAND_TORCH_LIBRARY(NAMESPACE, m) {
  m.def("gated(Tensor z, Tensor x) -> Tensor");  // has no kernel: the error says whose was called
  m.def("calls(Tensor z, Tensor x) -> Tensor", &gated);
}
"""
CALL_BOTH = """
import torch
for name in ("lab", "mine"):
    torch.ops.load_library(f"./{name}.so")
for name in ("lab", "mine"):
    try:
        getattr(torch.ops, name).calls(torch.ones(2), torch.ones(2))
    except NotImplementedError as error:
        print(f"NotImplementedError: {error}")
"""


@pytest.mark.needs("g++")
@pytest.mark.syllabus("5.1g")
def test_the_operator_of_another_extension(sandbox: Sandbox) -> None:
    page = problem("The operator of another extension")
    unnamed = page.fixes[0]
    bare = unnamed.replace("namespace {\n", "").replace("}  // namespace\n", "")
    assert bare.count("namespace") == 0

    def library(name: str, source: str) -> None:
        module = str(sandbox.write("module.cpp", source + TWO_OPERATORS))
        sandbox.compile_with_torch(f"{name}.so", f"-DNAMESPACE={name}", source=module)

    def called() -> list[str]:
        return re.findall(r"Could not run '(\w+)::gated'", sandbox.works(sandbox.script(CALL_BOTH)))

    library("lab", bare)
    library("mine", bare)
    assert called() == ["lab", "lab"]
    assert_printed(page.symptoms[0], sandbox.works("python script.py"))
    library("mine", unnamed)
    assert called() == ["lab", "mine"]


def test_an_operator_without_a_gradient(sandbox: Sandbox) -> None:
    page = problem("An operator without a gradient")
    use = "\ngated(z, x).sum().backward()\nprint('gradient:', z.grad is not None)"
    output = sandbox.works(sandbox.script(GATED + use))
    assert_printed(page.symptoms[0], output)
    assert "gradient: False" in output
    output = sandbox.works(sandbox.script(GATED + page.fixes[0] + use))
    assert "UserWarning" not in output
    assert "gradient: True" in output


def test_torch_func_and_registered_operators(sandbox: Sandbox) -> None:
    page = problem("torch.func and registered operators")
    told = GATED + problem("An operator without a gradient").fixes[0]
    asking = "torch.func.{}(lambda z: gated(z, x).sum(){})"
    output = sandbox.fails(sandbox.script(f"{told}\n{asking.format('grad', '')}(z.detach())"))
    assert_printed(page.symptoms[0], output)
    forward = asking.format("jvp", ", (z.detach(),), (x,)")
    assert "tangent: 0.0" in sandbox.works(sandbox.script(f"{told}\nprint('tangent:', {forward}[1].item())"))
    output = sandbox.works(sandbox.script(f"{told}\n{page.fixes[0]}\nprint(gradient.sum().item())"))
    assert float(output.splitlines()[-1]) == pytest.approx(12 * 0.19661193)

    tangent = f"{told}\n{page.fixes[1]}\n{forward.replace('gated(', 'gated_or_error(')}"
    assert "RuntimeError: gated: there are no forward-mode derivatives" in sandbox.fails(sandbox.script(tangent))


@pytest.mark.needs("g++")
@pytest.mark.proof("troubleshooting sections", files=["docs/troubleshooting.md", *stage_files(1, 5, 6)])
def test_torch_func_and_the_cells() -> None:
    page = problem("torch.func and the cells")
    input, *others = (tensor.detach() for tensor in Case(2, 3, 4).inputs().values())

    def tangent(lltm: Cell) -> torch.Tensor:
        return torch.func.jvp(lambda x: lltm(x, *others)[0], (input,), (input.cos(),))[1]

    for number, symptom in zip((5, 6), page.symptoms, strict=True):
        with pytest.raises(RuntimeError) as raised:
            tangent(load(number, "host").lltm)
        assert_printed(symptom, f"RuntimeError: {raised.value}")
    fixed: dict = {"load": load}
    exec(page.fixes[0], fixed)
    assert tangent(fixed["lltm"]).shape == (2, 4)


USE_COMMON = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport torch; from common import load\n"
CASE = "from common.cell.case import Case\ninput, *others = (t.detach() for t in Case(2, 3, 4).inputs().values())\n"
PENALTY = """
def penalised(value, x):
    (gradient,) = torch.autograd.grad(value, x, create_graph=True)
    return torch.autograd.grad(value + gradient.square().sum(), x)
"""


@pytest.mark.proof(files=stage_files(1))
def test_no_second_derivative(sandbox: Sandbox) -> None:
    page = problem("No second derivative")
    cell = "import lltm_stage1.by_hand\ninput.requires_grad_()\n"
    use = "print(penalised(sum(r.sum() for r in {}(input, *others)), input))"
    start = USE_COMMON + "load(1)\n" + CASE + cell + PENALTY
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + use.format("lltm_stage1.by_hand.lltm"))))
    assert "tensor" in sandbox.works(sandbox.script(start + use.format("load(1).lltm")))
    own = f"import torch\n{page.fixes[0]}{PENALTY}x = torch.ones(3, requires_grad=True)\n"
    output = sandbox.fails(sandbox.script(own + "penalised(Sin.apply(x).sum(), x)"))
    assert "RuntimeError: sin: there are no second derivatives" in output


@pytest.mark.needs("g++")
def test_a_second_derivative_of_a_compiled_function(sandbox: Sandbox) -> None:
    page = problem("A second derivative of a compiled function")
    start = f"import torch\n{PENALTY}x = torch.ones(3, requires_grad=True)\n"
    use = "sine = torch.compile(torch.sin, backend='aot_eager')\nprint(penalised(sine(x).sum(), x))"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + use)))
    assert "tensor" in sandbox.works(sandbox.script(start + page.fixes[0] + use))


def test_gradcheck_in_float32(sandbox: Sandbox) -> None:
    page = problem("gradcheck in float32")
    start = "import torch\nx = torch.linspace(-1, 1, 5, requires_grad=True)\n"
    check = "torch.autograd.gradcheck(torch.sigmoid, x)"
    assert_printed(page.symptoms[0], sandbox.fails(sandbox.script(start + check)))
    sandbox.works(sandbox.script(start + page.fixes[0] + check))


def shown(session: str) -> tuple[str, str]:
    """The command and what it prints, of a symptom that shows both."""
    command, _, printed = session.removeprefix("$ ").partition("\n")
    return command, printed


@pytest.mark.needs("g++", "ninja")
def test_cpp_built_without_optimisation(sandbox: Sandbox, loading: str) -> None:
    page = problem("C++ slower than Python")
    command, printed = shown(page.symptoms[0])
    assert "optimised: 0" in sandbox.works(loading)
    assert sandbox.run(command) == (1, printed)
    (sandbox.folder / "module.cpp").rename(sandbox.folder / "lltm.cpp")
    assert "optimised: 1" in sandbox.works(sandbox.script(page.fixes[0] + "print('optimised:', extension.optimised)"))
    assert int(sandbox.works(command)) > 0


def test_cpp_on_one_thread(sandbox: Sandbox) -> None:
    page = problem("C++ slower than Python")
    command, printed = shown(page.symptoms[1])
    assert sandbox.works(command, OMP_NUM_THREADS="1") == printed
    assert sandbox.works(f"{page.fixes[1]}\n{command}", OMP_NUM_THREADS="1") == sandbox.works(command)


@pytest.mark.needs("gpu")
def test_cpp_that_waits_for_the_gpu(sandbox: Sandbox) -> None:
    page = problem("C++ slower than Python")
    mode = re.search(r'`(torch\.cuda\.set_sync_debug_mode\("warn"\))`', sections()["C++ slower than Python"]).group(1)
    output = sandbox.works(sandbox.script(f"import torch\nx = torch.ones(1, device='cuda')\n{mode}\nx.item()"))
    assert_printed(page.symptoms[2], output)


@pytest.mark.needs("g++")
def test_a_crash_instead_of_an_error(sandbox: Sandbox) -> None:
    page = problem("A crash instead of an error")
    sandbox.tool("own-g++", 'exec g++ -static-libstdc++ "$@"')
    sandbox.environment["PYTHONPATH"] = str(ROOT)
    looking = (
        'python -c "from common.setup import doctor, facts; print(doctor.probe_compiler(facts.inspect_machine()))"'
    )
    output = sandbox.works(f"export CXX=own-g++; {looking}")
    assert "links its own C++ library" in output
    assert page.fixes[0].strip() in output
    assert "links its own C++ library" not in sandbox.works(f"{page.fixes[0]}\n{looking}")
