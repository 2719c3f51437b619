"""`lltm_serve run`, and what the program says about packages, files and arguments that do not fit."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from common import deploy
from common.check.deploy import scores_in_python
from common.deploy import MissingPackage
from common.deploy.program import FOLDER
from support.serving import DEPLOY_MARKS

pytestmark = DEPLOY_MARKS


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return deploy.run_program(deploy.build_program(), *arguments)


def refusal(*arguments: object) -> str:
    """The one line that the program prints before it ends with status 1."""
    done = run(*arguments)
    assert done.returncode == 1, done
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("lltm_serve: ")
    return lines[0].removeprefix("lltm_serve: ")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with its operators; returns the package's path."""
    folder = shutil.copytree(deploy.build_package().path.parent, tmp_path / "copy")
    return folder / deploy.build_package().path.name


def change_metadata(package: Path, **changes: str) -> None:
    """Rewrites a package with other metadata, and its checksum."""
    with zipfile.ZipFile(package) as old:
        contents = {name: old.read(name) for name in old.namelist()}
    [name] = [name for name in contents if name.endswith("wrapper_metadata.json")]
    contents[name] = json.dumps({**json.loads(contents[name]), **changes}).encode()
    with zipfile.ZipFile(package, "w") as new:
        for path, content in contents.items():
            new.writestr(path, content)
    deploy.stage_module("export").write_checksums(package.parent)


def test_an_array_of_numpy(tmp_path):
    images = np.random.default_rng(0).random((100, 8, 8), dtype=np.float32)
    np.save(tmp_path / "images.npy", images)
    done = run("run", deploy.build_package().path, tmp_path / "images.npy", tmp_path / "out.jsonl")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == 100
    for image, line in zip(images, lines, strict=True):
        want = scores_in_python(torch.from_numpy(image))
        torch.testing.assert_close(torch.tensor(json.loads(line)["scores"]), want, rtol=0, atol=1e-5)
        assert json.loads(line)["label"] == want.argmax()
        assert json.loads(line)["steps"] == 8


def test_no_sequences_no_predictions(tmp_path):
    (tmp_path / "in.jsonl").write_text("\n")
    assert run("run", deploy.build_package().path, tmp_path / "in.jsonl", tmp_path / "out.jsonl").returncode == 0
    assert (tmp_path / "out.jsonl").read_text() == ""


ROW = [0.0] * 8
LINES = {
    "not JSON": ("nonsense", "line 2: the request is not JSON: parse error"),
    "a step too short": ('{"steps": [[1, 2]]}', "line 2: step 0 is a list of 2; expected a list of 8 numbers"),
    "NaN": ('{"steps": [[NaN]]}', "line 2: the request is not JSON"),
    "too large": (json.dumps({"steps": [[1e39, *ROW[1:]]]}), "line 2: steps has the value inf in step 0, feature 0"),
    "a stream": (json.dumps({"steps": [ROW], "stream": "a"}), "line 2: streams are for the server only"),
    "too long": (
        json.dumps({"steps": [ROW] * 1025}),
        "line 2: steps has more than 1024 steps; the model was exported for",
    ),
}


@pytest.mark.parametrize(("line", "message"), LINES.values(), ids=LINES)
def test_a_bad_line_is_named(line, message, tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps({"steps": [ROW]}) + "\n" + line + "\n")
    assert message in refusal("run", deploy.build_package().path, tmp_path / "in.jsonl", tmp_path / "out.jsonl")


def with_nan() -> np.ndarray:
    array = np.zeros((3, 8, 8), np.float32)
    array[1, 2, 3] = np.nan
    return array


ARRAYS = {
    "NaN": (with_nan(), "sequence 1: steps has the value nan in step 2, feature 3"),
    "two dimensions": (np.zeros((8, 8), np.float32), "has shape [8, 8], expected (N, T, I)"),
    "double": (np.zeros((2, 8, 8)), "holds numbers of type <f8; expected <f4, which is float32"),
    "Fortran": (np.zeros((2, 8, 8), np.float32, order="F"), "is in Fortran order"),
    "seven features": (np.zeros((2, 8, 7), np.float32), "steps has shape [8, 7], expected [T, 8]"),
    "no steps": (np.zeros((2, 0, 8), np.float32), "steps has shape [0, 8], expected [T, 8] with T of 1 or more"),
}


@pytest.mark.parametrize(("array", "message"), ARRAYS.values(), ids=ARRAYS)
def test_a_bad_array(array, message, tmp_path):
    np.save(tmp_path / "in.npy", array)
    assert message in refusal("run", deploy.build_package().path, tmp_path / "in.npy", tmp_path / "out.jsonl")


TORN = {0: "is not a file of numpy.save", 40: "is not a file of numpy.save", 1000: "do not fit its shape [10, 8, 8]"}


@pytest.mark.parametrize(("size", "message"), TORN.items())
def test_a_torn_array(size, message, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros((10, 8, 8), np.float32))
    (tmp_path / "in.npy").write_bytes((tmp_path / "in.npy").read_bytes()[:size])
    assert message in refusal("run", deploy.build_package().path, tmp_path / "in.npy", tmp_path / "out.jsonl")


