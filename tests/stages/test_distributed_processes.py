"""Stage 9 in several processes: gradients, checkpoints, kills, and every way in which the processes may not fit."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import torch

from common.check import distributed
from common.check.distributed import faults, workers
from common.check.distributed.launching import launch, read_output
from common.paths import ROOT
from support import ranks
from support.proofs.files import stage_files
from support.ranks import run_ranks

PROGRAM = ROOT / "stages" / "stage9_distributed" / "train.py"
SMALL = ["--steps", "60", "--every", "20", "--state-size", "16", "--timeout", "20", "--device", "cpu"]

pytestmark = [
    pytest.mark.needs("sklearn"),
    pytest.mark.proof("stages' tests", files=stage_files(1, 9)),
]


@pytest.mark.syllabus("9.2a", "9.2c")
@pytest.mark.parametrize("check", distributed.CHECKS, ids=lambda check: check.what)
def test_a_check_of_make_stage_9_passes(check):
    torch.manual_seed(0)
    assert len(check.run()) > 5


def test_three_processes_and_gradients_of_uneven_shares(tmp_path):
    for size in (64, 7, 2, 1):
        for _, off in launch(workers.gradients, 3, "lltm", "1", size, logs=tmp_path / str(size)):
            assert off <= distributed.ROUNDING


@pytest.mark.syllabus("9.2c")
def test_three_processes_resume_bit_for_bit(tmp_path):
    """The order in which three gradients are added depends on DistributedDataParallel's buckets."""
    for name, rounds in (("undisturbed", ["60"]), ("resumed", ["20", "60"])):
        for steps in rounds:
            arguments = [*SMALL, "--steps", steps]
            launch(workers.train, 3, str(tmp_path / name), arguments, logs=tmp_path / name / steps)
    assert "continues after step 20" in read_output(tmp_path / "resumed" / "60")[0]
    assert faults.differences(tmp_path / "resumed", tmp_path / "undisturbed") == []


def test_another_number_of_processes_resumes(tmp_path):
    launch(workers.train, 2, str(tmp_path), [*SMALL, "--steps", "40"], logs=tmp_path / "two")
    before = faults.final_state(tmp_path)[1]
    launch(workers.train, 3, str(tmp_path), SMALL, logs=tmp_path / "three")
    said = read_output(tmp_path / "three")[0]
    assert "was written with processes 2, this run has processes 3: from here on, sums are rounded in" in said
    assert "continues after step 40" in said
    history = faults.final_state(tmp_path)[1]
    assert history[:2] == before
    assert history[2]["loss"] < history[1]["loss"]
    launch(workers.train, 2, str(tmp_path / "undisturbed"), SMALL, logs=tmp_path / "again")
    wanted = faults.final_state(tmp_path / "undisturbed")[1]
    assert history[2]["loss"] == pytest.approx(wanted[2]["loss"], rel=1e-4)  # the sums are rounded in another order


def test_a_difference_is_found(tmp_path):
    for name, seed in (("one", "0"), ("other", "1")):
        launch(workers.train, 2, str(tmp_path / name), [*SMALL, "--seed", seed], logs=tmp_path / name / "logs")
    found = faults.differences(tmp_path / "one", tmp_path / "other")
    assert ".network.recurrence.weights" in found
    assert "history" in found


def test_an_unfinished_checkpoint_is_removed_and_never_read(tmp_path):
    launch(workers.train, 2, str(tmp_path), SMALL, logs=tmp_path / "logs")
    checkpoints = tmp_path / "checkpoints"
    (checkpoints / "step-00000060").rename(checkpoints / "step-00000060.writing")
    launch(workers.train, 2, str(tmp_path), SMALL, logs=tmp_path / "again")
    assert "continues after step 40" in read_output(tmp_path / "again")[0]
    assert sorted(path.name for path in checkpoints.glob("step-*")) == ["step-00000040", "step-00000060"]


