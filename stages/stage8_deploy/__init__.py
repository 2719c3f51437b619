"""A trained classifier of sequences as a package that a program without Python runs."""

from .export import export_model
from .model import SequenceClassifier

__all__ = ["SequenceClassifier", "export_model"]
