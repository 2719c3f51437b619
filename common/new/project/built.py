"""Makes sure that the library in the package is up to date with the sources, so that tests use the latest build."""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def demand():
    """Ends the program, and names the build command, if the library is missing or older than a source."""
    library = next(HERE.glob("*/_C*.so"), None)
    newer = [path for path in (HERE / "csrc").iterdir() if library and path.stat().st_mtime > library.stat().st_mtime]
    if library is None or newer:
        why = f"csrc/{newer[0].name} is newer than {library.relative_to(HERE)}" if newer else "nothing is built yet"
        sys.exit(f"{why}. Build it: python setup.py build_ext --inplace")