def test_a_file_that_is_not_there(tmp_path):
    package = deploy.build_package().path
    assert refusal("run", package, tmp_path / "in.jsonl", tmp_path / "o").endswith("in.jsonl cannot be read")
    (tmp_path / "in.jsonl").write_text("")
    assert refusal("run", package, tmp_path / "in.jsonl", tmp_path / "no" / "o").endswith("cannot be written")
    assert refusal("run", tmp_path / "none.pt2", "a", "b").endswith("none.pt2 does not exist")


METADATA = {
    "format": ({"format": "2"}, "has format 2, but this program reads format 1: export it again"),
    "torch": ({"torch": "2.9.1"}, "is for torch 2.9.1, but this program has"),
    "device": ({"AOTI_DEVICE_KEY": "xpu"}, "is for the device 'xpu', but this program runs on CPUs and CUDA GPUs"),
    "no number": ({"features": "eight"}, "has 'eight' for features in its metadata"),
    "operators": ({"operators": "nowhere.so"}, "nowhere.so does not exist"),
    "classes": ({"classes": "11"}, "returns scores of shape [10], expected [11]"),
}


@pytest.mark.parametrize(("changes", "message"), METADATA.values(), ids=METADATA)
def test_a_package_for_another_program_is_refused_in_one_line(changes, message, copy):
    change_metadata(copy, **changes)
    assert message in refusal("serve", copy)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_package_for_a_gpu_is_refused_without_one(copy):
    change_metadata(copy, AOTI_DEVICE_KEY="cuda")
    assert refusal("serve", copy).endswith("model.pt2 is for the device 'cuda', and torch finds no GPU here")


def test_a_package_that_is_only_rewritten_is_accepted(copy, tmp_path):
    change_metadata(copy)
    (tmp_path / "in.jsonl").write_text("")
    assert run("run", copy, tmp_path / "in.jsonl", tmp_path / "out.jsonl").returncode == 0


def test_the_operators_are_taken_from_the_folder_of_the_package_only(copy):
    change_metadata(copy, operators="/usr/lib/libc.so.6")
    assert f"{copy.parent}/libc.so.6 does not exist" in refusal("serve", copy)


@pytest.mark.parametrize("size", [0, 100, 100_000])
def test_a_torn_package(size, copy):
    copy.write_bytes(copy.read_bytes()[:size])
    assert "model.pt2 is damaged: its checksum is not the one in SHA256SUMS" in refusal("serve", copy)
    deploy.stage_module("export").write_checksums(copy.parent)
    assert "is not a package that torch" in refusal("serve", copy)


def test_a_flipped_bit_anywhere_is_found(copy):
    """The loader reads past damaged weights without an error, and the scores are others."""
    whole, random = copy.read_bytes(), np.random.default_rng(0)
    for place in random.integers(0, len(whole), 10):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(random.integers(8))
        copy.write_bytes(damaged)
        assert "model.pt2 is damaged" in refusal("serve", copy)


@pytest.mark.parametrize("size", [0, 4096, 100_000])
def test_a_truncated_library_of_operators_is_found(size, copy):
    """Loading it would end the process with SIGBUS."""
    library = copy.parent / deploy.stage_module("export").OPERATORS
    library.write_bytes(library.read_bytes()[:size])
    assert "lltm_operators.so is damaged: its checksum is not the one in SHA256SUMS" in refusal("serve", copy)


def test_checksums_that_are_missing_or_damaged(copy):
    sums = copy.parent / deploy.stage_module("export").CHECKSUMS
    text = sums.read_text()
    sums.write_text("")
    assert "SHA256SUMS has no line for model.pt2" in refusal("serve", copy)
    sums.write_text(text.replace("a", "b"))
    assert "model.pt2 is damaged" in refusal("serve", copy)
    sums.unlink()
    assert "SHA256SUMS does not exist: export the package again" in refusal("serve", copy)


@pytest.mark.needs("sha256sum")
def test_sha256sum_reads_the_checksums():
    folder = deploy.build_package().path.parent
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_package_of_another_program(copy):
    with zipfile.ZipFile(copy, "w") as package:
        package.writestr("hello", "world")
    deploy.stage_module("export").write_checksums(copy.parent)
    assert "Failed to find wrapper metadata for model 'model'" in refusal("serve", copy)


def test_arguments():
    done = run()
    assert done.returncode == 2
    assert "lltm_serve serve PACKAGE" in done.stderr
    assert refusal("run", "a") == "run takes PACKAGE INPUT OUTPUT"
    assert refusal("serve") == "serve takes PACKAGE and options"
    assert refusal("serve", "a", "--prot", "1") == "there is no option --prot"
    for value in ("", "x", "-1", "65536", "1.5"):
        assert refusal("serve", "a", "--port", value) == f"--port is '{value}', expected a number from 0 to 65535"


@pytest.mark.parametrize("header", ["boost/beast/http.hpp", "openssl/evp.h", "nlohmann/json.hpp"])
def test_a_missing_header_is_named_in_one_line(header, tmp_path):
    """The build of a copy that looks for a header that does not exist."""
    folder = shutil.copytree(FOLDER, tmp_path / "stage8", ignore=shutil.ignore_patterns("exercises"))
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(f" {header} ", " not_there/header.h "))
    with pytest.raises(MissingPackage, match=r"lltm_serve needs not_there/header.h: sudo apt install .*-dev"):
        deploy.build_program(folder)


def test_a_missing_cmake_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPackage, match="no cmake: sudo apt install cmake"):
        deploy.build_program()
