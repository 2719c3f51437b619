"""Which functions of torch a table of overrides does not contain."""

import contextlib

from torch.overrides import get_overridable_functions

# BEGIN SOLUTION: the bodies of both functions.


def missing(handled, namespace):
    """The overridable functions of a namespace, such as torch.linalg, that are not in `handled`; each once."""
    handled = set(handled)
    return [function for function in dict.fromkeys(get_overridable_functions()[namespace]) if function not in handled]


def asks(function, *others):
    """Whether function(probe, *others) calls __torch_function__ of probe, whether it returns or raises."""
    asked = []

    class Probe:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func)
            return NotImplemented

    with contextlib.suppress(Exception):
        function(Probe(), *others)
    return bool(asked)


# BEGIN STARTER
#
#
# def missing(handled, namespace):
#     """The overridable functions of a namespace, such as torch.linalg, that are not in `handled`; each once."""
#
#
# def asks(function, *others):
#     """Whether function(probe, *others) calls __torch_function__ of probe, whether it returns or raises."""
#
#
# END STARTER
# END SOLUTION
