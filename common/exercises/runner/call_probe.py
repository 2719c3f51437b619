"""Shows a check how autograd and other threads see a learner's functions. It runs in the learner's process.

from common.exercises.judge import CALLS

probe = work.beside(CALLS)
probe.node("functions", "cube", x)
"""

import importlib
import threading
import time
from unittest.mock import patch

import torch
import torch._functorch.eager_transforms as transforms
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

REPETITIONS = 5
COUNTS_CALLS = ("allocations", "recorded_in_backward")  # in one thread: learner.py rejects others meanwhile


def node(module, name, *arguments):
    """The autograd node of a function's (first) result, such as "CubeBackward"; None if it has none."""
    result = first_result(module, name, *arguments)  # up to torch 2.11, a node without its result has no name
    return result.grad_fn and result.grad_fn.name()


def attributes(module, name, *arguments):
    """The names of attributes of `ctx` that hold tensors after a call."""
    made_by = first_result(module, name, *arguments).grad_fn
    return sorted(key for key, value in getattr(made_by, "__dict__", {}).items() if holds_tensor(value))


def overwritten(module, name, first, second):
    """The numbers of the results of a call with the arguments `first` that a call with `second` changes.

    Gradients count as results, after those of the function: the gradients of the arguments that require them.
    """
    called = function(module, name)
    kept = results_and_gradients(called, first)
    before = [one.clone() for one in kept]
    results_and_gradients(called, second)
    return [k for k, (now, then) in enumerate(zip(kept, before, strict=True)) if not torch.equal(now, then)]


def after_change(module, name, first, second):
    """What a function returns for the numbers of `second`, in the tensors of an earlier call with `first`."""
    called = function(module, name)
    arguments = [one.detach().clone() for one in first]
    called(*arguments)
    for one, other in zip(arguments, second, strict=True):
        one.copy_(other)
    return called(*arguments)


def allocations(module, name, *arguments):
    """The ATen calls of a function whose results are not in the memory of their arguments, in order."""
    made = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, given=(), keywords=None):
            result = called(*given, **(keywords or {}))
            known = {address(one) for one in tree_leaves([given, keywords]) if isinstance(one, torch.Tensor)}
            if any(address(one) not in known for one in tree_leaves(result) if isinstance(one, torch.Tensor)):
                made.append(called._schema.name.removeprefix("aten::"))
            return result

    with Mode():
        function(module, name)(*arguments)
    return made


def recorded_in_backward(module, name, *arguments):
    """What autograd records while backward of a function runs: ATen calls, transforms of torch.func."""
    result = function(module, name)(*arguments)
    outputs = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
    inputs = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
    gradients = [torch.ones_like(one) for one in outputs]
    recorded = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, given=(), keywords=None):
            if torch.is_grad_enabled():
                recorded.append(called._schema.name.removeprefix("aten::"))
            return called(*given, **(keywords or {}))

    def note_transform(*given):
        recorded.append("a function within a transform of torch.func")
        return begin_transform(*given)

    begin_transform = transforms._grad_increment_nesting
    with Mode(), patch.object(transforms, "_grad_increment_nesting", note_transform):
        torch.autograd.grad(outputs, inputs, gradients, allow_unused=True)
    return recorded


class Elsewhere(torch.Tensor):
    """A tensor that knows its shape, dtype and device, but has no memory."""

    @classmethod
    def __torch_dispatch__(cls, called, types, given=(), keywords=None):
        raise RuntimeError(f"accepted: {called} is called with it")


def call_with_elsewhere(module, name, number, *arguments):
    """Calls a function with one argument on the next device: cuda:1, or cpu:1 where there is no GPU."""
    one = arguments[number]
    device = torch.device(one.device.type, (one.device.index or 0) + 1)
    other = torch.Tensor._make_wrapper_subclass(Elsewhere, one.shape, dtype=one.dtype, device=device)
    function(module, name)(*arguments[:number], other, *arguments[number + 1 :])


def address(tensor):
    """The address of a tensor's memory."""
    return tensor.untyped_storage().data_ptr()


def releases_gil(module, name, *arguments):
    """Whether other Python threads run while a function computes, that is, in the middle of most of several calls.

    Pass arguments for which the function takes a tenth of a second or longer.
    """
    called = function(module, name)
    return sum(_runs_beside(lambda: called(*arguments)) for _ in range(REPETITIONS)) > REPETITIONS // 2


def _runs_beside(call):
    """Whether a second thread has run in the middle half of the time that a call takes."""
    times, done = [], threading.Event()

    def note():
        while not done.wait(0.001):
            times.append(time.perf_counter())

    thread = threading.Thread(target=note)
    thread.start()
    start = time.perf_counter()
    try:
        call()
    finally:
        end = time.perf_counter()
        done.set()
        thread.join()
    quarter = (end - start) / 4
    return any(start + quarter < moment < end - quarter for moment in times)


def function(module, name):
    """A function of the learner's, by its dotted name in a module; of `torch.ops.NAMESPACE`, an operator."""
    if module.startswith("torch.ops."):
        return getattr(getattr(torch.ops, module.removeprefix("torch.ops.")), name)
    found = importlib.import_module(f".{module}", __package__)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def results_and_gradients(called, arguments):
    """The tensors that a function returns, and the gradients of the arguments that require them."""
    results = [one for one in tree_leaves(called(*arguments)) if isinstance(one, torch.Tensor)]
    inputs = [one for one in arguments if isinstance(one, torch.Tensor) and one.requires_grad]
    gradients = torch.autograd.grad(results, inputs, [torch.ones_like(one) for one in results]) if inputs else ()
    return [one.detach() for one in results] + list(gradients)


def first_result(module, name, *arguments):
    """The first tensor that a function of the learner's returns."""
    result = function(module, name)(*arguments)
    return result[0] if isinstance(result, tuple | list) else result


def holds_tensor(value):
    """Whether a value is a tensor or a container that holds one."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        return any(holds_tensor(one) for one in value)
    return isinstance(value, torch.Tensor)
