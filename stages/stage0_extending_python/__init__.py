"""Extending PyTorch from Python: small, complete modules, each a subject of its own."""

from . import coverage, functions, linear, scaled_identity, tensor_likes

__all__ = ["coverage", "functions", "linear", "scaled_identity", "tensor_likes"]
