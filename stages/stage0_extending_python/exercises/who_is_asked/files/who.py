"""Types that are asked by torch's functions."""

import torch

asked = []


class Base:
    """Never answers."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented


class Derived(Base):
    """Never answers either."""


class Other:
    """Not related to Base."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented


class Silent:
    """Has nothing to say."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)


class Answers:
    """Knows everything."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return 42


class Image(torch.Tensor):
    """A tensor of pixels."""


class Grey(Image):
    """One number a pixel."""


class Colour(Image):
    """Three numbers a pixel."""


def order(*names):
    """Who is asked, in order, about a list of one of each; and the result, or the name of the error."""
    asked.clear()
    try:
        result = torch.stack([globals()[name]() for name in names])
    except TypeError:
        result = "TypeError"
    return [" ".join(asked), str(result)]


def kind(*names):
    """The type of the sum of one of each, from left to right; or the name of the error."""
    total, *others = (torch.ones(2).as_subclass(globals().get(name, torch.Tensor)) for name in names)
    try:
        for other in others:
            total = total + other
    except TypeError:
        return "TypeError"
    return type(total).__name__
