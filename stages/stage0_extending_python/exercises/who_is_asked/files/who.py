"""Types whose __torch_function__ records that torch called it."""

import torch

asked = []


class Base:
    """Always returns NotImplemented."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented


class Derived(Base):
    """Always returns NotImplemented, too."""


class Other:
    """Not related to Base."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented


class Silent:
    """Has no return statement."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)


class Answers:
    """Returns 42 for every function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return 42


class Image(torch.Tensor):
    """A tensor of pixels."""


class Grey(Image):
    """One number per pixel."""


class Colour(Image):
    """Three numbers per pixel."""


def order(*names):
    """Stacks one object of each type: the types asked, in order, and the result or the name of the error."""
    asked.clear()
    try:
        result = torch.stack([globals()[name]() for name in names])
    except TypeError:
        result = "TypeError"
    return [" ".join(asked), str(result)]


def kind(*names):
    """The type of the sum of one tensor of each type, from left to right, or the name of the error."""
    total, *others = (torch.ones(2).as_subclass(globals().get(name, torch.Tensor)) for name in names)
    try:
        for other in others:
            total = total + other
    except TypeError:
        return "TypeError"
    return type(total).__name__
