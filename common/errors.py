"""The one exception that the command line turns into one clear line and a non-zero status."""


class UserError(Exception):
    """Something the reader can mend; the message says what is wrong and what to do, without a traceback."""
