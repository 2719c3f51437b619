"""The LLTM cell as a package: `lltm(input, weights, bias, old_h, old_cell) -> (new_h, new_cell)`."""

from .lltm import lltm

__all__ = ["lltm"]
