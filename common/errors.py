"""Exceptions that the command line turns into one line and a non-zero status."""

from .emulator import UserError

__all__ = ["MissingPackage", "UserError"]


class MissingPackage(UserError):
    """A package that only one stage needs is not installed. The tour goes on without the stage."""
