import torch

from common.exercises.judge import BuildFailure, Failure, LearnerError, agree, cases, releases_gil, require
from common.exercises.toolchain import commands

NAMES = {
    "forward": ("input", "weights", "bias", "old_h", "old_cell"),
    "backward": ("grad_h", "grad_cell", "weights", "X", "gates", "new_cell", "needs_input_grad"),
}
LIBRARIES = ("c10_cuda", "torch_cuda")
PLAIN = (
    "the emulator has no need of them. On a GPU the import would end with an undefined symbol: CppExtension does not "
    "know CUDA's headers and libraries, and CUDAExtension does"
)
SAVED = (
    "_C.backward is called with other arguments than it has: it wants grad_h, grad_cell, weights, X, gates, "
    "new_cell, needs_input_grad. What has lltm.py saved?"
)


def check(work):
    try:
        extension = work.load("_C")
    except BuildFailure as failure:
        if "launch_" in str(failure):
            raise BuildFailure(f"{failure}\nIt is in csrc/lltm_kernel.cu. Does setup.py name that file?") from None
        raise
    for_cuda(commands(work))
    names = dir(extension)
    for name, arguments in NAMES.items():
        require(name in names, f"the module has no {name}: m.def in PYBIND11_MODULE gives it one")
        text = getattr(extension, name).doc.strip()
        for argument in arguments:
            require(f"{argument}:" in text, f"help({name}) shows {text.splitlines()[0]}: the argument {argument} has "
                    "no name. py::arg gives it one")  # fmt: skip
        require(len(text.splitlines()) > 1, f"help({name}) shows no docstring: m.def takes it as a text")
    case = work.case(3, 5, 70)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    _, new_cell, X, gates = extension.forward(**inputs)
    given = {"grad_h": torch.ones_like(new_cell), "grad_cell": None, "weights": inputs["weights"], "X": X}
    extension.backward(**given, gates=gates, new_cell=new_cell, needs_input_grad=[True] * 5)
    try:
        agree(work.cell(), cases(work))
    except LearnerError as error:
        if "incompatible function arguments" not in str(error):
            raise
        raise Failure(SAVED) from None
    threads(work, extension)


def for_cuda(asked):
    """What setup.py asks of the compilers: nvcc for the kernels, CUDA's libraries, and a place in the package."""
    nvcc = [command.source for command in asked if command.tool == "nvcc"]
    require("lltm_kernel.cu" in nvcc, f"nvcc compiles {', '.join(nvcc) or 'nothing'}, expected csrc/lltm_kernel.cu")
    words = asked[-1].words
    missing = [name for name in LIBRARIES if f"-l{name}" not in words]
    require(not missing, f"the library is linked without {' and '.join(missing)}: {PLAIN}")
    package = words[words.index("-o") + 1].split("/")[-2]
    require(
        package == "lltm_stage3",
        f"the package is called {package}, expected lltm_stage3: installed, it would replace the one of that name",
    )


def threads(work, extension):
    """Other threads of Python run meanwhile."""
    inputs = [one.detach() for one in work.case(64, 700, 700, dtype=torch.float64).inputs().values()]
    new_h, new_cell, X, gates = extension.forward(*inputs)
    releases_gil(work, "forward", *inputs)
    releases_gil(work, "backward", new_h, new_cell, inputs[1], X, gates, new_cell, [True] * 5)
