import re
from pathlib import Path

import torch

from common.exercises.judge import OPERATORS, BuildFailure, Failure, require, same

MEMORY = Path(__file__).parent / "memory.py"
CALLS = 1000
OLDEST = 0x030A  # the first two bytes of PY_VERSION_HEX; the headers compare only these
# Runs setup.py up to the point where it would start to build, and asks its commands for the names of the results.
READER = """
import distutils.core, setuptools
setup = distutils.core.run_setup("setup.py", ["bdist_wheel"], stop_after="init")
extension, = setup.ext_modules
build, wheel = setup.get_command_obj("build_ext"), setup.get_command_obj("bdist_wheel")
for command in (build, wheel):
    command.ensure_finalized()
macros = {name: value for name, value in extension.define_macros}
flags = extension.extra_compile_args
for flag in flags.get("cxx", []) if isinstance(flags, dict) else flags or []:
    if flag.startswith("-DPy_LIMITED_API"):
        macros["Py_LIMITED_API"] = flag.partition("=")[2]
tell({
    "macro": macros.get("Py_LIMITED_API", "none"),
    "file": build.get_ext_filename(extension.name).rpartition("/")[2],
    "tag": "-".join(wheel.get_tag()[:2]),
})
"""


def check(work):
    told = read(work)
    headers(told["macro"])
    in_the_source(work)
    require(
        told["file"] == "_C.abi3.so",
        f"the extension's file would be named {told['file']}, which only one version of Python looks for; expected "
        "_C.abi3.so. CppExtension has an argument for that",
    )
    require(
        told["tag"] == "cp310-abi3",
        f"the wheel's name would contain {told['tag']}, so pip would install it for no other version of Python; "
        "expected cp310-abi3",
    )
    called(work)


def read(work):
    """What setup.py would build."""
    ran = work.observe(READER, TORCH_CPP_LOG_LEVEL="ERROR", PYTHONWARNINGS="ignore")
    if ran.told is None:
        raise Failure("\n".join(["setup.py cannot be run:", *ran.output.splitlines()[-4:]]))
    return ran.told


def headers(macro):
    """Py_LIMITED_API is the oldest Python that the wheel is for."""
    require(
        macro != "none",
        "the headers allow the whole C API, so the compiler accepts code that does not work with another version of "
        "Python: define the macro Py_LIMITED_API",
    )
    try:
        version = int(macro, 0)
    except (TypeError, ValueError):
        raise Failure(f"Py_LIMITED_API is {macro}: expected a number such as 0x030A0000, which is 3.10") from None
    oldest = f"{version >> 24}.{version >> 16 & 0xFF}"
    require(
        version >> 16 == OLDEST,
        f"Py_LIMITED_API is {macro}: the headers allow the API of Python {oldest}, but the wheel is for 3.10",
    )


def in_the_source(work):
    """No source takes the macro back, and with it the limit."""
    code = work.code("csrc/halves.cpp")
    undone = re.search(r"#\s*(undef|define)\s+Py_LIMITED_API", code)
    require(
        not undone,
        f"csrc/halves.cpp contains {undone and undone[0]}: then its code may use the layout of one version of "
        "Python, and the macro of setup.py has no effect. Change the line that does not compile",
    )


def called(work):
    """The extension builds with these headers, and works."""
    try:
        names = work.load("_C").operators()
    except BuildFailure as failure:
        hint = "\nThe limited API lacks macros and functions that access the fields of Python objects" * (
            "Py" in str(failure)
        )
        raise BuildFailure(f"{failure}{hint}") from None
    require(names == ["half"], f"_C.operators() returns {names}, expected ['half']")
    kept = work.beside(MEMORY).kept(CALLS)
    require(
        kept < CALLS / 2,
        f"after {CALLS:,} calls of _C.operators(), {kept:,} more blocks of memory are in use, although their results "
        "are gone: an object has one reference too many. PyList_Append and PyList_Insert take one of their own, so "
        "yours is left to release with Py_DECREF; PyList_SetItem takes yours",
    )
    x = torch.randn(3, 7, generator=work.numbers())
    same("torch.ops.halves.half(x)", work.beside(OPERATORS).call("halves::half", x), x.double() / 2, "", x.dtype)
