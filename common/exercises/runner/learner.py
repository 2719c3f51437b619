"""The learner's process: imports the learner's code, reads the judge's requests from stdin and answers on stdout.

It runs as a script and imports only wire.py from `common`. Usage: learner.py FOLDER.
Whatever happens here, the judge reads only frames of tensors, numbers and texts.
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
from time import process_time_ns, thread_time_ns
from typing import BinaryIO

import wire  # stands beside this script

FOLDER = Path(sys.argv[1]).resolve()
PACKAGE = "lltm_exercise"
KEPT_GRAPHS = 16
SHORT = 20_000  # nanoseconds, less than it takes to start a thread
# Functions of torch that tell what holds for the whole program.
SETTINGS = (
    "get_default_dtype",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_threads",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
)


class SourceLoader(importlib.machinery.SourceFileLoader):
    """Records the modules loaded from the learner's files, because code can replace entries of sys.modules."""

    loaded: dict[str, types.ModuleType] = {}  # noqa: RUF012

    def exec_module(self, module: types.ModuleType) -> None:
        """Loads a module, and keeps it if that succeeds."""
        super().exec_module(module)
        self.loaded[module.__name__] = module


class SourceFinder:
    """Finds the modules of the learner's package for `import`."""

    @staticmethod
    def find_spec(name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """How to load a module that is a file of the folder; None for any other."""
        package, _, module = name.partition(".")
        file = FOLDER / f"{module}.py"
        if package != PACKAGE or not module or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=SourceLoader(name, str(file)))


