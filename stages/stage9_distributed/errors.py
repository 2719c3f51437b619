"""The exception for everything that a user can correct. The program prints its message as one line."""


class TrainingError(Exception):
    """A message that names the option, the file or the process that is at fault."""
