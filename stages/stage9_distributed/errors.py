"""The exceptions for what a user can correct. The program prints their messages, a line each, without a traceback."""


class TrainingError(Exception):
    """A message that names the option, the file or the process that is at fault."""


class LostContact(TrainingError):
    """Another process has died, or has not answered within the time limit."""


class FolderInUse(TrainingError):
    """Another run uses the folder of the checkpoints."""
