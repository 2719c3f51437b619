"""The emulator's counts: compared with numbers computed by hand, in any order of threads, and by source line."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.emulator import Array, Counted, build_program, collect_counts, fill_counts, read_counts
from common.emulator.counts import MEANING
from common.errors import UserError
from common.measure import stage_counts
from common.paths import ROOT, build_cache
from common.studies.ncu import microbenchmarks
from support.proofs.files import stage_files

FOLDER = ROOT / "common" / "emulator" / "tests" / "counts"
CORNERS = FOLDER / "corners.cu"
SOURCES = (microbenchmarks.SOURCE, CORNERS)
EVERY = [
    pytest.param(source, kernel, id=kernel)
    for source in SOURCES
    for kernel in microbenchmarks.read_expected_counts(source)
]
NUMBERS = {
    "requests": "requests", "lanes": "lanes", "sectors": "sectors", "ideal": "ideal_sectors",
    "wavefronts": "wavefronts", "conflicts": "conflicts",
}  # fmt: skip


@functools.cache
def counted(source: Path, seed: str = "") -> Counted:
    return microbenchmarks.count_on_emulator(source, EMULATOR_SEED=seed)


def by_space(found: Counted, kernel: str) -> dict[str, dict[str, int]]:
    spaces = {row.space for row in found.of(kernel)}
    return {s: {word: found.total(name, kernel, s) for word, name in NUMBERS.items()} for s in spaces}


# Against counts by hand ---------------------------------------------------------------------------------------


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("source", "kernel"), EVERY)
def test_as_by_hand(source, kernel):
    hand, found = microbenchmarks.read_expected_counts(source)[kernel], by_space(counted(source), kernel)
    assert set(found) == set(hand)
    for space, numbers in hand.items():
        assert {name: found[space][name] for name in numbers} == numbers, (kernel, space)


def test_every_kernel_has_counts_by_hand():
    for source in SOURCES:
        hand = microbenchmarks.read_expected_counts(source)
        assert len(hand) == source.read_text().count("__global__ void") == source.read_text().count("<<<")
        for spaces in hand.values():
            for space, numbers in spaces.items():
                kind = ["sectors", "ideal"] if space.startswith("global") else ["wavefronts", "conflicts"]
                assert list(numbers) == ["requests", "lanes", *kind]


@pytest.mark.needs("g++")
@pytest.mark.parametrize("seed", ["1", "20260314"])
def test_the_order_of_threads_changes_nothing(seed):
    for source in SOURCES:
        assert counted(source, seed).rows == counted(source).rows


# By line ------------------------------------------------------------------------------------------------------


@pytest.mark.needs("g++")
def test_rows_name_their_lines():
    found = counted(CORNERS)
    for row in found.rows:
        assert row.text == (ROOT / row.file).read_text().splitlines()[row.line - 1].strip()
    texts = {row.space: row.text for row in found.of("shared_atomics")}
    assert texts["shared load"] == texts["global store"] == "y[threadIdx.x] = float(counted[threadIdx.x]);"
    assert texts["shared atomic"] == "atomicAdd(&counted[threadIdx.x % 8], 1);"


@pytest.mark.needs("g++")
def test_functions_count_for_their_own_lines_and_the_emulators_for_the_kernels():
    rows = counted(CORNERS).of("through_functions", "global load")
    assert [(Path(row.file).name, row.text[:40], row.requests) for row in rows] == [
        ("corners.cu", "__device__ __noinline__ float far(const ", 2),
        ("corners.cu", "y[threadIdx.x] = far(x) + near(x) + __ld", 2),
        ("corners.h", "__device__ __forceinline__ float near(co", 2),
    ]


@pytest.mark.needs("g++")
def test_the_table(tmp_path):
    text = str(counted(microbenchmarks.SOURCE))
    [title, head, _, *rows] = next(part for part in text.split("\n\n") if part.startswith("transposed<<<")).split(
        "\n"
    )
    assert title == "transposed<<<(1, 1, 1), (32, 32, 1)>>>"
    assert head.split() == ["line", "uses", "requests", "lanes", "sectors", "ideal", "conflicts", "KiB"]
    assert rows[3].split("shared load")[1].split() == ["32", "32", "31", "4.0"]
    assert "conflicts" not in text.split("\n\n")[0]
    assert text.endswith(MEANING)


@pytest.mark.needs("g++")
def test_make_emulate_shows_it(tmp_path):
    source = tmp_path / "copy.cu"
    source.write_text(
        "#include <cstdio>\n"
        "__global__ void copy(float* y, const float* x) { y[threadIdx.x] = x[2 * threadIdx.x]; }\n"
        "int main() {\n"
        "  float *x, *y;\n"
        "  cudaMalloc(&x, 256), cudaMalloc(&y, 128), cudaMemset(x, 0, 256);\n"
        '  copy<<<1, 32>>>(y, x), std::puts("done");\n'
        "  cudaFree(x), cudaFree(y);\n"
        "}\n"
    )
    command = [sys.executable, "-m", "common", "emulate", str(source)]
    plain, shown = (
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "COUNTS": wanted}, capture_output=True, text=True, timeout=300
        )
        for wanted in ("", "1")
    )
    assert (plain.returncode, shown.returncode) == (0, 0), plain.stderr + shown.stderr
    assert plain.stdout == "done\n"
    assert shown.stdout.startswith("done\n\ncopy<<<(1, 1, 1), (32, 1, 1)>>>\n")
    [load] = [line for line in shown.stdout.splitlines() if "global load" in line]
    assert load.split("global load")[1].split() == ["1", "32", "8", "4", "0.1"]


# How a kernel was launched, and who stored what -----------------------------------------------------------------

LAUNCHES = """__global__ void every_row(float* y) {
  for (int row = blockIdx.y; row < 3; row++)
    if (threadIdx.x < 5) y[row * 5 + threadIdx.x] = 1;
}
__global__ void one_block_more(float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 64) return;
  y[i] = 1;
  y[i] += 2;
}
int main() {
  float* y;
  cudaStream_t stream;
  cudaMalloc(&y, 400);
  cudaStreamCreate(&stream);
  every_row<<<dim3(1, 3), 8>>>(y);
  for (int k = 0; k < 2; k++) one_block_more<<<3, 32, 0, stream>>>(y);
  cudaDeviceSynchronize();
  cudaStreamDestroy(stream);
  cudaFree(y);
}
"""


@pytest.mark.needs("g++")
def test_launches_say_who_stored_what(tmp_path):
    (tmp_path / "launches.cu").write_text(LAUNCHES)
    program = build_program("launches.cu", tmp_path, build_cache(), tmp_path)
    environment = {**os.environ, "EMULATOR_COUNTS": str(tmp_path / "counts.json")}
    subprocess.run([program], env=environment, check=True, capture_output=True)
    rows, blocks = read_counts(tmp_path / "counts.json", tmp_path).launches
    assert (rows.kernel, rows.grid, rows.block, rows.idle_blocks) == ("every_row", (1, 3, 1), (8, 1, 1), 0)
    # Two blocks store row 1, and three blocks store row 2.
    assert (rows.stored_bytes, rows.repeated_stores, rows.on_other_streams) == (3 * 5 * 4, 5 + 2 * 5, 0)
    assert rows.first_repeated == (
        "element 5 of y, by block (0, 0, 0), thread (0, 0, 0), and by block (0, 1, 0), thread (0, 0, 0)"
    )
    assert (blocks.launches, blocks.idle_blocks, blocks.on_other_streams) == (2, 2, 2)
    assert (rows.idle_warps, blocks.idle_warps) == (0, 2)  # of one warp a block
    assert (blocks.stored_bytes, blocks.repeated_stores, blocks.first_repeated) == (2 * 64 * 4, 0, "")


# Through Python -----------------------------------------------------------------------------------------------


@pytest.mark.needs("g++")
@pytest.mark.proof("emulated grids", files=stage_files(3, 4))
@pytest.mark.parametrize("number", [3, 4])
@pytest.mark.syllabus("3.7a", "3.7b")
def test_a_stages_kernels(number):
    """As ncu counts them on an H200: see docs/results/README.md."""
    found = stage_counts.count_stage(number, 64, 512)
    for kernel, loads, stores in (("forward_kernel", 4, 5), ("backward_kernel", 6, 4)):
        for use, lines in (("load", loads), ("store", stores)):
            rows = found.of(kernel, f"global {use}")
            assert len(rows) == lines
            assert {(row.requests, row.lanes, row.sectors, row.ideal_sectors) for row in rows} == {
                (1024, 32 * 1024, 4 * 1024, 4 * 1024)
            }
        assert found.of(kernel, "shared") == []
    assert [(launch.launches, launch.grid, launch.block) for launch in found.launches] == [
        (1, (2, 64, 1), (256, 1, 1))
    ] * 2
    assert {row.file for row in found.rows} == {"csrc/lltm_kernel.cu"}
    assert all(row.text for row in found.rows)


@pytest.mark.needs("g++")
@pytest.mark.proof("emulated grids", files=stage_files(3))
def test_doubles_take_twice_the_sectors():
    found = stage_counts.count_stage(3, 64, 512, "float64")
    assert found.total("requests", "forward_kernel", "global load") == 4096
    assert found.total("sectors", "forward_kernel", "global load") == 32768


@pytest.mark.needs("g++")
def test_who_touches_what():
    found = stage_counts.count_stage(3, 3, 70, block=0)
    z = [touch for touch in found.accesses if touch.array.name == "z"]
    assert z[0].array == Array("z", 4, 0, (3, 210), (210, 1))
    assert {touch.kernel for touch in z} == {"forward_kernel<scalar_t>"}
    assert sorted((touch.thread, touch.array.index(touch.element)) for touch in z) == sorted(
        (unit, (0, gate * 70 + unit)) for gate in range(3) for unit in range(70)
    )
    names = {touch.array.name for touch in found.accesses}
    assert {"new_h", "new_cell", "gates", "old_cell", "d_z", "d_old_cell", "grad_h", "grad_cell"} < names


@pytest.mark.needs("g++")
def test_only_some_threads_are_traced():
    from common import stages
    from common.build import modules
    from common.measure import pointwise

    cell, inputs = pointwise.from_stage(stages.get_stage(3), "emulator"), stage_counts.make_inputs(2, 40)
    with collect_counts(modules.load_stage(3, "emulator"), block=1, threads=range(32, 34)) as found:
        cell.forward(inputs)
    z = [touch.array.index(touch.element) for touch in found.accesses if touch.array.name == "z"]
    assert {touch.thread for touch in found.accesses} == {32, 33}
    assert sorted(z) == sorted((1, gate * 40 + unit) for gate in range(3) for unit in (32, 33))
    assert len({(touch.instruction, touch.request) for touch in found.accesses}) == 9
    assert found.total("requests") == 9 * 2 * 2  # rows, and warps of a row


@pytest.mark.needs("g++")
def test_nothing_is_counted_outside_of_the_block():
    from common import stages
    from common.build import modules
    from common.measure import pointwise

    cell, inputs = pointwise.from_stage(stages.get_stage(3), "emulator"), stage_counts.make_inputs(1, 32)
    module = modules.load_stage(3, "emulator")
    with collect_counts(module) as first:
        cell.forward(inputs)
    cell.forward(inputs)
    with collect_counts(module) as second:
        pass
    assert (first.total("requests"), second.rows, second.launches) == (9, [], [])
    assert str(second) == "no kernel was launched"
    with pytest.raises(ZeroDivisionError), collect_counts(module) as failed:
        raise ZeroDivisionError
    assert failed.rows == []
    with collect_counts(module) as again:
        cell.forward(inputs)
    assert again.rows == first.rows


def test_a_module_for_a_gpu_is_refused():
    import _ctypes

    module = SimpleNamespace(_C=_ctypes, __name__="lltm", __file__=__file__)
    with (
        pytest.raises(UserError, match=r"lltm runs on the GPU, but only the emulator counts accesses"),
        collect_counts(module),
    ):
        pass


def test_only_files_of_the_folder_are_read(tmp_path):
    """A program names the files of its rows, so it could forge these names."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "own.cu").write_text("mine\n")
    (tmp_path / "key.txt").write_text("secret\n")
    (tmp_path / "work" / "link.cu").symlink_to(tmp_path / "key.txt")
    (tmp_path / "work" / "out").symlink_to(tmp_path)
    names = ("own.cu", "./own.cu", "../key.txt", str(tmp_path / "key.txt"), "link.cu", "out/key.txt", ".", "")
    row = dict.fromkeys(("requests", "lanes", "bytes", "sectors", "ideal_sectors", "wavefronts", "conflicts"), 0)
    rows = [row | {"kernel": "k", "space": f"{at}", "file": name, "line": 1} for at, name in enumerate(names)]
    found = {"launches": [{"kernel": "k", "launches": 1, "grid": [1], "block": [1]}], "rows": rows}
    counted = Counted()
    fill_counts(counted, found | {"arrays": [], "accesses": []}, tmp_path / "work")
    texts = {names[int(row.space)]: row.text for row in counted.rows}
    assert texts == dict.fromkeys(names, "") | {"own.cu": "mine", "./own.cu": "mine"}


@pytest.mark.parametrize(
    ("sizes", "strides", "element", "index"),
    [
        ((3, 210), (210, 1), 211, (1, 1)),
        ((2, 3, 4), (12, 4, 1), 23, (1, 2, 3)),
        ((4, 3), (1, 4), 6, (2, 1)),  # transposed
        ((5, 3), (8, 1), 17, (2, 1)),  # columns of a wider tensor
        ((5, 3), (0, 0), 0, (0, 0)),  # expanded
        ((), (), 7, (7,)),
    ],
)
def test_an_index_follows_the_strides(sizes, strides, element, index):
    assert Array("x", 4, 0, sizes, strides).index(element) == index


def test_sectors_begin_where_memory_does():
    assert [Array("x", 4, 0, (16,), (1,)).sector(k) for k in (0, 7, 8)] == [0, 0, 1]
    assert [Array("x", 4, 24, (16,), (1,)).sector(k) for k in (0, 1, 2, 10)] == [0, 0, 1, 2]
