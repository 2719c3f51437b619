"""The program without Python. `make stage-8`: every check of stage 8, one line each, against the model in Python."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import Tensor

from .. import deploy
from ..cell.case import fresh_seed
from ..console import say, step
from ..deploy import Server, run_program
from ..paths import display_path
from .lines import Check, run_check
from .subject import Result

TOLERANCE = 1e-5  # of a score: a batch of another size may add in another order
CLIENTS = 16


def check_deploy(seed: int | None = None) -> list[Result]:
    """Builds the program and the package, then runs every check and prints its result.

    Without a seed, the checks use new random numbers. Raises `UserError` if the program does not build.
    """
    seed = fresh_seed() if seed is None else seed
    with step("build lltm_serve"):
        deploy.build_program()
    with step("train the model and export it"):
        package, *others = [deploy.build_package(device) for device in deploy.devices()]
    results = [run_check(8, one, seed) for one in CHECKS]
    if others:
        results.append(run_check(8, GPU_CHECK, seed))
    else:
        say(f"    not run: {GPU_CHECK.what} (torch finds no GPU here)")
    say(f"  Serve it: {display_path(deploy.build_program())} serve {display_path(package.path)}")
    return results


def random_sequences(lengths: list[int]) -> list[Tensor]:
    """A sequence (T, 8) for each length."""
    return [torch.rand(T, 8) for T in lengths]


def scores_in_python(sequence: Tensor, device: str = "cpu") -> Tensor:
    """The scores (C) of a sequence (T, 8) by the model in eager mode, with the weights of the device's package."""
    return deploy.build_package(device).scores(sequence)


def assert_close(what: str, scores: list[float], sequence: Tensor, device: str = "cpu") -> None:
    """Raises AssertionError unless the scores are those of the model in Python; NaN is never close."""
    error = (torch.tensor(scores) - scores_in_python(sequence, device)).abs().max().item()
    assert error <= TOLERANCE, f"{what}: a score differs from Python's by {error:.1e}"


def check_libraries() -> str:
    """No library of Python is loaded when the program starts."""
    listed = subprocess.run(["ldd", str(deploy.build_program())], capture_output=True, text=True, check=True).stdout
    assert "libtorch_cpu" in listed, f"ldd shows no torch: {listed}"
    names = [line.split()[0] for line in listed.splitlines()]
    assert not [name for name in names if "python" in name], f"the program is linked to Python: {listed}"
    return f"{len(names)} libraries"


def check_file() -> str:
    """`lltm_serve run` on JSON lines, with an empty environment."""
    return compare_file(deploy.build_package().path, [1, 8, 5, 100, 2])


def check_gpu() -> str:
    """The same with a package for a GPU."""
    return compare_file(deploy.build_package("cuda").path, [1, 8, 5, 100, 2], "cuda")


def check_stable_operators() -> str:
    """The same with the operators in torch's stable ABI beside the package, instead of stage 7's library."""
    package = deploy.build_package().path
    with tempfile.TemporaryDirectory() as folder:
        for path in package.parent.iterdir():
            shutil.copy(path, folder)
        export = deploy.stage_module("export")
        shutil.copy(deploy.stable_operators(), Path(folder, export.OPERATORS))
        export.write_checksums(Path(folder))
        return compare_file(Path(folder, package.name), [1, 8, 5])


def compare_file(package: Path, lengths: list[int], device: str = "cpu") -> str:
    """Runs a package on a file of sequences of these lengths; raises AssertionError unless the scores are right."""
    sequences = random_sequences(lengths)
    with tempfile.TemporaryDirectory() as folder:
        lines, output = Path(folder, "sequences.jsonl"), Path(folder, "predictions.jsonl")
        lines.write_text("".join(deploy.json_line(sequence) for sequence in sequences))
        done = run_program(deploy.build_program(), "run", package, lines, output)
        assert done.returncode == 0, done.stderr
        scores = deploy.scores_of(output.read_text().splitlines())
    assert len(scores) == len(sequences), f"{len(scores)} predictions for {len(sequences)} sequences"
    for given, sequence in zip(scores, sequences, strict=True):
        assert_close("run", given, sequence, device)
    return f"{len(sequences)} sequences"


def check_requests() -> str:
    """Concurrent requests of different lengths, which the server joins into batches."""
    sequences = random_sequences([1 + k % 10 for k in range(4 * CLIENTS)])
    with start_server(max_delay_ms=20) as server, ThreadPoolExecutor(CLIENTS) as clients:
        answers = list(clients.map(lambda sequence: server.post({"steps": sequence.tolist()}), sequences))
        batches = server.metric("lltm_batch_size_count")
    for (status, answer), sequence in zip(answers, sequences, strict=True):
        assert status == 200, answer
        assert_close("a request", answer["scores"], sequence)
    assert batches < len(sequences), f"{len(sequences)} requests needed {batches:.0f} calls of the model"
    return f"{len(sequences)} requests in {batches:.0f} calls of the model"


def check_stream() -> str:
    """A sequence whose steps arrive one by one has the scores of the beginning after each."""
    [sequence] = random_sequences([8])
    with start_server() as server:
        for step in range(8):
            request = {"steps": [sequence[step].tolist()], "stream": "one", "start": step == 0}
            status, answer = server.post(request)
            assert status == 200, answer
            assert_close(f"step {step}", answer["scores"], sequence[: step + 1])
    return "8 steps, one by one"


def check_stop() -> str:
    """SIGTERM while requests wait for their batch: all are answered."""
    sequences = random_sequences([8] * CLIENTS)
    with start_server(max_delay_ms=1000, timeout_ms=20000) as server, ThreadPoolExecutor(CLIENTS) as clients:
        answers = [clients.submit(server.post, {"steps": sequence.tolist()}) for sequence in sequences]
        deploy.wait_until(lambda: server.metric("lltm_queue_length") == CLIENTS)
        status = server.stop()
        assert status == 0, f"the server ended with status {status}"
        for answer, sequence in zip(answers, sequences, strict=True):
            assert_close("an accepted request", answer.result()[1]["scores"], sequence)
    return f"{CLIENTS} requests answered"


def start_server(**options: int) -> Server:
    """The server with the package of the trained model."""
    return Server(deploy.build_program(), deploy.build_package().path, **options)


CHECKS = (
    Check("no Python is linked", check_libraries),
    Check("a file of sequences", check_file),
    Check("operators in torch's stable ABI", check_stable_operators),
    Check("requests in batches", check_requests),
    Check("a stream, step by step", check_stream),
    Check("a stop loses no request", check_stop),
)
GPU_CHECK = Check("a file of sequences on a GPU", check_gpu)
