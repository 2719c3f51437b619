"""What backward leaves in memory. It runs in the learner's process."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def left(*arguments):
    """The ATen calls of backward whose results are in memory of their own that is not free after the call."""
    from . import _C

    given, made = {one.data_ptr() for one in storages(arguments)}, []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, called, types, arguments=(), keywords=None):
            result = called(*arguments, **(keywords or {}))
            name = called._schema.name.removeprefix("aten::")
            made.extend((name, StorageWeakRef(one)) for one in storages(result) if one.data_ptr() not in given)
            return result

    with Mode():
        _C.backward(*arguments)
    return list(dict.fromkeys(name for name, storage in made if not storage.expired()))


def storages(value):
    """The storages of the tensors in a tree."""
    return [one.untyped_storage() for one in tree_leaves(value) if isinstance(one, torch.Tensor)]
