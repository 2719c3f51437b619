"""Every command: its name for make, what it does, the function that runs it, and the function's arguments."""

from __future__ import annotations

from typing import Any

from ..command import Command, argument, find_function
from ..study import find_studies

EXERCISE = argument("name", metavar="exercise", nargs="?", help="such as 3/guard; by default the one named last")
CHECK_ONLY = argument("--check", action="store_true", help="change nothing; fail if any is out of date")

GROUPS: dict[str, tuple[Command, ...]] = {
    "Start here": (
        Command(
            "start",
            "your first CUDA kernel in PyTorch, in ten minutes; TEXT=1 stays in the terminal",
            "lab.start:start",
            (argument("--text", dest="as_text", action="store_true", help="in the terminal, without JupyterLab"),),
            builds=True,
        ),
        Command(
            "tour",
            "build, check and time every stage that runs here, and write out/report.html",
            "commands.tour:run_tour",
            builds=True,
        ),
        Command("doctor", "what this machine has and lacks, and how to fix it", "setup.doctor:doctor"),
    ),
    "Work with a stage": (
        Command(
            "stage",
            "build, check and time one stage against eager",
            "commands.tour:run_stage",
            (
                argument("number", type=int),
                argument("--target", help="cuda, host or emulator; by default the best for this machine"),
                argument(
                    "--seed", type=int, help="repeat the numbers of an earlier check; its failure names the seed"
                ),
            ),
            make="stage-2",
            builds=True,
        ),
        Command(
            "diff",
            "the lesson of a stage: what changed since another; STEP=bias, one step of a long one",
            "commands.diff:show_diff",
            (
                argument("old", type=int),
                argument("new", type=int),
                argument("--step", default="", help="one step of the lesson; `make diff-5-6` lists them"),
            ),
            make="diff-1-2",
        ),
        Command(
            "emulate",
            'run any CUDA program without a GPU, under all checks: FILE=x.cu ARGS="..." COUNTS=1',
            "commands.emulate:emulate",
            (argument("file"), argument("arguments", nargs="...", help="for the program")),
        ),
        Command(
            "new",
            "start your own operator in work/: NAME=mycell; KIND=elementwise for y = f(x); DIR=~/code for elsewhere",
            "new:new",
            (
                argument("name", help="name of the package, the function and the operators' namespace"),
                argument("--kind", default="cell", help="cell (stage 5's, the default) or elementwise, for y = f(x)"),
                argument("--folder", dest="parent", help="the folder to create it in; by default work/"),
            ),
        ),
        Command("lab", "open JupyterLab on a copy of the notebooks in work/", "lab.copies:open_lab", builds=True),
    ),
    "Exercises": (
        Command(
            "next",
            "show what to do in the next exercise, or in EX=3/guard, and where",
            "exercises.commands:show_next",
            (EXERCISE,),
        ),
        Command(
            "check",
            "check your work: the exercise named last, EX=3/guard, or EX=all; STARTER=1 checks an unchanged starter",
            "exercises.commands:check_work",
            (EXERCISE, argument("--starter", action="store_true", help="check an unchanged starter, too")),
            builds=True,
        ),
        Command("hint", "show one more hint each time", "exercises.commands:show_hint", (EXERCISE,)),
        Command(
            "solution",
            "the solution, as a diff against yours; TAKE=1 continues with it",
            "exercises.commands:show_solution",
            (EXERCISE, argument("--take", action="store_true", help="continue with it; your files are backed up")),
        ),
        Command(
            "reset",
            "start an exercise again; your files are backed up",
            "exercises.commands:reset_exercise",
            (EXERCISE,),
        ),
        Command("progress", "which exercises are solved", "exercises.commands:show_progress"),
        Command("watch", "check whenever you save", "exercises.watch:watch", (EXERCISE,), builds=True),
        Command(
            "grade",
            "grade a class: DIR=submissions/ with a folder for each student; see docs/teaching.md",
            "exercises.grading.grade:grade",
            (
                argument("folder", help="holds a folder for each student, with the layout of work/"),
                argument("--only", type=str.split, default=(), help="such as '3/guard 3/launch'; by default all"),
                argument("--csv", dest="csv_path", help="the file for the table"),
                argument("--json", dest="json_path", help="the file for all messages"),
                argument("--sandbox", dest="kind", help="bubblewrap, podman, docker or none"),
                argument("--image", help="for podman and docker: see docs/teaching.md"),
                argument("--jobs", type=int, help="students at a time"),
            ),
            builds=True,
        ),
    ),
    "Measure": (
        Command(
            "bench",
            "time every stage against eager and torch.compile in the same run; TUNED=1 adds max-autotune",
            "measure.bench:record_benchmark",
            (
                argument("--quick", action="store_true", help="fewer sizes and rounds"),
                argument(
                    "--tuned", action="store_true", help="add torch.compile's max-autotune, which takes minutes"
                ),
                argument("--device", choices=("cpu", "cuda"), help="only this one's tensors; by default all"),
                argument("--only", choices=("cell", "sequence"), help="only stages of this kind; by default all"),
                argument("--output", help="the JSON file to write (by default out/bench.json)"),
            ),
            builds=True,
        ),
        Command("report", "plot the last measurement: out/report.html", "pages.report:write_report"),
    ),
    "The workbook itself": (
        Command("test", "run the tests, and a sample of the slow proofs that are due; JOBS=12 runs 12 at a time"),
        Command("prove", "run the proofs that are due, or all those of EX=3/guard; writes tests/proofs.json"),
        Command(
            "answers",
            "show what the check says about the starter, the solution and each wrong answer: EX=3/guard",
            "exercises.commands:show_verdicts",
            (argument("name", metavar="exercise"),),
            builds=True,
        ),
        Command(
            "setup",
            "install missing packages; TORCH_INDEX=... takes torch from another wheel index",
            "setup.install:install_missing",
        ),
        Command("clean", "remove build/ and out/", "commands.clean:clean"),
    ),
    "For maintainers": (
        Command("format", "format Python, C++ and CUDA"),
        Command("lint", "check format, imports, spelling, notebooks and generated tables; change nothing"),
        Command(
            "tables",
            "rewrite every generated table in README.md, stages/ and docs/",
            "pages.generate:update_tables",
            (CHECK_ONLY,),
        ),
        Command(
            "notebooks",
            "write each .ipynb from its .py, without outputs",
            "pages.notebooks:write_notebooks",
            (CHECK_ONLY,),
        ),
    ),
    "Studies, which write their records to docs/results/studies/": tuple(
        command for study in find_studies() for command in study.commands
    ),
}
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}


def run_command(command: Command, values: dict[str, Any]) -> int:
    """Calls the function of a command with these values by name; its result is the exit status."""
    if command.builds:
        from ..setup.compiler import choose_compiler

        if note := choose_compiler():
            print(note, flush=True)
    return find_function(command.function)(**values)


def help() -> int:
    """Prints every command by group, as `make` alone does."""
    width = max(len(command.make or name) for name, command in COMMANDS.items()) + 1
    for number, (group, commands) in enumerate(GROUPS.items()):
        print("\n" * bool(number) + group)
        for command in commands:
            print(f"  make {command.make or command.name:<{width}} {command.help}")
    return 0
