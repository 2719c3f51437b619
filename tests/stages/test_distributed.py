"""Stage 9 in one process: its tasks, its network with the cells of all stages, and which samples a process takes."""

from __future__ import annotations

import gzip
import importlib
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from common import stages
from common.build import modules
from common.paths import ROOT
from support.proofs.files import stage_files

stage9 = modules.load_stage(9)
tasks = stage9.tasks
PROGRAM = ROOT / "stages" / "stage9_distributed" / "train.py"

pytestmark = [pytest.mark.needs("sklearn"), pytest.mark.proof("stages' tests", files=stage_files())]


@pytest.fixture
def alone():
    """One process, connected, and one thread: more would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    processes = stage9.Processes(0, 1, 0, 1, 60.0)
    with processes.connected({}):
        yield processes
    torch.set_num_threads(threads)


def make_training(processes, cell, stage, task="rows", **options):
    torch.manual_seed(0)
    task = stage9.make_task(task, length=20, seed=0, data=None)
    network = stage9.make_network(task, cell, stage, 32)
    options = {"batch_size": 64, "learning_rate": 3e-3, "seed": 0, **options}
    return stage9.Training(task, network, processes, torch.device("cpu"), **options)


def losses(processes, cell, stage, steps=5):
    training = make_training(processes, cell, stage)
    return [float(training.update(training.sampler.batch(k))) / 64 for k in range(steps)]


@pytest.mark.syllabus("9.1a")
@pytest.mark.needs("g++")
@pytest.mark.parametrize("stage", ["2", "3", "4", "5", "6", "7"])
def test_every_stage_trains_the_lltm_alike(stage, alone):
    """Stages 3 and 4 on the emulator, if there is no GPU."""
    if torch.cuda.is_available() and "host" not in stages.find_stage(int(stage)).targets:
        pytest.skip("this test trains on CPU tensors")
    wanted = losses(alone, "lltm", "1")
    assert losses(alone, "lltm", stage) == pytest.approx(wanted, rel=1e-4)
    assert wanted[-1] < wanted[0]


@pytest.mark.needs("g++")
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_stage_7_trains_as_torch_does(cell, alone):
    assert losses(alone, cell, "7") == pytest.approx(losses(alone, cell, "nn"), rel=1e-4)


@pytest.mark.syllabus("9.1a")
def test_the_digits_are_learned(alone):
    training = make_training(alone, "lstm", "nn")
    assert training.run(600, 300)
    assert training.history[-1]["accuracy"] > 0.9
    assert [row["step"] for row in training.history] == [300, 600]


@pytest.mark.syllabus("9.1b")
def test_the_adding_problem_is_learned(alone):
    training = make_training(alone, "gru", "nn", "adding")
    training.run(600, 300)
    assert training.history[-1]["test_loss"] < 0.01  # answering 1 each time gives 0.167
    assert training.history[-1]["accuracy"] > 0.7


def test_pixels_are_read_in_the_order_of_the_rows():
    pixel, row = (stage9.make_task(name, length=0, seed=0, data=None) for name in ("digits", "rows"))
    assert pixel.train.inputs.shape == (1437, 64, 1)
    assert row.test.inputs.shape == (360, 8, 8)
    assert torch.equal(pixel.train.inputs.flatten(1), row.train.inputs.flatten(1))
    assert row.train.inputs.max() == 1


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    pixels, labels = tasks.read_digits(tasks.scikit_learn_digits())
    assert torch.equal(pixels.double(), torch.tensor(load_digits().data))
    assert torch.equal(labels, torch.tensor(load_digits().target))


def test_the_adding_problem():
    task = stage9.make_task("adding", length=7, seed=3, data=None)
    numbers, marks = task.train.inputs.unbind(2)
    assert (marks.sum(1) == 2).all()
    assert torch.allclose((numbers * marks).sum(1), task.train.targets)
    always = torch.ones(len(task.test.targets), 1)
    assert task.loss(always, task.test.targets) / len(always) == pytest.approx(1 / 6, rel=0.1)
    assert task.is_correct(always, task.test.targets).double().mean() == pytest.approx(0.19, abs=0.02)


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
@pytest.mark.parametrize(("samples", "batch_size"), [(23, 5), (6, 3), (4, 8)])
def test_each_sample_counts_once_an_epoch(samples, batch_size, world_size):
    sampler = stage9.Sampler(samples, batch_size, seed=1)
    epochs = []
    for epoch in range(2):
        first = epoch * sampler.steps_per_epoch
        batches = [sampler.batch(first + k) for k in range(sampler.steps_per_epoch)]
        shares = [stage9.share(batch, rank, world_size) for batch in batches for rank in range(world_size)]
        assert sorted(torch.cat(shares).tolist()) == list(range(samples))
        sizes = [[len(stage9.share(batch, rank, world_size)) for rank in range(world_size)] for batch in batches]
        assert all(max(row) - min(row) <= 1 for row in sizes)
        epochs.append(torch.cat(batches).tolist())
    assert epochs[0] != epochs[1]
    assert epochs[0] == torch.cat([sampler.batch(k) for k in range(sampler.steps_per_epoch)]).tolist()


def write_digits(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


LINE = ",".join(["1"] * 64)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("short.csv", "1,2,3\n" * 12, "(12, 3) numbers, expected 65 in each line"),
        ("few.csv", f"{LINE},0\n", "(1, 65) numbers"),
        ("words.csv", "one,two\n", "could not convert"),
        ("label.csv", f"{LINE},0.5\n" * 12, "must be a digit from 0 to 9"),
        ("ten.csv", f"{LINE},10\n" * 12, "must be a digit from 0 to 9"),
    ],
)
def test_a_file_that_holds_no_digits_is_refused(name, text, message, tmp_path):
    path = write_digits(tmp_path / name, text)
    with pytest.raises(stage9.TrainingError) as error:
        tasks.read_digits(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    torn = write_digits(tmp_path / "torn.csv.gz", f"{LINE},3\n" * 50)
    torn.write_bytes(torn.read_bytes()[:40])
    for path in (torn, tmp_path / "absent.csv", tmp_path):
        with pytest.raises(stage9.TrainingError, match="cannot read digits from"):
            tasks.read_digits(path)


def test_another_file_of_digits_is_used(tmp_path):
    path = write_digits(tmp_path / "mine.csv.gz", "".join(f"{LINE},{k % 10}\n" for k in range(20)))
    assert len(stage9.make_task("rows", length=0, seed=0, data=path).train.inputs) == 16


@pytest.mark.parametrize(("cell", "stage", "choose"), [("gru", "3", "7, nn"), ("lltm", "nn", "1, 2, 3, 4, 5, 6, 7")])
def test_a_stage_without_the_cell_is_refused(cell, stage, choose):
    task = stage9.make_task("adding", length=2, seed=0, data=None)
    with pytest.raises(stage9.TrainingError, match=f"--stage {stage} has no {cell}; choose --stage {choose}$"):
        stage9.make_network(task, cell, stage, 4)


def test_a_checkpoint_has_the_notes_of_its_step(alone, tmp_path):
    """The training appends to its history while the thread writes; here, the thread begins after that."""
    checkpoint = importlib.import_module(f"{stages.get_stage(9).package}.checkpoint")
    checkpoints, may_write = checkpoint.Checkpoints(tmp_path, alone.limit), threading.Event()
    checkpoints.thread.submit(may_write.wait)
    history = [{"step": 20}]
    checkpoints.save(20, {"weights": torch.ones(3)}, {"history": history})
    history.append({"step": 40})
    may_write.set()
    assert checkpoints.wait()
    assert checkpoints.newest() == {"step": 20, "history": [{"step": 20}]}


def damage(newest: Path, kind: str) -> None:
    manifest = newest / "manifest.json"
    text = manifest.read_text()
    if kind == "a changed loss":
        manifest.write_text(text.replace("0.75", "0.25"))
    elif kind == "a list":
        manifest.write_text(f"[{text}]")
    elif kind == "no checksums":
        manifest.write_text('{"step": 40, "history": []}')
    elif kind == "checksums that are none":
        manifest.write_text('{"step": 40, "history": [], "sha256": 3}')
    elif kind == "nested brackets":
        manifest.write_text("[" * 100_000)
    elif kind == "not UTF-8":
        manifest.write_bytes(b"\xff" + manifest.read_bytes())
    elif kind == "a folder in it":
        (newest / "more").mkdir()
    elif kind == "a copy of another step":
        shutil.rmtree(newest)
        shutil.copytree(newest.with_name("step-00000020"), newest)
    else:
        shutil.rmtree(newest)
        newest.touch()


KINDS = (
    "a changed loss", "a list", "no checksums", "checksums that are none", "nested brackets", "not UTF-8",
    "a folder in it", "a copy of another step", "a file in its place",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_that_is_damaged_several_times(kind, alone, tmp_path, capsys):
    checkpoints = stage9.Checkpoints(tmp_path, alone.limit)
    checkpoints.save(20, {"weights": torch.ones(3)}, {"history": [{"loss": 0.75}]})
    for _ in range(3):
        checkpoints.save(40, {"weights": torch.ones(3)}, {"history": [{"loss": 0.75}]})
        assert checkpoints.wait()
        assert checkpoints.newest()["step"] == 40
        damage(tmp_path / "step-00000040", kind)
        assert checkpoints.newest()["step"] == 20
        assert "step-00000040 is damaged and is not used: " in capsys.readouterr().out
    assert len(list(tmp_path.glob("step-00000040.damaged*"))) == 3


def test_only_names_of_checkpoints_are_read(alone, tmp_path):
    """And the newest is that of the highest step, also with more than eight digits."""
    checkpoints = stage9.Checkpoints(tmp_path, alone.limit)
    for step in (99_999_999, 100_000_000):
        checkpoints.save(step, {"weights": torch.ones(3)}, {})
    assert checkpoints.wait()
    for name in ("step-old", "step-5", "step-200000000 (copy)"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-00000007.writing").touch()
    assert checkpoints.newest()["step"] == 100_000_000
    names = {path.name for path in tmp_path.glob("step-*")}
    assert names == {"step-old", "step-5", "step-200000000 (copy)", "step-99999999", "step-100000000"}


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ("RANK=0 WORLD_SIZE=2", "not LOCAL_RANK and LOCAL_WORLD_SIZE and MASTER_PORT and MASTER_ADDR"),
        ("WORLD_SIZE=2", "not RANK"),
        ("RANK=2 WORLD_SIZE=2", "RANK=2 WORLD_SIZE=2 LOCAL_RANK=0"),
        ("RANK=one WORLD_SIZE=2", "RANK=one"),
        ("RANK=-1 WORLD_SIZE=2", "RANK=-1"),
        ("RANK=0 WORLD_SIZE=0", "WORLD_SIZE=0"),
        ("RANK=0 WORLD_SIZE=2 MASTER_PORT=http", "MASTER_PORT=http"),
    ],
)
def test_an_environment_that_torchrun_does_not_make(variables, named, monkeypatch, capsys):
    given = dict(pair.split("=") for pair in variables.split())
    others = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1234"}
    for name in (*others, "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({**others, **given} if "," not in named and "not " not in named else given).items():
        monkeypatch.setenv(name, value)
    assert stage9.train.main([]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert named in line
    assert line.endswith("start with torchrun")


@pytest.mark.parametrize("options", ["--state-size 10000000", "--task adding --length 10000000"])
def test_a_size_beyond_the_memory_is_one_line(options, capsys, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert stage9.train.main([*options.split(), "--device", "cpu"]) == 1
    assert capsys.readouterr().err == f"error: {options}: this machine has not enough memory\n"


def test_results_that_cannot_be_written_are_refused_at_the_start(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    (tmp_path / "file").touch()
    assert stage9.train.main(["--steps", "1000000", "--output", str(tmp_path / "file"), "--device", "cpu"]) == 1
    assert capsys.readouterr().err == f"error: --output {tmp_path / 'file'}: File exists\n"


def test_the_program_in_one_process(tmp_path):
    """As a script in a folder of its own, with a picture of the losses."""
    command = [sys.executable, str(PROGRAM), "--cell", "gru", "--stage", "nn", "--steps", "30", "--every", "15"]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out"), "--device", "cpu"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["15", "30"]
    history = json.loads((tmp_path / "out" / "history.json").read_text())
    assert [row["step"] for row in history] == [15, 30]
    assert "<svg" in (tmp_path / "out" / "loss.svg").read_text()


OUT_OF_RANGE = (
    "--steps 0", "--every -1", "--stage 8", "--cell rnn", "--learning-rate nan", "--learning-rate -1",
    "--learning-rate inf", "--timeout 0", "--timeout nan", "--timeout 1e30", f"--seed {2**64}", "--state-size 1e3",
    f"--state-size {10**19}",
)  # fmt: skip


@pytest.mark.parametrize("arguments", [options.split() for options in OUT_OF_RANGE], ids=" ".join)
def test_an_option_out_of_range_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        stage9.train.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_the_stage_imports_common_only_to_find_another_stage():
    for path in stages.get_stage(9).folder.glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if "common" in line and "import" in line]
        assert all(path.name == "model.py" and line.startswith("    ") for line in lines), path
