"""`python -m cuemu.rewrite FILE -o OUT` writes the text that g++ compiles for the emulator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import UserError
from . import read, rewrite


def main() -> int:
    """Runs the command line. A refusal is printed as one line, with exit status 1."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=rewrite.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", dest="output", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        text = rewrite(read(arguments.file, str(arguments.file)))
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="utf-8")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: cannot write {arguments.output}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
