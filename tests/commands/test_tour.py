"""The tour on a machine without a GPU: what the emulator runs is compiled by nvcc too, where it is there."""

import json
import os
import shutil
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context

import pytest

from common import console, deploy, stages
from common.build import library
from common.build.library import Build
from common.check import earlier, harness
from common.check.subject import Result
from common.commands import tour
from common.deploy import MissingPackage
from common.errors import UserError
from common.measure import bench
from common.pages import report
from common.paths import ROOT


@pytest.fixture
def built(tmp_path, monkeypatch) -> list:
    """Stands in for the builder on a machine with nvcc and no GPU; notes stage, target and settings of each build."""
    path, found = tmp_path / "architectures.json", []
    path.write_text(json.dumps({"sm_75": 2.0, "sm_90": 1.5}))

    def build(stage, target, settings=None):
        found.append((stage.number, target, settings))
        return Build(path, 3.5, cached=False)

    monkeypatch.setattr(library, "build_stage", build)
    monkeypatch.setattr(
        tour, "choose_targets", lambda stage, given: [t for t in ("host", "emulator") if t in stage.targets]
    )
    monkeypatch.setattr(tour, "why_unavailable", lambda target: None)
    monkeypatch.setattr(tour, "max_jobs", lambda: 2)
    monkeypatch.setattr(deploy, "build_program", lambda: found.append((8, "program", None)))
    monkeypatch.setattr(deploy, "build_packages_apart", lambda: found.append((8, "package", None)) or [])
    for name in ("TORCH_CUDA_ARCH_LIST", "ONE_OF_EACH"):
        monkeypatch.delenv(name, raising=False)
    return found


def start_builds() -> tour.Builds:
    with ThreadPoolExecutor(1) as pool:
        return tour.start_builds(pool)


def test_every_stage_with_cpp_is_built_once_for_each_target(built):
    builds = start_builds()
    assert [pair[:2] for pair in built] == [*builds, (8, "program"), (8, "package")]
    assert len(builds) == len(set(builds))
    wanted = {(row.number, t) for row in stages.STAGES if row.is_timed for t in row.targets if t != "cuda"}
    assert {pair for pair in builds if pair[1] != "compile-only"} == wanted - {(1, "host")}


def test_where_all_builds_can_run_at_once_the_longest_are_first(built, monkeypatch):
    monkeypatch.setattr(tour, "max_jobs", lambda: 16)
    start_builds()
    numbers = [pair[0] for pair in built]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] == 8


def test_a_stage_with_kernels_is_compiled_for_one_generation(built, capsys):
    builds = start_builds()
    tour.compile_only(stages.find_stage(3), builds)
    compiled = {number: settings for number, target, settings in built if target == "compile-only"}
    assert list(compiled) == [3, 4, 5, 6, 7]
    assert all(settings == {"TORCH_CUDA_ARCH_LIST": "9.0", "ONE_OF_EACH": "1"} for settings in compiled.values())
    assert {settings for _, target, settings in built if target != "compile-only"} == {None}
    assert "builds for sm_75, sm_90; there is no GPU here to run them" in capsys.readouterr().out


