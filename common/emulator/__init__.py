"""The emulator: compiles CUDA code with g++, runs it on the CPU, and checks every memory access of its kernels.

Programs: `emulate` builds and runs a program; `build_program` and `run_program` are the two steps.
Extensions: `load_extension` loads an extension from its setup.py; `read_setup` and `build_extension` are the steps.
Counts of memory accesses: `collect_counts` for an extension, `read_counts` for a program.

The rest is for tools that build on the emulator: its cache, g++ with cached objects, and sources as tokens. These
names are the interface: code outside this package does not import its modules.
"""

from .compilation import INCLUDE_DIR, fingerprint, why_unavailable
from .counting import collect_counts, fill_counts, read_counts
from .counts import (
    COLUMNS,
    SECTOR,
    WARP,
    Access,
    Array,
    Counted,
    Launch,
    Row,
    format_counts,
    format_mean,
    matches_kernel,
    shorten,
)
from .errors import UserError
from .extension import build_extension, find_sources, load_extension
from .program import build_program, check_sources, emulate, run_program
from .rewrite.tokens import Source
from .text import format_table
from .toolchain.cache import Cache, build_once, default_cache, prune_cache, remove
from .toolchain.compiler import compiler_command, describe_compiler, version_text
from .toolchain.jobs import hold_job, launcher, max_jobs, write_wrapper
from .toolchain.messages import demangle, first_errors
from .toolchain.objects import (
    Job,
    compile_object,
    compile_objects,
    find_includes,
    find_object,
    precompile_headers,
    torch_version,
)
from .toolchain.setup_py import Extension, read_setup

__all__ = [
    "COLUMNS",
    "INCLUDE_DIR",
    "SECTOR",
    "WARP",
    "Access",
    "Array",
    "Cache",
    "Counted",
    "Extension",
    "Job",
    "Launch",
    "Row",
    "Source",
    "UserError",
    "build_extension",
    "build_once",
    "build_program",
    "check_sources",
    "collect_counts",
    "compile_object",
    "compile_objects",
    "compiler_command",
    "default_cache",
    "demangle",
    "describe_compiler",
    "emulate",
    "fill_counts",
    "find_includes",
    "find_object",
    "find_sources",
    "fingerprint",
    "first_errors",
    "format_counts",
    "format_mean",
    "format_table",
    "hold_job",
    "launcher",
    "load_extension",
    "matches_kernel",
    "max_jobs",
    "precompile_headers",
    "prune_cache",
    "read_counts",
    "read_setup",
    "remove",
    "run_program",
    "shorten",
    "torch_version",
    "version_text",
    "why_unavailable",
    "write_wrapper",
]
