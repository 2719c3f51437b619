"""Which functions of torch a table of overrides does not contain."""

import contextlib

from torch.overrides import get_overridable_functions

def missing(handled, namespace):
    """The overridable functions of a namespace, such as torch.linalg, that are not in `handled`; each once."""
    known = {id(function) for function in handled}
    return [one for one in dict.fromkeys(get_overridable_functions()[namespace]) if id(one) not in known]


def asks(function, *others):
    """Whether function(probe, *others) calls __torch_function__ of probe, whether it returns or raises."""
    calls = []

    class Probe:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return NotImplemented

    with contextlib.suppress(Exception):
        function(Probe(), *others)
    return len(calls) > 0