def test_the_architectures_of_the_environment_are_kept(built, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.6")
    start_builds()
    assert (4, "compile-only", {"TORCH_CUDA_ARCH_LIST": "8.6", "ONE_OF_EACH": "1"}) in built


def test_nothing_is_compiled_without_nvcc_or_without_kernels(built, monkeypatch, capsys):
    assert (2, "compile-only") not in start_builds()
    monkeypatch.setattr(tour, "why_unavailable", lambda target: "no nvcc")
    builds = start_builds()
    assert "compile-only" not in {target for _, target in builds}
    tour.compile_only(stages.find_stage(3), builds)
    assert capsys.readouterr().out == ""


def test_a_build_that_fails_stops_its_stage_and_no_other(built, monkeypatch, capsys):
    def fail(stage, target, settings=None):
        raise UserError(f"stage {stage.number} does not build")

    monkeypatch.setattr(library, "build_stage", fail)
    monkeypatch.setattr(tour, "STAGES", tuple(stages.find_stage(number) for number in (2, 5)))
    ready, failed, _ = tour.build_and_check_all()
    assert (ready, [row.number for row in failed]) == ([], [2, 5])
    printed = capsys.readouterr().out
    assert "not run: stage 2 does not build" in printed
    assert "not run: stage 5 does not build" in printed


def test_the_primer_is_checked_and_not_timed(tmp_path, monkeypatch):
    timed = []
    monkeypatch.setattr(tour, "STAGES", (stages.find_stage(0),))
    monkeypatch.setattr(tour, "CHECKED", tmp_path / "out" / "check.json")
    monkeypatch.setattr(bench, "measure_stages", lambda preset, devices, cells, path: timed.append(cells))
    monkeypatch.setattr(report, "write_report", lambda: 0)
    assert tour.run_tour() == 0
    assert timed == [[]]
    rows = json.loads((tmp_path / "out" / "check.json").read_text())
    assert {(row["stage"], row["outcome"]) for row in rows} == {(0, "passed")}
    assert "stage 0" in "".join(report.checks_section(rows))


def test_checks_in_two_processes_are_those_of_one(capsys):
    stage = stages.find_stage(1)
    alone = tour.check_with_progress(stage, "host", seed=3)
    with harness.two_processes() as workers:
        together = tour.check_with_progress(stage, "host", seed=3, workers=workers)
    assert [replace(row, seconds=0) for row in together] == [replace(row, seconds=0) for row in alone]
    printed = capsys.readouterr().out
    assert printed.count("check float32 on CPU tensors") == printed.count("check float64 on CPU tensors") == 2


def test_a_check_in_another_process_fails_with_its_message():
    with harness.two_processes() as workers, pytest.raises(UserError, match="there is no stage 70"):
        workers.submit(harness.check_nth, 70, "host", 0, 0).result()


def crash(*given):
    os._exit(3)


@pytest.mark.parametrize("is_broken_before", [False, True])
def test_a_crash_of_the_checks_is_one_failed_check(monkeypatch, capsys, is_broken_before):
    """The stage's other subjects share its processes, so they do not run."""
    monkeypatch.setattr(harness, "check_nth", crash)
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as workers:
        if is_broken_before:
            with pytest.raises(BrokenProcessPool):
                workers.submit(crash).result()
        rows = tour.check_with_progress(stages.find_stage(1), "host", seed=3, workers=workers)
    assert [row.outcome for row in rows] == ["failed", *["not run"] * (len(harness.make_subjects(1, "host")) - 1)]
    printed = capsys.readouterr().out
    assert printed.count("ended abruptly, as after a segmentation fault; `make stage-1` runs them") == 1
    assert "not run: all (a check that ran beside it crashed)" in printed


def test_the_tour_goes_on_after_a_crash(tmp_path, monkeypatch, capsys):
    """Each target of each stage is checked in processes of its own."""
    reached = []

    def check(stage, target, workers):
        reached.append(stage.number)
        rows = [tour.submit(workers, crash), tour.submit(workers, crash)]
        return [tour.run_or_report(row, harness.make_subjects(1, "host", 0)[0], crashed=False)[0] for row in rows]

    monkeypatch.setattr(tour, "STAGES", (stages.find_stage(1), stages.find_stage(1)))
    monkeypatch.setattr(tour, "check_with_progress", check)
    monkeypatch.setenv("BUILD_DIR", str(tmp_path))
    ready, failed, rows = tour.build_and_check_all()
    assert (reached, ready, len(failed)) == ([1, 1], [], 2)
    assert {row.outcome for row in rows} == {"failed"}


@pytest.fixture
def two_at_a_time(tmp_path, monkeypatch) -> None:
    """A tour of stages 1 and 2 on a machine that checks two stages at a time."""
    monkeypatch.setattr(tour, "STAGES", (stages.find_stage(1), stages.find_stage(2)))
    monkeypatch.setattr(tour, "max_jobs", lambda: 2 * tour.CORES_OF_A_STAGE)
    monkeypatch.setattr(tour, "start_builds", lambda pool: {})
    monkeypatch.setattr(tour, "compile_only", lambda stage, builds: None)


def test_stages_are_checked_side_by_side_and_shown_in_order(two_at_a_time, monkeypatch, capsys):
    second = threading.Event()

    def check(stage, targets, builds):
        with console.step(f"check {stage.number}"):
            assert stage.number == 2 or second.wait(60)
        second.set()
        return [Result(stage.number, "host", "cpu", "any", "all", "passed", "", 0)]

    monkeypatch.setattr(tour, "build_and_check_changed", check)
    ready, failed, rows = tour.build_and_check_all()
    assert [stage.number for stage in ready] == [row.stage for row in rows] == [1, 2]
    assert not failed
    printed = capsys.readouterr().out
    shown = ["Stage 1", "check 1", "Stage 2", "check 2"]
    assert sorted(shown, key=printed.index) == shown


@pytest.mark.parametrize(("given", "used"), [(None, "2"), ("5", "5")])
def test_what_checks_start_uses_few_threads(two_at_a_time, monkeypatch, given, used):
    found = []

    def check(stage, targets, builds):
        found.append(os.environ["OMP_NUM_THREADS"])
        return []

    monkeypatch.setattr(tour, "build_and_check_changed", check)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    tour.build_and_check_all()
    assert found == [used, used]
    assert os.environ.get("OMP_NUM_THREADS") == given  # what is timed afterwards uses all cores


def test_what_runs_beside_an_interrupted_stage_ends(two_at_a_time, monkeypatch, capsys):
    second = threading.Event()

    def check(stage, targets, builds):
        if stage.number == 1:
            assert second.wait(60)
            raise KeyboardInterrupt
        for _ in range(6000):
            console.say("still here")
            second.set()
            time.sleep(0.01)
        raise AssertionError("it was not ended")

    monkeypatch.setattr(tour, "build_and_check_changed", check)
    with pytest.raises(KeyboardInterrupt):
        tour.build_and_check_all()
    assert "still here" not in capsys.readouterr().out


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Stage 1 in a folder of its own, and an empty build folder."""
    folder = tmp_path / "stage1_python"
    shutil.copytree(stages.find_stage(1).folder, folder)
    monkeypatch.setenv("BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setattr(earlier, "ROOT", tmp_path)
    for name in earlier.PACKAGES:
        shutil.copytree(ROOT / "common" / name, tmp_path / "common" / name)
    monkeypatch.setattr(stages.Stage, "folder", folder)
    return folder


def test_what_has_passed_is_checked_again_only_after_a_change(copied, monkeypatch, capsys):
    stage, checked = stages.find_stage(1), []

    def check(stage, target, workers):
        checked.append(target)
        return [Result(1, target, "cpu", "float32", "sizes", outcome, "", 0.1)]

    def again():
        tour.build_and_check_changed(stage, ["host"], {})
        return len(checked)

    monkeypatch.setattr(tour, "check_with_progress", check)
    outcome = "failed"
    assert (again(), again()) == (1, 2)
    outcome = "passed"
    assert (again(), again()) == (3, 3)
    assert "1 checks passed on" in capsys.readouterr().out
    for path in (copied / "lltm.py", earlier.ROOT / "common" / "check" / "checks.py"):
        path.write_text(path.read_text() + "\n")
        assert again() == again()
    assert len(checked) == 5
    (copied / "exercises" / "notes.txt").write_text("not read by any check")
    assert again() == 5
    earlier.place_of(stage, "host").write_text("{")
    assert again() == 6


def test_a_stage_whose_package_is_missing_is_left_out(monkeypatch, capsys):
    def refuse(*_, **__):
        raise MissingPackage("lltm_serve needs boost/beast/http.hpp: sudo apt install libboost-dev")

    monkeypatch.setattr(tour, "STAGES", (stages.find_stage(8),))
    monkeypatch.setattr(tour, "build_and_check_changed", refuse)
    assert tour.build_and_check_all() == ([], [], [])
    assert "not run: lltm_serve needs boost/beast/http.hpp: sudo apt install" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (0, "Next: `make stage-1`: The LLTM in Python."),
        (5, "Next: `make diff-5-6`, then `make stage-6`."),
        (6, "Next: `make stage-7`: The whole sequence in one call."),
        (9, "Next: `make tour` compares all stages."),
    ],
)
def test_each_stage_names_the_next(number, says):
    assert says in tour.what_to_read_next(stages.find_stage(number))
