"""The code shown in the notebooks: Python by its names, C++ and CUDA as text and as built modules."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType

import pytest
import torch
from torch.utils.cpp_extension import load_inline

from common.inline import inline
from common.pages.notebooks import NOTEBOOKS
from common.paths import build_dir


@cache
def definitions(notebook: str) -> ModuleType:
    """The classes and functions that a notebook defines, without running the rest of its cells."""
    module = ModuleType(notebook)
    sys.modules[notebook] = module  # torch.compile imports the module of a function that calls another
    for statement in ast.parse((NOTEBOOKS / f"{notebook}.py").read_text()).body:
        code = compile(ast.Module([statement], []), notebook, "exec")
        if isinstance(statement, ast.Import | ast.ImportFrom):
            with contextlib.suppress(ImportError):  # such as a module that is needed only for figures
                exec(code, vars(module))
        elif isinstance(statement, ast.ClassDef | ast.FunctionDef):
            exec(code, vars(module))
    return module


@cache
def texts(notebook: str) -> dict[str, object]:
    """Every string and list of strings that a notebook assigns to a name, including later additions."""
    found: dict[str, object] = {}
    for statement in ast.parse((NOTEBOOKS / f"{notebook}.py").read_text()).body:
        if not isinstance(statement, ast.Assign | ast.AugAssign):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        try:
            value = ast.literal_eval(statement.value)
        except ValueError:
            continue
        if isinstance(target, ast.Name) and isinstance(value, str | list):
            found[target.id] = value if isinstance(statement, ast.Assign) else found[target.id] + value
    return found


ATEN, ACCESSORS = texts("02_aten") | texts("02c_faster_backward"), texts("04_cuda_accessors")
POINTERS = texts("03_cuda_pointers") | texts("03b_kernel_in_torch") | texts("03c_threads_together")
CUSTOM_OP = texts("05_custom_op")
TENSORS, OTHER_CODE = texts("02d_tensors_in_cpp"), texts("02e_other_code")


@cache
def lab(name: str, cuda_source: str) -> ModuleType:
    """One of the small kernels of notebook 03c, with the host code that they share."""
    return inline(name, POINTERS["LAB_CPP"], cuda_source, ["run", "make"], target="emulator")


@cache
def who(name: str) -> ModuleType:
    """A kernel whose threads record their indices: MATRIX, ROWS or STRIDE."""
    return inline(name.lower(), POINTERS["WHO_CPP"], POINTERS[f"{name}_CU"], ["record"], target="emulator")


@cache
def guards() -> ModuleType:
    return inline("guards", POINTERS["GUARD_CPP"], POINTERS["GUARD_CU"], ["guard"], target="emulator")


@cache
def marks() -> ModuleType:
    return inline("marks", POINTERS["PLACE_CPP"], POINTERS["PLACE_CU"], ["place", "mark"], target="emulator")


@cache
def linear() -> ModuleType:
    return inline("linear", POINTERS["LINEAR_CPP"], POINTERS["LINEAR_CU"], ["linear"], target="emulator")


def report(call: Callable, *arguments: object) -> str:
    """The emulator's report on a wrong kernel."""
    with pytest.raises(RuntimeError) as error:
        call(*arguments)
    return str(error.value)


@cache
def checks() -> ModuleType:
    functions = ["d_cell", "checked_d_cell"]
    return inline("checks", POINTERS["CHECKS_CPP"], POINTERS["CHECKS_CU"], functions, target="emulator")


@cache
def launches(target: str | None = "emulator") -> ModuleType:
    """The module for the emulator, or for the GPU if `target` is None."""
    functions = ["add_one", "add_one_unchecked", "add_one_on_default_stream", "device_inside_guard"]
    return inline("launches", POINTERS["LAUNCHES_CPP"], POINTERS["LAUNCHES_CU"], functions, target=target)


@cache
def crashing() -> ModuleType:
    return inline("crashing", POINTERS["CRASH_CPP"], POINTERS["CRASH_CU"], ["crash"], target="emulator")


@cache
def accessors(name: str) -> ModuleType:
    """A module of notebook 04: "places", "strided" or "bounds" with kernels, "sum" or "kinds" for the CPU."""
    functions = {
        "places": ["by_name", "by_hand"],
        "strided": ["walk", "copy"],
        "bounds": ["element", "gate"],
        "sum": ["sum_on_cpu"],
        "kinds": ACCESSORS["FUNCTIONS"],
    }
    upper = name.upper()
    cuda_source = ACCESSORS.get(f"{upper}_CU", "")
    return inline(name, ACCESSORS[f"{upper}_CPP"], cuda_source, functions[name], target="emulator")


@cache
def temporaries() -> ModuleType:
    functions = ["in_the_call", "before_the_call"]
    return inline("temporaries", TENSORS["TEMPORARIES_CPP"], TENSORS["TEMPORARIES_CU"], functions, target="emulator")


@cache
def lab_library() -> str:
    """Loads notebook 05's library with torch.ops.lab.gated and torch.ops.lab.forgotten, and returns its path."""
    folder = build_dir() / "notebooks" / f"torch-{torch.__version__}" / "lab"  # the notebook's own
    folder.mkdir(parents=True, exist_ok=True)
    options = {"is_python_module": False, "no_implicit_headers": True, "extra_cflags": ["-O2"]}
    return load_inline("lab", CUSTOM_OP["GATED"], functions=None, build_directory=str(folder), **options)
