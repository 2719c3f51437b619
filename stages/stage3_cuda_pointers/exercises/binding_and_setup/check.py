import torch

from common.exercises.judge import CALLS, BuildFailure, Failure, LearnerError, agree, cases, releases_gil, require
from common.exercises.judging.toolchain import commands

NAMES = {
    "forward": ("input", "weights", "bias", "old_h", "old_cell"),
    "backward": ("grad_h", "grad_cell", "weights", "X", "gates", "new_cell", "needs_input_grad"),
}
LIBRARIES = ("c10_cuda", "torch_cuda")
PLAIN = (
    "The emulator does not need them, but on a GPU the import would fail with an undefined symbol. CppExtension does "
    "not add CUDA's headers and libraries; CUDAExtension does"
)
SAVED = (
    "lltm.py calls _C.backward with arguments that do not match its parameters: grad_h, grad_cell, weights, X, "
    "gates, new_cell, needs_input_grad. Which tensors does lltm.py save?"
)


def check(work):
    try:
        extension = work.load("_C")
    except BuildFailure as failure:
        if "launch_" in str(failure):
            raise BuildFailure(
                f"{failure}\nIt is defined in csrc/lltm_kernel.cu. Does setup.py list that file?"
            ) from None
        raise
    check_commands(commands(work))
    check_names(work)
    names = dir(extension)
    for name, arguments in NAMES.items():
        require(name in names, f"the module has no function {name}: add it with m.def in PYBIND11_MODULE")
        text = getattr(extension, name).doc.strip()
        for argument in arguments:
            require(f"{argument}:" in text, f"help({name}) shows {text.splitlines()[0]}: the argument {argument} has "
                    "no name. Name it with py::arg")  # fmt: skip
        require(len(text.splitlines()) > 1, f"help({name}) shows no docstring: pass one to m.def as a string")
    case = work.case(3, 5, 70)
    inputs = {name: tensor.detach() for name, tensor in case.inputs().items()}
    by_name, by_position = extension.forward(**inputs), extension.forward(*inputs.values())
    compare_calls("forward", by_name, by_position)
    _, new_cell, X, gates = by_name
    given = {"grad_h": torch.ones_like(new_cell), "grad_cell": None, "weights": inputs["weights"], "X": X}
    rest = {"gates": gates, "new_cell": new_cell, "needs_input_grad": [True] * 5}
    by_name, by_position = extension.backward(**given, **rest), extension.backward(*given.values(), *rest.values())
    compare_calls("backward", by_name, by_position)
    try:
        agree(work.cell(), cases(work))
    except LearnerError as error:
        if "incompatible function arguments" not in str(error):
            raise
        raise Failure(SAVED) from None
    check_saved(work, case)
    on_ctx = work.beside(CALLS).attributes("lltm", "lltm", *work.case(3, 5, 70).inputs().values())
    require(
        not on_ctx,
        f"lltm.py keeps tensors as attributes of ctx: {', '.join(on_ctx)}. Save them with save_for_backward: "
        "autograd then notices changes, and frees an output that is not needed any more",
    )
    check_other_threads(work, extension)


def compare_calls(name, by_name, by_position):
    """Checks that the names of the arguments are in the order of the parameters."""
    for one, other in zip(by_name, by_position, strict=True):
        require(
            torch.equal(one, other),
            f"{name} has another result if its arguments are passed by name. Their order in C++ is "
            f"{', '.join(NAMES[name])}: do the names of py::arg have the same order?",
        )


def check_saved(work, case):
    """Checks that forward saves what backward needs, and nothing else."""
    B, I, S = case.B, case.I, case.S
    with work.counting() as counted:
        work.cell()(*case.inputs().values())
    enough = case.dtype.itemsize * (3 * S * (S + I) + B * (S + I) + 3 * B * S + B * S)
    require(
        counted.saved <= enough,
        f"lltm.py saves {counted.saved} bytes, but weights, X, gates and new_cell, which are all that backward "
        f"reads, have {enough}. Every other tensor stays in memory until backward for nothing",
    )


def check_commands(asked):
    """Checks setup.py's commands: nvcc compiles the kernels, and CUDA's libraries and the package are right."""
    nvcc = [command.source for command in asked if command.tool == "nvcc"]
    require("lltm_kernel.cu" in nvcc, f"nvcc compiles {', '.join(nvcc) or 'nothing'}, expected csrc/lltm_kernel.cu")
    words = asked[-1].words
    missing = [name for name in LIBRARIES if f"-l{name}" not in words]
    require(not missing, f"the library is linked without {' and '.join(missing)}. {PLAIN}")
    package = words[words.index("-o") + 1].split("/")[-2]
    require(
        package == "lltm_stage3",
        f"the package is called {package}, expected lltm_stage3. Installing it would replace another package",
    )


# Runs setup.py up to the point where it would build, and reports what the package is called.
NAMED = """
import os, setuptools
from distutils.core import run_setup
made = run_setup("setup.py", stop_after="init")
folder = os.path.relpath((made.package_dir or {}).get("lltm_stage3", "lltm_stage3") or ".")
modules = [one.name for one in made.ext_modules]
tell({"name": made.get_name(), "packages": made.packages, "modules": modules, "folder": folder})
"""


def check_names(work):
    """Checks that distribution, package and module have the new name, and that the package is in this folder."""
    told = work.observe(NAMED).told
    if told is None:
        return  # check_commands has run all of setup.py
    for what, found, wanted in (
        ("name", told["name"], "lltm_stage3"),
        ("packages", told["packages"], ["lltm_stage3"]),
        ("the module", told["modules"], ["lltm_stage3._C"]),
    ):
        require(
            (found or "").replace("-", "_") == wanted if what == "name" else found == wanted,
            f"in setup.py {what} is {found!r}, expected {wanted!r}: pip would install it under the wrong name",
        )
    require(
        told["folder"] == ".",
        f"with the package_dir of setup.py, pip looks for the files of lltm_stage3 in {told['folder']!r}, but they "
        "are in this folder, '.'",
    )


def check_other_threads(work, extension):
    """Checks that other Python threads can run during forward and backward."""
    inputs = [one.detach() for one in work.case(64, 700, 700, dtype=torch.float64).inputs().values()]
    new_h, new_cell, X, gates = extension.forward(*inputs)
    releases_gil(work, "forward", *inputs)
    releases_gil(work, "backward", new_h, new_cell, inputs[1], X, gates, new_cell, [True] * 5)
