"""Extending PyTorch from Python: small, complete modules, each a subject of its own."""

from . import functions

__all__ = ["functions"]
