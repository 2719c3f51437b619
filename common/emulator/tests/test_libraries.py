"""Programs and extensions get the CUDA libraries whose headers they include, and nothing of the others."""

from __future__ import annotations

import subprocess

import pytest

from common.emulator import build_program
from common.emulator.toolchain import libraries
from common.paths import build_cache

PROGRAM = """#include {header}
__global__ void kernel() {{}}
int main() {{
  kernel<<<1, 1>>>();
  cudaDeviceSynchronize();
  return {result};
}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of libraries: `sum` uses `add`, and nothing uses `broken`, which does not compile."""
    files = {
        "add/include/add.h": "int add(int a, int b);\n",
        "add/src/add.cpp": '#include "add.h"\nint add(int a, int b) { return a + b; }\n',
        "sum/include/sum.h": "int sum3(int a, int b, int c);\n",
        "sum/src/sum.cpp": '#include "sum.h"\n#include <add.h>\n'
        "int sum3(int a, int b, int c) { return add(add(a, b), c); }\n",
        "broken/include/broken.h": "#error broken\n",
        "broken/src/broken.cpp": "broken\n",
    }
    for name, text in files.items():
        path = tmp_path / "libraries" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(libraries, "FOLDER", tmp_path / "libraries")
    return tmp_path / "libraries"


def names(found):
    return [path.name for path in found]


def test_a_library_is_found_through_the_headers_of_a_program(folder, tmp_path):
    (tmp_path / "own.h").write_text("#include <sum.h>\n")
    source = tmp_path / "program.cu"
    source.write_text('#include "own.h"\n')
    assert names(libraries.find_libraries([source], [])) == ["sum", "add"]
    source.write_text("#include <vector>\n")
    assert libraries.find_libraries([source], []) == []


def test_a_hash_changes_with_each_file_of_the_libraries(folder):
    before = libraries.hash_libraries([folder / "sum"])
    (folder / "add" / "src" / "add.cpp").write_text("")
    assert libraries.hash_libraries([folder / "sum"]) == before
    (folder / "sum" / "include" / "sum.h").write_text("")
    assert libraries.hash_libraries([folder / "sum"]) != before


@pytest.mark.needs("g++")
def test_thrusts_header_of_sorts_has_the_function_objects(tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(PROGRAM.format(header="<thrust/sort.h>", result="thrust::greater<int>()(2, 1) ? 7 : 1"))
    program = build_program(str(source), tmp_path, build_cache())
    assert subprocess.run([program], capture_output=True).returncode == 7


@pytest.mark.needs("g++")
def test_a_program_is_linked_with_its_libraries(folder, tmp_path):
    source = tmp_path / "program.cu"

    def run(header: str, result: str) -> int:
        source.write_text(PROGRAM.format(header=header, result=result))
        return subprocess.run([build_program(str(source), tmp_path, build_cache())], capture_output=True).returncode

    assert run('"sum.h"', "sum3(1, 2, 3)") == 6
    (folder / "add" / "src" / "add.cpp").write_text("int add(int a, int b) { return a * b; }\n")
    assert run('"sum.h"', "sum3(1, 2, 4)") == 8
    (folder / "add" / "include" / "add.h").write_text("int add(int a, int b);\nconstexpr int kTwo = 2;\n")
    assert run("<add.h>", "kTwo") == 2
    assert run("<vector>", "3") == 3
