"""The learner's process: imports what a learner wrote and does what the judge asks, on stdin, with answers on stdout.

It is run as a script and sees nothing of `common` but wire.py. Usage: learner.py FOLDER.
Whatever happens here, the judge only ever reads frames of tensors, numbers and texts.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import faulthandler
import importlib
import importlib.machinery
import importlib.util
import os
import signal
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import BinaryIO

import wire  # stands beside this script

FOLDER = Path(sys.argv[1]).resolve()
PACKAGE = "lltm_exercise"
KEPT_GRAPHS = 16


class Learner:
    """What is loaded, the graphs of past calls, and what is being counted."""

    def __init__(self) -> None:
        self.library: str | None = None
        self.graphs: collections.OrderedDict[int, tuple] = collections.OrderedDict()
        self.calls = 0
        self.counting: Counting | None = None

    def load(self, library: str | None) -> None:
        """Makes the folder a package, `library` its `_C`."""
        self.library = library
        init = FOLDER / "__init__.py"
        package = types.ModuleType(PACKAGE)
        package.__path__, package.__file__ = [str(FOLDER)], str(init)
        sys.modules[PACKAGE] = package
        if library:
            name = f"{PACKAGE}._C"
            loader = importlib.machinery.ExtensionFileLoader(name, library)
            spec = importlib.util.spec_from_file_location(name, library, loader=loader)
            package._C = sys.modules[name] = importlib.util.module_from_spec(spec)
            loader.exec_module(package._C)

    def define(self, module: str, text: str) -> None:
        """Makes a module of the package from a text: the check's own, beside the learner's."""
        made = types.ModuleType(f"{PACKAGE}.{module}")
        made.__package__ = PACKAGE
        sys.modules[made.__name__] = made
        exec(compile(text, f"<{module}>", "exec"), vars(made))

    def function(self, module: str, name: str) -> object:
        """What a module of the learner's calls by that name."""
        try:
            found = importlib.import_module(f"{PACKAGE}.{module}")
        except SyntaxError as error:  # one without a name: the file is no text
            error.filename = error.filename or str(FOLDER / f"{module}.py")
            raise
        for part in name.split("."):
            if not hasattr(found, part):
                raise AttributeError(f"{module} has no {name}")
            found = getattr(found, part)
        return found

    def names(self, module: str) -> list[str]:
        """What a module defines."""
        return [name for name in vars(importlib.import_module(f"{PACKAGE}.{module}")) if not name.startswith("__")]

    def doc(self, module: str, name: str) -> str:
        """A function's docstring; pybind11 puts the signature there."""
        return self.function(module, name).__doc__ or ""

    def call(self, module: str, name: str, arguments: list, keywords: dict, may_change: bool) -> dict:
        """The value of a call, and the number of its graph where gradients can be asked for."""
        function = self.function(module, name)
        tensors = [one for one in wire.flat([arguments, list(keywords.values())]) if isinstance(one, torch.Tensor)]
        before = [] if may_change else [(one, one.detach().clone()) for one in tensors]
        with self.counting or contextlib.nullcontext():
            value = function(*arguments, **keywords)
        outputs = [one for one in wire.flat(value) if isinstance(one, torch.Tensor)]
        changed = [k for k, (now, old) in enumerate(before) if is_changed(now, old)]
        graph = None
        if any(one.requires_grad for one in outputs):
            self.calls += 1
            graph = self.calls
            self.graphs[graph] = ([one for one in tensors if one.requires_grad], outputs)
            if len(self.graphs) > KEPT_GRAPHS:
                self.graphs.popitem(last=False)
        same = [next((k for k, given in enumerate(tensors) if given is one), None) for one in outputs]
        return {"value": value, "graph": graph, "changed": changed, "same": same}

    def backward(self, graph: int, gradients: list) -> list:
        """The gradients of a call's arguments, None for one that autograd could not reach."""
        inputs, outputs = self.graphs[graph]
        pairs = [(out, grad) for out, grad in zip(outputs, gradients, strict=True) if grad is not None]
        before = [(grad, grad.clone()) for _, grad in pairs]
        heads, grads = zip(*pairs, strict=True)
        with self.counting or contextlib.nullcontext():
            found = list(torch.autograd.grad(heads, inputs, grads, allow_unused=True, retain_graph=True))
        for change in before:
            if is_changed(*change):
                raise RuntimeError("backward changes the gradient that it was given; others may read the same memory")
        return found

    def second(self, graph: int, gradients: list) -> list:
        """Second derivatives of a call: those of the sum of its squared gradients. They may be refused."""
        inputs, outputs = self.graphs[graph]
        grads = [gradient.detach().requires_grad_() for gradient in gradients]
        first = torch.autograd.grad(outputs, inputs, grads, allow_unused=True, create_graph=True)
        total = sum(one.square().sum() for one in first if one is not None)
        total.backward(retain_graph=True)  # `grad` of the inputs alone would not reach the refusal
        found = [one.grad for one in inputs]
        for one in inputs:
            one.grad = None
        return found

    def count(self) -> None:
        """From now on ATen calls, bytes saved for backward and what kernels do are counted."""
        self.counting = Counting(self.library)

    def counted(self) -> dict:
        """What was counted since."""
        counting, self.counting = self.counting, None
        return counting.end()


