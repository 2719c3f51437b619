"""Builds a learner's code in a sandbox: `builder.py library FOLDER TARGET`, or `builder.py program FOLDER FILE`.

A learner controls what setup.py, compiler and linker do, so they run in a sandbox. The result of the build goes to
stdout, error messages go to stderr; the process that started this script trusts neither.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Builds one library or program; the status is 1 if that fails."""
    # Not relative: this file is run as a script.
    from common import paths
    from common.build import library
    from common.emulator import build_program
    from common.errors import UserError
    from common.exercises.runner.target import build_folder_name

    what, folder, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    answer = os.dup(1)
    os.dup2(2, 1)  # output of setup.py must not mix with the library
    try:
        if what == "library":
            place = f"exercises/{build_folder_name(name)}"
            built = library.build_folder(folder, name, place, "your code", quick=True).path.read_bytes()
        else:
            with tempfile.TemporaryDirectory() as work:
                built = build_program(name, Path(work), paths.build_cache(), folder).read_bytes()
    except UserError as error:
        print(str(error).partition("\nAll of it: ")[0], file=sys.stderr)
        return 1
    with os.fdopen(answer, "wb") as file:
        file.write(built)
    return 0


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[3])  # not this folder, and not the learner's
    sys.exit(main())
