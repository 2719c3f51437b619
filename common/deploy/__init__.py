"""Stage 8 for checks, measurements and tests: its program, its package, and the program as a running server."""

from .package import Deployed, build_package, build_packages_apart, devices, stage_module
from .program import FOLDER, NAMESPACE, MissingPackage, build_program, stable_operators, why_unavailable
from .server import Server, json_line, run_program, scores_of, wait_until

__all__ = [
    "FOLDER",
    "NAMESPACE",
    "Deployed",
    "MissingPackage",
    "Server",
    "build_package",
    "build_packages_apart",
    "build_program",
    "devices",
    "json_line",
    "run_program",
    "scores_of",
    "stable_operators",
    "stage_module",
    "wait_until",
    "why_unavailable",
]
