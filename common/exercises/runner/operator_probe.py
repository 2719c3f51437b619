"""Examines registered operators for a check. It runs in the learner's process, where they are registered.

from common.exercises.judge import OPERATORS

probe = work.beside(OPERATORS)
probe.opcheck("pointwise", "test_schema", z, old_cell)

A name is that of an operator in the namespace of the learner's `_C`, or includes a namespace: `ramp::ramp`.
"""

import importlib
import re

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

NOISE = re.compile(r"\x1b\[[0-9;]*m")

COMPILED = {}


def load(module):
    """Imports a module of the learner, which may register more operators."""
    importlib.import_module(f".{module}", __package__)


def operator(name):
    """The operator of that name."""
    namespace, _, name = name.rpartition("::")
    if not namespace:
        from . import _C

        namespace = _C.NAMESPACE
    return getattr(getattr(torch.ops, namespace), name).default


def schema(name):
    """The schema of an operator as torch writes it, without the namespace."""
    return str(operator(name)._schema).partition("::")[2]


def has_kernel(name, key):
    """Whether a kernel is registered for a dispatch key, such as "AutocastCUDA"; the device need not be present."""
    return operator(name).has_kernel_for_dispatch_key(getattr(torch._C.DispatchKey, key))


def tagged(name, tag):
    """Whether an operator has a tag of torch.Tag."""
    return getattr(torch.Tag, tag) in operator(name).tags


def call(name, *arguments, **keywords):
    """The result of an operator."""
    return operator(name)(*arguments, **keywords)


def autocast(dtype, name, *arguments):
    """The result of an operator under autocast to a dtype, for the device of its first argument."""
    with torch.autocast(arguments[0].device.type, dtype):
        return operator(name)(*arguments)


def real(name, *arguments):
    """Shape, strides, dtype and device of each result."""
    return [described(one) for one in listed(operator(name)(*arguments))]


def fake(name, *arguments, device="cpu"):
    """The same for the fake kernel, with tensors without data on a device that need not be present."""
    with FakeTensorMode():
        arguments = [without_data(one, device) if isinstance(one, torch.Tensor) else one for one in arguments]
        return [described(one) for one in listed(operator(name)(*arguments))]


def autocast_on_fake_gpu(dtype, name, *arguments):
    """The same under autocast for GPUs to a dtype, with the kernels registered for AutocastCUDA."""
    before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)  # torch.autocast would turn itself off without a GPU
    torch.set_autocast_dtype("cuda", dtype)
    try:
        return fake(name, *arguments, device="cuda:0")
    finally:
        torch.set_autocast_enabled("cuda", before[0])
        torch.set_autocast_dtype("cuda", before[1])


def without_data(tensor, device):
    """A tensor like this one, on a device. Within a FakeTensorMode it has no memory."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)


def opcheck(name, test, *arguments):
    """The message of one of opcheck's tests; empty when it passes."""
    try:
        torch.library.opcheck(operator(name), arguments, test_utils=test)
    except Exception as error:
        return NOISE.sub("", str(error))
    return ""


def compiled(module, name, dynamic, *arguments):
    """The result of a learner's function under torch.compile, in one graph and without a code generator.

    It is compiled once; raises `RecompileError` if it would have to be compiled again.
    """
    import torch._dynamo  # loads the settings below, too
    import torch._functorch.config
    import torch.fx.experimental._config

    torch._functorch.config.donated_buffer = False  # a check may ask for gradients twice
    torch._dynamo.config.error_on_recompile = True
    torch.fx.experimental._config.use_duck_shape = False  # do not assume that two equal sizes are always equal
    if (module, name, dynamic) not in COMPILED:
        function = getattr(importlib.import_module(f".{module}", __package__), name)
        COMPILED[module, name, dynamic] = torch.compile(
            function, fullgraph=True, backend="aot_eager", dynamic=dynamic
        )
    return COMPILED[module, name, dynamic](*arguments)


def listed(value):
    """A result, or several, as a list."""
    return list(value) if isinstance(value, tuple | list) else [value]


def described(tensor):
    """Shape, strides, dtype and device."""
    return [list(tensor.shape), list(tensor.stride()), tensor.dtype, str(tensor.device)]
