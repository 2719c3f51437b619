"""What a function leaves behind: its argument, and memory. It runs in the learner's process."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def is_argument_unchanged(name, x):
    """Whether a call leaves x its memory, its shape and its strides."""
    before = x.data_ptr(), x.shape, x.stride()
    function(name)(x)
    return before == (x.data_ptr(), x.shape, x.stride())


def is_memory_free(name, rows, columns, transposed):
    """Whether x and all memory from a call are free after the call, once x and the result are gone."""
    x = torch.rand(columns, rows).t() if transposed else torch.rand(rows, columns)
    made = [StorageWeakRef(x.untyped_storage())]

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, given=(), keywords=None):
            result = called(*given, **(keywords or {}))
            made.extend(StorageWeakRef(one.untyped_storage()) for one in tree_leaves(result) if torch.is_tensor(one))
            return result

    with Mode():
        function(name)(x)
    del x
    return all(storage.expired() for storage in made)


def function(name):
    from . import _C

    return getattr(_C, name)
