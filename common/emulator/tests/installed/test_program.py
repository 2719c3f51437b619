"""The command: programs of one and of several files, its options, its messages."""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
KERNEL = "__global__ void fill(int* x) { x[threadIdx.x] = threadIdx.x + FIRST; }\n"
MAIN = """#include <cstdio>
#include "fill.cuh"
int filled(int n);
int main(int count, char** words) {
  printf("%d", filled(64));
  for (int i = 1; i < count; i++) printf(" %s", words[i]);
  printf("\\n");
}
"""
FILL = """#include <fill.cuh>
int filled(int n) {
  int *x, last;
  cudaMalloc(&x, n * sizeof(int));
  fill<<<1, THREADS>>>(x);
  cudaMemcpy(&last, x + n - 1, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(x);
  return last;
}
"""
ONE_FILE = "#define FIRST 1\n#define THREADS 64\n" + FILL.replace("#include <fill.cuh>", KERNEL) + (
    '#include <cstdio>\nint main() { printf("%d\\n", filled(64)); }\n'
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A program of two files, with its kernel in a header of another folder."""
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "fill.cuh").write_text("#pragma once\nstatic " + KERNEL)
    (tmp_path / "main.cu").write_text(MAIN)
    (tmp_path / "fill.cu").write_text(FILL)
    (tmp_path / "one.cu").write_text(ONE_FILE)
    return tmp_path


def test_a_program_runs(folder, cuemu):
    done = cuemu("run", "one.cu")
    assert (done.returncode, done.stdout) == (0, "64\n")
    assert done.stderr == "emulator: 1 launch, no problem found\n"


def test_several_sources_include_folders_macros_and_arguments(folder, cuemu):
    options = ["-I", "include", "-DTHREADS=64", "-D", "FIRST=100"]
    done = cuemu("run", "main.cu", "fill.cu", *options, "--", "a", "-I", "--", "b")
    assert (done.returncode, done.stdout) == (0, "163 a -I -- b\n"), done.stderr


OPENMP = """#include <cstdio>
__global__ void fill(int* x, int first) { x[threadIdx.x] = first + threadIdx.x; }
int main() {
  int *x, wrong = 0;
  cudaMallocManaged(&x, 4 * 32 * sizeof(int));
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
  for (int part = 0; part < 4; part++) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, 32, 0, stream>>>(x + 32 * part, 32 * part);
    wrong += cudaStreamSynchronize(stream) != cudaSuccess;
    cudaStreamDestroy(stream);
  }
  for (int k = 0; k < 4 * 32; k++) wrong += x[k] != k;
  cudaFree(x);
#if defined(_OPENMP) && LEFT == 1 && RIGHT == 2
  printf("%d wrong\\n", wrong);
#endif
}
"""


@pytest.mark.parametrize(
    "flags", [["-Xcompiler", "-fopenmp"], ["-Xcompiler=-fopenmp"], ["--compiler-options", "-fopenmp"]]
)
def test_flags_for_the_compiler_are_given_when_it_compiles_and_when_it_links(folder, cuemu, flags):
    (folder / "openmp.cu").write_text(OPENMP)
    done = cuemu("run", "openmp.cu", *flags, "-Xcompiler", "-DLEFT=1,-DRIGHT=2")
    assert (done.returncode, done.stdout) == (0, "0 wrong\n"), done.stderr
    assert done.stderr == "emulator: 4 launches, no problem found\n"


def test_a_flag_that_the_compiler_does_not_know_is_an_error_with_its_name(folder, cuemu):
    done = cuemu("run", "one.cu", "-Xcompiler", "-fno-such-thing")
    assert done.returncode == 1
    assert "‘-fno-such-thing’" in done.stderr
    assert "one.cu does not compile" in done.stderr


def test_what_is_wrong_is_found_in_the_header_of_a_folder(folder, cuemu):
    done = cuemu("run", "main.cu", "fill.cu", "-I", "include", "-D", "THREADS=65", "-D", "FIRST=0")
    assert done.returncode == 66
    assert "  error: writes past the end of x, in include/fill.cuh:2 (memory)\n" in done.stderr


def test_the_version_of_the_language(folder, cuemu):
    (folder / "version.cu").write_text("int main() { static_assert(__cplusplus == VERSION); }\n")
    assert cuemu("run", "version.cu", "-DVERSION=201703L").returncode == 0
    assert cuemu("run", "-std=c++20", "version.cu", "-DVERSION=202002L").returncode == 0
    assert "invalid choice: 'c++14' (choose from 'c++17', 'c++20')" in cuemu("run", "-std=c++14", "version.cu").stderr


def test_headers_of_the_program_come_before_those_of_cuda_and_of_the_emulator(folder, cuemu):
    names = ["state.h", "emulator/state.h", "cuda_utils.h", "include/cuda_fp16.h", "include/cuda/launch.h"]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"#define HAS_{names.index(name)} true\n")
    includes = "".join(f'#include "{name.removeprefix("include/")}"\n' for name in names)
    found = " && ".join(f"HAS_{k}" for k in range(len(names)))
    (folder / "own.cu").write_text(f"{includes}int main() {{ return !({found}); }}\n")
    done = cuemu("run", "own.cu", "-I", "include")
    assert done.returncode == 0, done.stderr


def test_without_checks(folder, cuemu):
    options = ["main.cu", "fill.cu", "-I", "include", "-D", "THREADS=65", "-D", "FIRST=0"]
    done = cuemu("run", *options, "--fast")
    assert (done.returncode, done.stdout) == (0, "63\n")
    assert "checks switched off: memory" in done.stderr


def test_counts(folder, cuemu):
    done = cuemu("run", "one.cu", "--counts")
    assert done.returncode == 0
    assert "fill<<<(1, 1, 1), (64, 1, 1)>>>" in done.stdout
    assert "global store" in done.stdout


def test_a_compile_error_names_the_file_and_the_line(folder, cuemu):
    done = cuemu("run", "main.cu", "fill.cu", "-I", "include", "-D", "FIRST=0")
    assert done.returncode == 1
    assert done.stderr.startswith("error: fill.cu does not compile\nfill.cu: In function ")
    assert "fill.cu:5:" in done.stderr
    assert "THREADS" in done.stderr


@pytest.mark.parametrize(
    ("text", "error", "hint"),
    [
        ("#include <mpi.h>", "mpi.h: No such file or directory", "mpi.h is a header of MPI, "),
        ("#include <helper_cuda.h>", "helper_cuda.h: No such", "helper_cuda.h is a header of NVIDIA's CUDA samples"),
        (
            "int rate(const cudaDeviceProp& device) { return device.clockRate; }",
            "has no member named",
            "CUDA 13's cudaDeviceProp has no clockRate: use cudaDeviceGetAttribute with cudaDevAttrClockRate",
        ),
    ],
)
def test_a_hint_says_what_to_do_about_an_error(folder, cuemu, text, error, hint):
    (folder / "wrong.cu").write_text(f"{text}\nint main() {{}}\n")
    done = cuemu("run", "wrong.cu")
    assert done.returncode == 1
    assert error in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"hint: {hint}")


def test_no_mark_is_beyond_the_end_of_its_line(folder, cuemu):
    (folder / "wrong.cu").write_text(
        KERNEL.replace("FIRST", "1") + "int main() { fill<<<1, 1>>>(nullptr); wrong(); }\n"
    )
    done = cuemu("run", "wrong.cu")
    assert done.stderr.splitlines()[-1] == "    2 | int main() { fill<<<1, 1>>>(nullptr); wrong(); }"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.cu"], "there is no file nothing.cu"),
        (["include"], "include is a folder, not a CUDA program"),
        (["notes.txt"], "notes.txt does not end in .cu: is it a CUDA program?"),
        (["one.cu", "./one.cu"], "./one.cu is given twice: all that it defines would be there twice"),
        (
            ["texture.cu"],
            "texture.cu:1: CUDA 12 has no texture references: use a texture object (cudaTextureObject_t)",
        ),
        (["fill.cu", "-Iinclude", "-DFIRST=0", "-DTHREADS=1"], "fill.cu does not link: it has no main()"),
        (["main.cu", "-Iinclude", "-DFIRST=0"], "main.cu does not link: nothing defines filled(int)"),
    ],
)
def test_what_is_no_program_gives_one_line(folder, cuemu, words, message):
    (folder / "notes.txt").write_text("int main() {}")
    (folder / "texture.cu").write_text("texture<float> t;\nint main() {}\n")
    done = cuemu("run", *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"error: {message}\n")


def test_without_a_compiler_the_message_says_what_is_missing(folder, cuemu):
    done = cuemu("run", "one.cu", PATH=str(folder), CXX="")
    assert (done.returncode, done.stderr) == (
        1,
        "error: found no C++ compiler that supports C++20 (g++ 11 or newer)\n",
    )


def test_usage(cuemu):
    done = cuemu("run")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: cuemu run FILE.cu [FILE.cu ...] [-I FOLDER] [-D NAME[=VALUE]] [-std=c++20]")


def test_nothing_is_written_beside_the_sources_and_objects_are_kept(folder, cuemu, tmp_path_factory):
    before = sorted(folder.rglob("*"))
    cache = tmp_path_factory.mktemp("another cache")
    assert cuemu("run", "one.cu", EMULATOR_CACHE=str(cache)).returncode == 0
    objects = {path: path.stat().st_mtime_ns for path in (cache / "objects").iterdir()}
    assert len(objects) == 4  # the program, and three of the runtime
    assert [path.name for path in cache.iterdir()] == ["objects"]
    (folder / "one.cu").write_text(ONE_FILE.replace("FIRST 1", "FIRST 2"))
    assert cuemu("run", "one.cu", EMULATOR_CACHE=str(cache)).stdout == "65\n"
    assert len(list((cache / "objects").iterdir())) == 5
    assert sorted(folder.rglob("*")) == before
