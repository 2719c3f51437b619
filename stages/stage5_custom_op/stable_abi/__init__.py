"""The LLTM cell as a package: `lltm(input, weights, bias, old_h, old_cell) -> (new_h, new_cell)`."""

from . import autocast as autocast
from .lltm import lltm

__all__ = ["lltm"]