class Learner:
    """The loaded modules, the graphs of past calls, and the current counts."""

    def __init__(self) -> None:
        self.own: dict[str, types.ModuleType] = {}  # the extension, and modules of the check
        self.emulator: ctypes.CDLL | None = None  # the extension, if it runs on the emulator
        self.graphs: collections.OrderedDict[int, tuple] = collections.OrderedDict()
        self.calls = 0
        self.counting: Counting | None = None

    def load(self, library: str | None) -> None:
        """Turns the folder into a package, with `library` as its `_C`."""
        sys.meta_path.insert(0, SourceFinder)
        init = FOLDER / "__init__.py"
        package = types.ModuleType(PACKAGE)
        package.__path__, package.__file__ = [str(FOLDER)], str(init)
        sys.modules[PACKAGE] = package
        if library:
            name = f"{PACKAGE}._C"
            loader = importlib.machinery.ExtensionFileLoader(name, library)
            spec = importlib.util.spec_from_file_location(name, library, loader=loader)
            package._C = sys.modules[name] = self.own["_C"] = importlib.util.module_from_spec(spec)
            loader.exec_module(package._C)
            found = ctypes.CDLL(library)
            self.emulator = found if hasattr(found, "emulator_counts_begin") else None

    def define(self, module: str, text: str) -> None:
        """Adds a module of the check to the package, from its text; the learner's code cannot import it."""
        made = self.own[module] = types.ModuleType(f"{PACKAGE}.{module}")
        made.__package__ = PACKAGE
        exec(compile(text, f"<{module}>", "exec"), vars(made))

    def module(self, name: str) -> types.ModuleType:
        """The extension, a module of the check, or a module loaded from one of the learner's files."""
        if name in self.own:
            return self.own[name]
        full = f"{PACKAGE}.{name}"
        found = importlib.import_module(full)
        if full not in SourceLoader.loaded and SourceFinder.find_spec(full):
            del sys.modules[full]
            importlib.import_module(full)
        return SourceLoader.loaded.get(full, found)

    def function(self, module: str, name: str) -> object:
        """The function of that name in one of the learner's modules."""
        try:
            found = self.module(module)
        except SyntaxError as error:  # it may lack a file name, if the file is not text
            error.filename = error.filename or str(FOLDER / f"{module}.py")
            raise
        for part in name.split("."):
            if not hasattr(found, part):
                raise AttributeError(f"{module} has no {name}")
            found = getattr(found, part)
        return found

    def names(self, module: str) -> list[str]:
        """The names that a module defines."""
        return [name for name in vars(self.module(module)) if not name.startswith("__")]

    def doc(self, module: str, name: str) -> str:
        """A function's docstring; pybind11 puts the signature there."""
        return self.function(module, name).__doc__ or ""

    def call(self, module: str, name: str, arguments: list, keywords: dict, may_change: bool) -> dict:
        """The value of a call, and the number of its graph if gradients can be computed."""
        function = self.function(module, name)
        tensors = [one for one in wire.leaves([arguments, list(keywords.values())]) if isinstance(one, torch.Tensor)]
        before = [] if may_change else [(one, one.detach().clone()) for one in tensors]
        failed = self.failed_launches()
        counts = name in getattr(self.own.get(module), "COUNTS_CALLS", ())
        with self.counting or (OneThread() if counts else contextlib.nullcontext()):
            value = function(*arguments, **keywords)
        self.require_no_failure(failed)
        outputs = [one for one in wire.leaves(value) if isinstance(one, torch.Tensor)]
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
        """The gradients of a call's arguments; None for an argument that autograd did not reach."""
        inputs, outputs = self.graphs[graph]
        pairs = [(out, grad) for out, grad in zip(outputs, gradients, strict=True) if grad is not None]
        before = [(grad, grad.clone()) for _, grad in pairs]
        heads, grads = zip(*pairs, strict=True)
        failed = self.failed_launches()
        with self.counting or contextlib.nullcontext():
            found = list(torch.autograd.grad(heads, inputs, grads, allow_unused=True, retain_graph=True))
        self.require_no_failure(failed)
        for change in before:
            if is_changed(*change):
                raise RuntimeError(
                    "backward modifies the gradient that it receives, but other code may use the same memory"
                )
        return found

    def failed_launches(self) -> int:
        """How many faulty launches the emulator has reported so far."""
        return self.emulator.emulator_failed_launches() if self.emulator else 0

    def require_no_failure(self, before: int) -> None:
        """Raises `RuntimeError` if there are more than `before`: the learner's code has caught an exception."""
        if self.failed_launches() > before:
            raise RuntimeError(
                "the emulator reported an error in a launch, but your code catches the exception: do not catch it"
            )

    def second(self, graph: int, gradients: list) -> list:
        """Second derivatives of a call: the gradient of the sum of its squared gradients. This may raise an error."""
        inputs, outputs = self.graphs[graph]
        grads = [gradient.detach().requires_grad_() for gradient in gradients]
        first = torch.autograd.grad(outputs, inputs, grads, allow_unused=True, create_graph=True)
        total = sum(one.square().sum() for one in first if one is not None)
        total.backward(retain_graph=True)  # `grad` for the inputs alone would not raise the error
        found = [one.grad for one in inputs]
        for one in inputs:
            one.grad = None
        return found

    def second_of_pair(self, graph: int, penalised: int, asked: int, squared: bool) -> torch.Tensor | None:
        """The gradient for the argument `asked` of a loss that contains the gradient for the argument `penalised`.

        Nothing else is differentiated: `backward()` would also run a node that is not connected with `asked`.
        """
        inputs, outputs = self.graphs[graph]
        value = sum((one.square() if squared else one).sum() for one in outputs if one.requires_grad)
        first = torch.autograd.grad(value, inputs[penalised], create_graph=True, allow_unused=True)[0]
        loss = value if first is None else value + first.square().sum()
        return torch.autograd.grad(loss, inputs[asked], allow_unused=True, retain_graph=True)[0]

    def count(self) -> None:
        """Starts counting ATen calls, bytes saved for backward and accesses of kernels."""
        torch.ones(1, requires_grad=True).sum().backward()  # autograd starts its own threads now, not while we count
        self.counting = Counting(self.emulator)

    def counted(self) -> dict:
        """The counts since `count`."""
        counting, self.counting = self.counting, None
        return counting.end()


def time_of_other_threads() -> int:
    """The processor time in nanoseconds that all threads but this one have used, including those that have ended."""
    tries = [(thread_time_ns(), process_time_ns(), thread_time_ns()) for _ in range(5)]
    _, whole, own = min(tries, key=lambda times: times[2] - times[0])  # the least disturbed one
    return whole - own


class OneThread:
    """Raises `RuntimeError` if other threads run inside `with`, where torch would count nothing of what they do."""

    def __enter__(self) -> None:
        self.before = time_of_other_threads()

    def __exit__(self, kind: type | None, *_: object) -> None:
        is_on_gpu = torch.cuda.is_initialized()  # then autograd and the driver have threads of their own
        if kind is None and not is_on_gpu and time_of_other_threads() - self.before > SHORT:
            raise RuntimeError(
                "your code computes in another thread, whose calls and bytes this check cannot count: compute in the "
                "thread of the caller"
            )


