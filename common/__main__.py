"""The command line: `python -m common COMMAND`. The Makefile calls no other code of the workbook."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from typing import Any, NoReturn

from .command import Command
from .commands.table import COMMANDS, help, run_command
from .errors import UserError

ROOM = 100 << 20  # bytes: with less on the disk, Python may have written incomplete files


class PatientOutput(io.FileIO):
    """Standard output that drops what is printed after its reader has exited, as `head -3` does.

    The command runs to its end, so what it writes and its exit status are the same as without the pipe.
    """

    def write(self, data: Any) -> int:
        """Writes as long as the reader accepts data."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        """Called by argparse for an invalid argument."""
        raise UserError(f"{self.prog.removeprefix('python -m common ')}: {message}")


def parser() -> argparse.ArgumentParser:
    """A parser for every command of the workbook."""
    top = Parser(prog="python -m common", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("help", help="list every command, as make shows it")
    for command in COMMANDS.values():
        if command.function:
            added = commands.add_parser(command.name, help=command.help, description=command.help)
            for names, options in command.arguments:
                added.add_argument(*names, **options)
    return top


def with_variables(words: list[str]) -> list[str]:
    """The words of a command line. After a command's name alone, these are also what variables of make give it."""
    command = COMMANDS.get(words[0]) if len(words) == 1 else None
    added: list[str] = []
    for (name, *_), options in command.arguments if command else ():
        if value := os.environ.get(command.variables.get(name, "")):
            added += [name] * name.startswith("-") + (value.split() if "nargs" in options else [value])
    return words + added


def values_of(command: Command, arguments: argparse.Namespace) -> dict[str, Any]:
    """The function's arguments by name. An optional argument that make passes as '' becomes None."""
    optional = {
        options.get("dest") or names[0].lstrip("-")
        for names, options in command.arguments
        if names[0].startswith("-") or options.get("nargs") == "?"
    }
    given = {name: value for name, value in vars(arguments).items() if name != "command"}
    return {name: None if value == "" and name in optional else value for name, value in given.items()}


def is_disk_full() -> bool:
    """Whether there is hardly any room in the workbook's own folder of compiled code (the Makefile names it)."""
    try:
        return bool(sys.pycache_prefix) and shutil.disk_usage(sys.pycache_prefix).free < ROOM
    except OSError:  # there is none, or it is another user's
        return False


def main() -> int:
    """Runs one command; a `UserError` becomes one line on stderr and status 1.

    On a full disk, Python up to 3.12 writes incomplete files of compiled code, which later fail to load.
    """
    try:
        arguments = parser().parse_args(with_variables(sys.argv[1:]))
        if arguments.command == "help":
            return help()
        command = COMMANDS[arguments.command]
        return run_command(command, values_of(command, arguments))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except PermissionError as error:
        if not error.filename:  # it is about a process, say
            raise
        print(f"error: {error.filename} belongs to another user: {error.strerror}. `make doctor` says what to do",
              file=sys.stderr)  # fmt: skip
        return 1
    except EOFError as error:
        if not sys.pycache_prefix or "marshal data" not in str(error):
            raise
        shutil.rmtree(sys.pycache_prefix, ignore_errors=True)
        print("error: files of Python's compiled code were incomplete, as after a full disk. They have been removed; "
              "run the command again", file=sys.stderr)  # fmt: skip
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        if is_disk_full():
            shutil.rmtree(sys.pycache_prefix, ignore_errors=True)


if __name__ == "__main__":
    output = io.BufferedWriter(PatientOutput(sys.stdout.fileno(), "wb", closefd=False))
    sys.stdout = io.TextIOWrapper(output, sys.stdout.encoding, sys.stdout.errors, line_buffering=sys.stdout.isatty())
    sys.exit(main())
