"""`make tour` and `make stage-N`: build, check and time the stages, then say what to read next."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from .. import stages
from ..build import library
from ..build.targets import choose_targets, has_cpp, why_unavailable
from ..console import HeldOutput, say, step
from ..emulator import max_jobs
from ..errors import UserError
from ..pages import notebooks
from ..paths import ROOT
from ..stages import STAGES, Stage

if TYPE_CHECKING:  # it imports torch
    from ..check.subject import Subject

CHECKED = ROOT / "out" / "check.json"
Builds = dict[tuple[int, str], Future]  # of a stage for a target: each results in a `library.Build`
PROCESS = "process"  # the name of the row of a crash
CORES_OF_A_STAGE = 2  # its checks run in two processes
THREADS = "2"  # of torch in each of them: with one, no race between threads would show
# The checks of each stage that is a program: a module and its function of a seed.
PROGRAM_CHECKS = {8: "common.check.deploy:check_deploy", 9: "common.check.distributed:check_distributed"}


def run_stage(number: int, target: str | None = None, seed: int | None = None) -> int:
    """Builds and checks one stage and times it against eager; the status is 1 if a check fails.

    A check uses new random numbers unless `seed` is given.
    """
    row = stages.get_stage(number)
    say(f"Stage {row.number}: {row.title}")
    best, *others = choose_targets(row, target)
    results = build_and_check(row, [best, *others], seed)
    if any(result.outcome == "failed" for result in results):
        not_timed = ", so it is not timed" if row.is_timed else ""
        say(f"\nThe stage is wrong{not_timed}. Begin with the first FAILED line; the others often follow from it.")
        say(f"To repeat the same numbers: python -m common stage {number} --seed N, with the seed from that line.")
        return 1
    if row.is_timed:
        from ..measure.bench import available_devices, compare_with_eager

        compare_with_eager(row, best, available_devices()[-1])
    say("\n" + what_to_read_next(row))
    return 0


def build_and_check(stage: Stage, targets: list[str], seed: int | None = None) -> list:
    """Runs every check of a stage on each of these targets; returns one row for each."""
    results = []
    for target in targets:
        build_with_progress(stage, target)
        results += check_with_progress(stage, target, seed)
    return results


def build_and_check_changed(stage: Stage, targets: list[str], builds: Builds) -> list:
    """The same, but checks that have passed are not repeated while nothing has changed that they depend on."""
    from ..check import earlier
    from ..check.harness import two_processes

    results, key = [], earlier.key_of(stage)
    for target in targets:
        build_with_progress(stage, target, builds)
        if before := earlier.find_earlier(stage, target, key):
            count = sum(row.outcome == "passed" for row in before.results)
            again = f"make stage-{stage.number} repeats them"
            say(f"  {count} checks passed on {before.date}; nothing has changed since ({again})")
            results += before.results
        else:
            with two_processes() as workers:  # of each target, because its checks may crash them
                rows = check_with_progress(stage, target, workers=workers)
            earlier.keep(stage, target, key, rows)
            results += rows
    return results


def build_with_progress(stage: Stage, target: str, builds: Builds | None = None) -> None:
    """Builds a stage, or waits for its build, and prints how long this takes, or took if it was built before.

    A program's checks build it.
    """
    if stage.kind == "program":
        return
    if not has_cpp(stage):
        say("  nothing to build: Python only")
        return
    say(f"  target {target}")
    with step("build"):
        built = builds[stage.number, target].result() if builds else library.build_stage(stage, target)
    if built.cached:
        say(f"    (unchanged, so reused; the build took {built.seconds:.0f} s)")


def compile_only(stage: Stage, builds: Builds) -> None:
    """On a machine with nvcc but no GPU, shows that the kernels also build for real GPUs. Runs none of them."""
    if (stage.number, "compile-only") not in builds:
        return
    with step("compile only, with nvcc"):
        built = builds[stage.number, "compile-only"].result()
    names = ", ".join(json.loads(built.path.read_text()))
    say(f"    (builds for {names}; there is no GPU here to run them)")


def start_builds(pool: Executor) -> Builds:
    """Starts all builds of the tour: in the order in which it waits for them, but where all can run at once, the last
    ones first, because they take longest.

    Stages that cannot run here have none; the checks of stage 8 find its program and packages in the cache. One
    architecture represents all of `compile-only`, and one type of kernel all that are instances of the same code.
    `make test` compiles everything, for each architecture that nvcc knows.
    """
    from .. import deploy

    settings = {"TORCH_CUDA_ARCH_LIST": "9.0", "ONE_OF_EACH": "1"}
    settings |= {name: value for name, value in os.environ.items() if name in settings}
    builds = {}
    all_at_once = max_jobs() > len(STAGES)
    for stage in filter(lambda stage: stage.is_here, reversed(STAGES) if all_at_once else STAGES):
        if stage.folder == deploy.FOLDER:
            pool.submit(deploy.build_program)
            pool.submit(lambda: [process.wait() for process in deploy.build_packages_apart()])
        if stage.kind == "program" or not has_cpp(stage):
            continue
        with suppress(UserError):  # the tour says why the stage cannot run
            targets = choose_targets(stage, None)
            for target in targets:
                builds[stage.number, target] = pool.submit(library.build_stage, stage, target)
            if "emulator" in targets and "cuda" in stage.targets and not why_unavailable("compile-only"):
                build = partial(library.build_stage, stage, "compile-only", settings)
                builds[stage.number, "compile-only"] = pool.submit(build)
    return builds


def check_with_progress(stage: Stage, target: str, seed: int | None = None, workers: Executor | None = None) -> list:
    """Checks a stage on every device and dtype and prints a line for each; shows the first failures in full.

    A primer and a program have their own checks, with a line for each. With workers, several subjects are checked at
    the same time, and the time in a line is how long it had to be waited for.
    """
    if stage.kind == "program":
        module, _, function = PROGRAM_CHECKS[stage.number].partition(":")
        return getattr(import_module(module), function)(seed)
    if stage.kind == "primer":
        from ..check.primer import check_primer

        return check_primer(seed)
    from ..cell.call import fresh_seed
    from ..check import harness

    seed = fresh_seed() if seed is None else seed
    subjects = harness.make_subjects(stage.number, target, seed)
    if workers:
        given = stage.number, target, seed
        pending = [submit(workers, harness.check_nth, *given, n) for n in range(len(subjects))]
    else:
        pending = [partial(harness.check_subject, subject) for subject in subjects]
    results = []
    for subject, check in zip(subjects, pending, strict=True):
        failed_before = any(row.outcome == "failed" for row in results)
        with step(f"check {subject.label} on {subject.device.upper()} tensors"):
            rows = run_or_report(check, subject, crashed=any(row.name == PROCESS for row in results))
        results += rows
        counts = {outcome: sum(row.outcome == outcome for row in rows) for outcome in ("passed", "failed", "not run")}
        say("    " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count))
        for row in rows:
            if row.outcome == "failed" and not failed_before:
                say(f"    FAILED {row.name}: {row.message}")
    for name, reason in sorted({(row.name, row.message) for row in results if row.outcome == "not run"}):
        say(f"    not run: {name} ({reason})")
    return results


def submit(workers: Executor, *call: object) -> Callable[[], list]:
    """Starts a call in a process; returns a function that waits for its result, or raises `BrokenProcessPool`."""
    try:
        return workers.submit(*call).result
    except BrokenProcessPool as error:  # an earlier call has already ended its process
        raised = error  # Python deletes `error` after the block

    def result() -> list:
        raise raised

    return result


def run_or_report(check: Callable[[], list], subject: Subject, crashed: bool) -> list:
    """The rows of a check; a failed one if its process has ended abruptly. The first crash ends the others, too."""
    from ..check.subject import Result

    try:
        return check()
    except BrokenProcessPool:
        message = (
            "a process of these checks ended abruptly, as after a segmentation fault; "
            f"`make stage-{subject.stage}` runs them one after another"
        )
        where = subject.stage, subject.target, subject.device, subject.label
        if crashed:
            return [Result(*where, "all", "not run", "a check that ran beside it crashed", 0)]
        return [Result(*where, PROCESS, "failed", message, 0)]


def what_to_read_next(stage: Stage) -> str:
    """Says what to read after a stage."""
    names = [source.stem for source in notebooks.notebook_sources() if source.stem.startswith(f"{stage.number:02}")]
    in_lab = f", and in `make lab` {', '.join(names)}" if names else ""
    lines = [f"Read stages/{stage.folder_name}/README.md{in_lab}."]
    later = next((other for other in STAGES if other.number > stage.number and other.is_here), None)
    if later is None:
        lines.append("Next: `make tour` compares all stages.")
    elif stage.kind == later.kind == "cell":
        lines.append(f"Next: `make diff-{stage.number}-{later.number}`, then `make stage-{later.number}`.")
    else:
        lines.append(f"Next: `make stage-{later.number}`: {later.title}.")
    return "\n".join(lines)


def run_tour() -> int:
    """Builds, checks, times and plots every stage that this machine can run. Names the others, with the reason."""
    ready, failed, results = build_and_check_all()
    CHECKED.parent.mkdir(exist_ok=True)
    CHECKED.write_text(json.dumps([asdict(result) for result in results], indent=1))

    from ..measure import bench
    from ..pages import report

    say("\nTimes, against eager and torch.compile")
    bench.measure_for_tour(ready)
    status = report.write_report()
    if failed:
        say("\nWithout: " + "; ".join(f"stage {row.number} ({row.title})" for row in failed) + ": see above.")
    return 1 if failed else status


@contextmanager
def few_threads() -> Iterator[None]:
    """Processes started in this block use few threads each, unless the user has set OMP_NUM_THREADS.

    Many of them share the cores, and each of torch's threads that waits for another one keeps a core busy.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = before or THREADS
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]