class Counting:
    """Counts ATen calls and the bytes that autograd keeps, inside `with`; counts kernels on the emulator at once."""

    def __init__(self, emulator: ctypes.CDLL | None) -> None:
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
        self.emulator = emulator
        if self.emulator:
            self.emulator.emulator_counts_begin.argtypes = [ctypes.c_longlong, ctypes.c_uint, ctypes.c_uint]
            self.emulator.emulator_counts_end.restype = ctypes.c_char_p
            self.emulator.emulator_counts_begin(-1, 0, 2**32 - 1)

    def __enter__(self) -> None:
        self.contexts = contextlib.ExitStack()
        self.contexts.enter_context(OneThread())
        self.contexts.enter_context(torch.autograd.graph.saved_tensors_hooks(self.keep, lambda tensor: tensor))
        self.contexts.enter_context(self.mode())

    def __exit__(self, *raised: object) -> None:
        self.contexts.__exit__(*raised)

    def end(self) -> dict:
        """The counts."""
        kernels = self.emulator.emulator_counts_end().decode() if self.emulator else None
        return {"calls": dict(self.calls), "saved": sum(self.saved.values()), "kernels": kernels}


def is_changed(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether a tensor's values changed, even if a pointer bypassed autograd's version counter."""
    if now.device.type == "meta":
        return False
    return not torch.equal(now.detach().nan_to_num(), before.nan_to_num())


def describe_error(error: BaseException) -> dict:
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
    """The streams of the judge's requests and of the answers; from now on, printed output goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, answers


def list_functions() -> list[tuple[object, str, object]]:
    """The functions that this process uses to answer, each with its owner and its name."""
    from torch.utils import _python_dispatch

    owners = (torch, torch.Tensor, torch.autograd, torch.autograd.graph, torch.library, _python_dispatch, ctypes)
    found = [(owner, name, value) for owner in owners for name, value in vars(owner).items() if callable(value)]
    return [one for one in found if one[1] != "manual_seed"]  # torch._dynamo replaces this one when it is imported


def require_unchanged(functions: list[tuple[object, str, object]]) -> None:
    """Raises `RuntimeError` if the learner's code has replaced one of these functions."""
    for owner, name, value in functions:
        if vars(owner).get(name) is not value:
            raise RuntimeError(f"your code replaces {owner.__name__}.{name}, which the check itself uses")


def list_settings() -> dict[str, object]:
    """What holds for the whole program, by the function of torch that tells it."""
    return {name: getattr(torch, name)() for name in SETTINGS}


def require_settings(before: dict[str, object]) -> None:
    """Raises `RuntimeError` if the learner's code has changed one of these settings."""
    for name, value in list_settings().items():
        if value != before[name]:
            raise RuntimeError(
                f"your code changes a setting of torch for the whole program that calls it: torch.{name}() is now "
                f"{value}, and was {before[name]}. Pass an argument, or change it within a `with` block"
            )


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answers requests until the judge closes the pipe."""
    learner, process, unpack, pack = Learner(), os.getpid(), wire.unpack, wire.pack
    functions, settings = list_functions(), list_settings()
    # The code that answers must not be in a module that the learner's code could import and change.
    del sys.modules["wire"]
    sys.modules["__main__"] = types.ModuleType("__main__")

    def read(count: int) -> bytes:
        data = requests.read(count)
        if len(data) < count:
            os._exit(0)
        return data

    while True:
        try:
            nonce, request = read(wire.NONCE), unpack(read)
            try:
                value = getattr(learner, request["do"])(**request["with"])
                require_settings(settings)
                require_unchanged(functions)
                answer = pack({"answer": value})
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                answer = pack({"error": describe_error(error)})
            if os.getpid() != process:  # a forked process must not answer as well
                os._exit(0)
            for part in (nonce, *answer):
                answers.write(part)
            answers.flush()
        except OSError:  # the learner's code has closed our pipes
            os._exit(wire.PIPE_LOST)


if __name__ == "__main__":
    sys.path.pop(0)  # this script's folder: a learner's `import wire` is another module
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: when the judge is killed, this ends too
    requests, answers = pipes()
    faulthandler.enable(all_threads=False)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message=".*determinis.*")
    # Fills the result of `empty()` with NaN, also in C++, so that an unwritten output cannot pass.
    # torch.use_deterministic_algorithms would do the same, but it imports Inductor, which takes as long as torch.
    torch.set_deterministic_debug_mode("warn")
    main(requests, answers)