class Counting:
    """ATen's calls by name and the bytes that autograd keeps, within `with`; the emulator's counts from now on."""

    def __init__(self, library: str | None) -> None:
        from torch.utils._python_dispatch import TorchDispatchMode

        calls = self.calls = collections.Counter()
        saved = self.saved = {}

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, kinds, arguments=(), keywords=None):
                calls[function._schema.name.removeprefix("aten::")] += 1
                return function(*arguments, **(keywords or {}))

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        self.mode, self.keep = Mode, keep
        emulator = ctypes.CDLL(library) if library else None
        self.emulator = emulator if hasattr(emulator, "emulator_counts_begin") else None
        if self.emulator:
            self.emulator.emulator_counts_begin.argtypes = [ctypes.c_longlong, ctypes.c_uint, ctypes.c_uint]
            self.emulator.emulator_counts_end.restype = ctypes.c_char_p
            self.emulator.emulator_counts_begin(-1, 0, 2**32 - 1)

    def __enter__(self) -> None:
        self.contexts = contextlib.ExitStack()
        self.contexts.enter_context(torch.autograd.graph.saved_tensors_hooks(self.keep, lambda tensor: tensor))
        self.contexts.enter_context(self.mode())

    def __exit__(self, *_: object) -> None:
        self.contexts.close()

    def end(self) -> dict:
        """The numbers."""
        kernels = self.emulator.emulator_counts_end().decode() if self.emulator else None
        return {"calls": dict(self.calls), "saved": sum(self.saved.values()), "kernels": kernels}


def is_changed(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether a tensor holds other numbers, also where a pointer went past autograd's counter of versions."""
    if now.device.type == "meta":
        return False
    return not torch.equal(now.detach().nan_to_num(), before.nan_to_num())


def described(error: BaseException) -> dict:
    """An exception, with the learner's own lines of its traceback."""
    where = []
    if isinstance(error, SyntaxError) and error.filename:
        where = [[os.path.relpath(error.filename, FOLDER), error.lineno or 0, (error.text or "").strip()]]
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            if not frame.filename.startswith("<") and Path(frame.filename).resolve().is_relative_to(FOLDER):
                where.append([os.path.relpath(frame.filename, FOLDER), frame.lineno, frame.line])
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"kind": type(error).__name__, "message": message.replace(f"{PACKAGE}.", ""), "where": where}


def pipes() -> tuple[BinaryIO, BinaryIO]:
    """Where the judge's requests come from, and answers go; from now on what is printed goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers until the judge hangs up."""
    learner, process = Learner(), os.getpid()

    def read(count: int) -> bytes:
        data = requests.read(count)
        if len(data) < count:
            os._exit(0)
        return data

    while True:
        try:
            request = wire.unpack(read)
            try:
                answer = wire.pack({"answer": getattr(learner, request["do"])(**request["with"])})
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                answer = wire.pack({"error": described(error)})
            if os.getpid() != process:  # what was forked must not answer, too
                os._exit(0)
            for part in answer:
                answers.write(part)
            answers.flush()
        except OSError:  # the learner's code has closed our pipes
            os._exit(wire.PIPE_LOST)


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: a learner's `import wire` is not ours
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: when the judge is killed, this ends too
    requests, answers = pipes()
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message=".*determinis.*")
    # `empty()`, in C++ too, starts as NaN, so that an output which nobody wrote cannot pass. The same by
    # torch.use_deterministic_algorithms would import Inductor first, which takes as long as importing torch.
    torch.set_deterministic_debug_mode("warn")
    main(requests, answers)