@pytest.mark.parametrize("damage", ["missing manifest", "missing file", "one bit", "empty manifest"])
def test_a_damaged_checkpoint_is_not_used(damage, tmp_path, capsys):
    launch(workers.train, 2, str(tmp_path), SMALL, logs=tmp_path / "logs")
    newest = tmp_path / "checkpoints" / "step-00000060"
    part = newest / "__1_0.distcp"
    if damage == "missing manifest":
        (newest / "manifest.json").unlink()
    elif damage == "empty manifest":
        (newest / "manifest.json").write_text("")
    elif damage == "missing file":
        part.unlink()
    else:
        content = bytearray(part.read_bytes())
        content[len(content) // 2] ^= 1
        part.write_bytes(content)
    launch(workers.train, 2, str(tmp_path), SMALL, logs=tmp_path / "again")
    said = read_output(tmp_path / "again")[0]
    assert f"{newest} is damaged and is not used" in said
    assert "continues after step 40" in said
    assert newest.with_suffix(".damaged").exists()


def test_a_step_that_is_damaged_again_is_not_used(tmp_path):
    arguments = [*SMALL, "--checkpoint", str(tmp_path / "c")]
    run_ranks(arguments, folder=tmp_path)
    for kept in (["step-00000060.damaged"], ["step-00000060.damaged", "step-00000060.damaged-2"]):
        (tmp_path / "c" / "step-00000060" / "manifest.json").write_text("")
        [ended] = run_ranks(arguments, folder=tmp_path)
        assert ended.status == 0, ended.output
        assert "continues after step 40" in ended.output
        assert sorted(path.name for path in (tmp_path / "c").glob("*damaged*")) == kept


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("--cell lltm", "--cell gru --stage nn"),
        ("--state-size 16", "--state-size 20"),
        ("--learning-rate 0.003", "--learning-rate 0.01"),
        ("--batch-size 64 --seed 0", "--batch-size 32 --seed 1"),
        ("--task rows", "--task digits"),
        ("--task rows", "--task adding"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(then, now, checkpoint_of_20, tmp_path):
    arguments = [*SMALL, *now.split(), "--checkpoint", str(checkpoint_of_20)]
    before = sorted(checkpoint_of_20.iterdir())
    told = now.removesuffix(" --stage nn")
    message = f"error: --checkpoint {checkpoint_of_20} was written with {then}, this run has {told}"
    ended = run_ranks(arguments, folder=tmp_path)
    assert_one_line(message, *ended)
    assert ended[0].errors[0] == message
    assert sorted(checkpoint_of_20.iterdir()) == before


@pytest.fixture(scope="module")
def checkpoint_of_20(tmp_path_factory):
    """A folder with a checkpoint, which no test may change."""
    folder = tmp_path_factory.mktemp("checkpoint")
    run_ranks([*SMALL, "--steps", "20", "--checkpoint", str(folder / "c")], folder=folder)
    return folder / "c"


def test_other_samples_of_the_same_name_are_refused(tmp_path):
    for name, first, status in (("a.csv", 0, 0), ("a.csv", 1, 1), ("same_as_the_first.csv", 0, 0)):
        lines = [f"{','.join(['1'] * 64)},{(k + first) % 10}" for k in range(20)]
        (tmp_path / name).write_text("\n".join(lines))
        options = ["--data", str(tmp_path / name), "--checkpoint", str(tmp_path / "c"), "--steps", "20"]
        [ended] = run_ranks([*SMALL, *options], folder=tmp_path)
        assert ended.status == status, ended.output
        assert [("was written with --data of checksum " in line) for line in ended.errors] == [True] * status


def test_a_checkpoint_of_an_earlier_version(tmp_path):
    """It does not record its options: a line says so, and a network of another shape is refused in one line."""
    arguments = [*SMALL, "--steps", "20", "--checkpoint", str(tmp_path / "c")]
    run_ranks(arguments, folder=tmp_path)
    manifest = tmp_path / "c" / "step-00000020" / "manifest.json"
    notes = json.loads(manifest.read_text())
    del notes["settings"], notes["sha256"]["manifest.json"]
    manifest.write_text(json.dumps(notes))
    [ended] = run_ranks(arguments, folder=tmp_path)
    assert ended.status == 0
    assert "does not record its options" in ended.output
    assert "continues after step 20" in ended.output
    ended = run_ranks([*arguments, "--cell", "gru", "--stage", "nn"], folder=tmp_path)
    assert_one_line("does not fit this network: Missing key in checkpoint state_dict", *ended)


def test_fewer_steps_than_the_checkpoint_has(checkpoint_of_20, tmp_path):
    [ended] = run_ranks([*SMALL, "--steps", "10", "--checkpoint", str(checkpoint_of_20)], folder=tmp_path)
    assert ended.status == 0
    assert "--steps 10: the checkpoint has more steps already, so nothing is trained" in ended.output


def test_a_folder_in_use_is_refused(tmp_path):
    """Two processes of another run have it. The first is killed, and the second still has it."""
    folder = tmp_path / "c"
    with lock_of(folder, "acquire") as first, lock_of(folder, "join") as second:
        [ended] = run_ranks([*SMALL, "--checkpoint", str(folder)], folder=tmp_path)
        assert_one_line(f"error: {folder} is in use by process ", ended)
        assert int(ended.errors[0].split()[-1]) in (first.pid, second.pid)
        first.kill(), first.wait()
        ended = run_ranks(*[[*SMALL, "--checkpoint", str(folder)]] * 2, folder=tmp_path)
        assert_one_line(f"error: {folder} is in use by process {second.pid}", *ended)
        second.kill(), second.wait()
        assert run_ranks([*SMALL, "--checkpoint", str(folder)], folder=tmp_path)[0].status == 0


@contextmanager
def lock_of(folder: Path, method: str):
    """Another process that has the lock of a folder."""
    holds = """
import sys
sys.path.insert(0, sys.argv[1])
from stage9_distributed.lock import FolderLock
getattr(FolderLock(sys.argv[2]), sys.argv[3])() or print("locked", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", holds]
    started = subprocess.Popen(
        [*command, str(PROGRAM.parents[1]), str(folder), method],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert started.stdout.readline() == "locked\n"
        yield started
    finally:
        started.kill()
        started.communicate()


def test_a_folder_that_is_removed_meanwhile(tmp_path):
    """The run makes a new one, unless another run has one there: then this run ends."""
    arguments = [*SMALL, "--steps", "80", "--checkpoint", str(tmp_path / "c")]
    prepare = dict.fromkeys(range(2), ranks.folder_removed)
    first, second = run_ranks(arguments, arguments, folder=tmp_path, prepare=prepare)
    assert (first.status, second.status) == (0, 0), first.output
    assert sorted(path.name for path in (tmp_path / "c").glob("step-*")) == ["step-00000060", "step-00000080"]
    prepare = dict.fromkeys(range(2), ranks.folder_of_another_run)
    arguments = [*SMALL, "--checkpoint", str(tmp_path / "other")]
    assert_one_line("other is in use by process", *run_ranks(arguments, arguments, folder=tmp_path, prepare=prepare))
    assert not list((tmp_path / "other").glob("step-*"))


def test_a_folder_that_becomes_a_file_meanwhile(tmp_path):
    arguments = [*SMALL, "--checkpoint", str(tmp_path / "c")]
    [ended] = run_ranks(arguments, folder=tmp_path, prepare={0: ranks.folder_becomes_a_file})
    assert ended.status == 1
    assert [line.split()[2] for line in ended.errors] == ["40", "60"]
    assert "step     60" in ended.output
    assert "Traceback" not in ended.output


def test_an_old_checkpoint_that_cannot_be_removed(tmp_path):
    arguments = [*SMALL, "--checkpoint", str(tmp_path / "c")]
    [ended] = run_ranks(arguments, folder=tmp_path, prepare={0: ranks.nothing_can_be_removed})
    assert ended.status == 0, ended.output
    assert "an old checkpoint cannot be removed: [Errno 13]" in ended.output
    assert len(list((tmp_path / "c").glob("step-*"))) == 3


def test_a_full_disk_does_not_stop_the_training(tmp_path):
    arguments = [*SMALL, "--checkpoint", str(tmp_path / "c")]
    [first, _] = run_ranks(arguments, arguments, folder=tmp_path, prepare={0: ranks.full_disk, 1: ranks.full_disk})
    assert first.status == 0
    message = r"^error: step (\d+) has no checkpoint: .* MiB are free in .*; the last one is none$"
    assert re.findall(message, first.output, re.MULTILINE) == ["20"]
    assert "step     60" in first.output
    assert sorted(path.name for path in (tmp_path / "c").glob("step-*")) == ["step-00000040", "step-00000060"]


def test_without_its_last_checkpoint_the_program_fails(tmp_path):
    [ended] = run_ranks(
        [*SMALL, "--steps", "30", "--checkpoint", str(tmp_path / "c")], folder=tmp_path, prepare={0: ranks.full_disk}
    )
    assert ended.status == 1
    assert "step 30 has no checkpoint" in ended.output


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").touch()
    [ended] = run_ranks([*SMALL, "--checkpoint", str(tmp_path / "file")], folder=tmp_path)
    assert (ended.status, len(ended.errors)) == (1, 1)
    assert "--checkpoint" in ended.errors[0]


def assert_one_line(message: str, *ended: ranks.Ended) -> None:
    """All processes end with status 1, and one of them prints one message."""
    assert [one.status for one in ended] == [1] * len(ended), [one.output for one in ended]
    [line] = [line for one in ended for line in one.errors]
    assert message in line
    assert not any("Traceback" in one.output for one in ended)


def test_processes_with_other_options_or_versions_are_refused(tmp_path):
    ended = run_ranks(SMALL, [*SMALL, "--cell", "gru", "--stage", "nn"], folder=tmp_path)
    assert_one_line("process 1 runs with --cell gru, process 0 with --cell lltm", *ended)
    ended = run_ranks(SMALL, SMALL, folder=tmp_path, prepare={1: ranks.another_torch})
    assert_one_line(f"process 1 runs with torch 2.11.0, process 0 with torch {torch.__version__}", *ended)


def test_a_file_that_one_process_cannot_read(tmp_path):
    absent = [*SMALL, "--data", str(tmp_path / "absent.csv")]
    assert_one_line("process 1: cannot read digits from", *run_ranks(SMALL, absent, folder=tmp_path))
    assert_one_line("error: cannot read digits from", *run_ranks(absent, absent, folder=tmp_path))


def test_a_port_in_use_is_named(tmp_path):
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        [ended] = run_ranks(SMALL, folder=tmp_path, port=other.getsockname()[1], world_size=2)
        assert_one_line(f"port 127.0.0.1:{other.getsockname()[1]} is in use", ended)


def test_a_process_that_never_comes_is_not_awaited_forever(tmp_path):
    start = time.monotonic()
    [ended] = run_ranks([*SMALL, "--timeout", "2"], folder=tmp_path, world_size=2)
    assert_one_line("process 0 of 2 waited 2 s for the others", ended)
    assert time.monotonic() - start < 30


def test_a_process_that_dies_ends_the_others(tmp_path):
    first, second = run_ranks(SMALL, SMALL, folder=tmp_path, prepare={1: ranks.dies})
    assert second.status == 9
    assert_one_line("process 0 lost contact with another process", first)


def test_gpus_that_are_not_there(tmp_path):
    gpu = [*SMALL, "--device", "cuda"]
    if not torch.cuda.is_available():
        assert_one_line("torch finds no GPU here; choose --device cpu", *run_ranks(gpu, gpu, folder=tmp_path))
    prepare = dict.fromkeys(range(2), ranks.one_gpu)
    ended = run_ranks(gpu, gpu, folder=tmp_path, prepare=prepare)
    assert_one_line("2 processes need as many GPUs, and torch finds 1 here; choose --nproc-per-node 1", *ended)
    prepare = dict.fromkeys(range(2), ranks.two_gpus_without_nccl)
    assert_one_line("has no NCCL; choose --device cpu", *run_ranks(gpu, gpu, folder=tmp_path, prepare=prepare))


@pytest.mark.syllabus("9.2a", "9.2c")
def test_torchrun_restarts_a_killed_process(tmp_path):
    """The command of the README, once: one of the processes gets SIGKILL after the first checkpoint."""
    checkpoints = tmp_path / "checkpoints"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [*SMALL, "--steps", "800", "--checkpoint", str(checkpoints)]
    started = subprocess.Popen(
        [*command, "--max-restarts", "1", str(PROGRAM), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        lines = []
        for line in started.stdout:
            lines.append(line)
            if len(lines) == 3:
                os.kill(children_of(started.pid)[0], 9)
        assert started.wait() == 0, lines
    finally:
        started.kill()
    [resumed] = [line for line in lines if line.startswith("continues after step")]
    assert int(resumed.split()[-1]) >= 20
    assert max(faults.list_steps(checkpoints)) == 800
    launch(workers.train, 2, str(tmp_path / "undisturbed"), [*SMALL, "--steps", "800"], logs=tmp_path / "logs")
    assert faults.differences(tmp_path, tmp_path / "undisturbed") == []


@pytest.mark.parametrize(
    ("arguments", "message", "most"),
    [
        (["--data", "/absent.csv"], "error: cannot read digits from", 1),
        (["--steps", "0"], "error: argument --steps", 2),  # each process finds it, but the other may end before
    ],
    ids=["found by the program", "found by argparse"],
)
def test_torchrun_does_not_retry_an_error_of_the_user(arguments, message, most, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "--max-restarts", "2", str(PROGRAM), *SMALL, *arguments],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert 1 <= done.stderr.count(message) <= most, done.stderr


def test_orphans_of_a_killed_torchrun_have_the_folder(tmp_path):
    """They go on with the training. Another run is refused until they end."""
    folder = tmp_path / "c"
    arguments = [*SMALL, "--steps", "1000000", "--checkpoint", str(folder)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with (tmp_path / "log").open("w") as log:
        started = subprocess.Popen(
            [*command, str(PROGRAM), *arguments], stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
    orphans = []
    try:
        wait_until(lambda: faults.list_steps(folder))
        orphans = children_of(started.pid)
        started.kill()
        started.wait()
        [ended] = run_ranks([*SMALL, "--checkpoint", str(folder)], folder=tmp_path)
        assert_one_line(f"{folder} is in use by process ", ended)
        assert int(ended.errors[0].split()[-1]) in orphans
    finally:
        started.kill()
        for orphan in orphans:
            os.kill(orphan, 9)
    wait_until(lambda: not any(Path(f"/proc/{orphan}").exists() for orphan in orphans))
    [ended] = run_ranks([*SMALL, "--steps", "20", "--checkpoint", str(folder)], folder=tmp_path)
    assert "continues after step" in ended.output
    assert ended.status == 0


def wait_until(is_true, seconds: float = 60) -> None:
    """Asks again and again; a test that waits for longer fails."""
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


def children_of(process: int) -> list[int]:
    """The processes that torchrun has started."""
    children = map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split())
    return [child for child in children if b"train.py" in Path(f"/proc/{child}/cmdline").read_bytes()]
