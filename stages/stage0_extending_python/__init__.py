"""Extending PyTorch from Python: small, complete modules, each a subject of its own."""

from . import functions, linear

__all__ = ["functions", "linear"]
