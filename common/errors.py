"""The exception that the command line turns into one line and a non-zero status."""

from .emulator import UserError

__all__ = ["UserError"]
