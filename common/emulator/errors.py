"""The exception for errors that the user can correct."""


class UserError(Exception):
    """An error that the user can correct. The message says what is wrong and how to fix it; no traceback is shown."""
