"""Extending PyTorch from Python: small, complete modules, each a subject of its own."""

from . import conv_batchnorm, coverage, functions, linear, scaled_identity, tensor_likes

__all__ = ["conv_batchnorm", "coverage", "functions", "linear", "scaled_identity", "tensor_likes"]