@few_threads()
def build_and_check_all() -> tuple[list[Stage], list[Stage], list]:
    """The stages that passed, those that failed or could not be built, and one row for each check.

    All stages are built side by side, while those before them are checked; where there are cores, several stages are
    checked at a time. Their output comes in order.
    """
    ready, failed, results = [], [], []
    # The compilers leave the cores to the checks.
    building = ThreadPoolExecutor(max(2, max_jobs()), initializer=partial(os.nice, 10))
    checking = ThreadPoolExecutor(max(1, max_jobs() // CORES_OF_A_STAGE))
    outputs = [HeldOutput() for _ in STAGES]
    try:
        builds = start_builds(building)
        pending = [checking.submit(check_in_turn, *each, builds) for each in zip(STAGES, outputs, strict=True)]
        for row, output, checked in zip(STAGES, outputs, pending, strict=True):
            output.release()
            rows, has_passed = checked.result()
            results += rows
            if has_passed is not None:
                (ready if has_passed else failed).append(row)
    finally:
        for output in outputs:
            output.drop()
        checking.shutdown(cancel_futures=True)
        building.shutdown(cancel_futures=True)
    return ready, failed, results


def check_in_turn(row: Stage, output: HeldOutput, builds: Builds) -> tuple[list, bool | None]:
    """A row for each check of a stage, and whether it passed: None if it cannot run here. Says so in `output`."""
    from ..deploy import MissingPackage

    with output.of_this_thread():
        say(f"\nStage {row.number}: {row.title}")
        if not row.is_here:
            say("  not here yet")
            return [], None
        try:
            rows = build_and_check_changed(row, choose_targets(row, None), builds)
            compile_only(row, builds)
        except UserError as error:
            say(f"  not run: {error}")
            # A package that only this stage needs may be missing.
            return [], None if isinstance(error, MissingPackage) else False
        return rows, not any(result.outcome == "failed" for result in rows)
